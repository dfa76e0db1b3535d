"""Logs: one JSON line per record on stderr, with the ids a record carries."""

import io
import json
import logging

import pytest

from longboat.server.logs import JsonLines


@pytest.fixture
def log():
    """A logger, and what it wrote so far, as decoded lines."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.Logger("longboat.test")
    logger.addHandler(handler)
    return logger, lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_one_line_with_the_ids_it_carries(log):
    logger, lines = log
    logger.warning("run %s\nended", "r1", extra={"run_id": "r1", "session_id": "s1", "secret": "x"})
    (line,) = lines()
    at = line.pop("at")
    assert at.endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "longboat.test",
        "message": "run r1\nended",
        "run_id": "r1",
        "session_id": "s1",
    }


def test_an_exception_brings_its_traceback_on_the_same_line(log):
    logger, lines = log
    try:
        raise ValueError("odd")
    except ValueError:
        logger.exception("failed")
    (line,) = lines()
    assert line["traceback"].endswith("ValueError: odd")


def test_what_cannot_be_encoded_is_still_logged(log):
    logger, lines = log
    logger.error("path %s", "/tmp/\udcff")
    (line,) = lines()
    assert line["message"].startswith("path /tmp/")
