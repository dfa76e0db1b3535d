"""`longboat run --schema` and `--effort` with real processes (A6)."""

import json
from pathlib import Path

import pytest
from cli_home import Endpoint, Home

from longboat.testing import Say

pytestmark = pytest.mark.acceptance

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture
def cwd(home: Home, request: pytest.FixtureRequest) -> Path:
    directory = home.workspace(request.node.name)
    (directory / "schema.json").write_text(json.dumps(SCHEMA))
    return directory


def test_the_answer_is_the_json_alone_after_a_repair(home: Home, endpoint: Endpoint, cwd: Path) -> None:
    endpoint.script("first", [Say("It is three.")])
    endpoint.script(None, [Say('```json\n{"n": 3}\n```')])
    done = home.longboat("run", "--schema", "schema.json", "--effort", "low", "How many? [[first]]", cwd=cwd)
    assert (done.code, done.out) == (0, '{"n": 3}\n')
    first, second = (item["body"] for item in endpoint._ask("/control/requests")["items"][-2:])
    assert first["reasoning_effort"] == second["reasoning_effort"] == "low"
    assert "It is not JSON" in second["messages"][-1]["content"]


def test_an_answer_that_never_fits_prints_nothing_and_fails(home: Home, endpoint: Endpoint, cwd: Path) -> None:
    endpoint.script("never", [Say("three")])
    endpoint.script(None, [Say("three")], [Say("three")])
    done = home.longboat("run", "--schema", "schema.json", "How many? [[never]]", cwd=cwd)
    assert (done.code, done.out) == (1, "")
    assert "The answer does not match its schema" in done.err


def test_a_file_that_is_no_schema_is_refused_before_anything_runs(home: Home, cwd: Path) -> None:
    (cwd / "schema.json").write_text("[]")
    assert home.longboat("run", "--schema", "schema.json", "hi", cwd=cwd).code == 2
    (cwd / "schema.json").write_text('{"type": "nonsense"}')
    done = home.longboat("run", "--schema", "schema.json", "hi", cwd=cwd)
    assert done.code != 0
    assert "not a valid JSON Schema" in done.err
