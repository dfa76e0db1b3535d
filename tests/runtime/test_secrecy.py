"""The search for secrets finds them: a leak that is planted fails its test."""

import base64
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running_app import launch
from server_harness import serve_in

from longboat.testing import ScriptedModel
from secrecy import SECRETS, LeakRecorder, StreamCheck, check_for_secrets, secrets_in

KEY = SECRETS["provider key"]

planted = pytest.mark.shows_secrets("provider key", reason="planted, to see that it is found")


@planted
async def test_a_key_that_a_prompt_brings_back_is_found_in_events_and_messages(
    tmp_path: Path, no_secret_comes_out: LeakRecorder
) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await running.submit(f"my key is {KEY}", "r1")
        await running.completed("r1")
        await running.messages()
        await running.ledger()
    assert no_secret_comes_out.leaks == {"provider key": {"an event", "the messages", "the runs"}}


@planted
async def test_a_key_in_an_answer_of_the_server_is_found(tmp_path: Path, no_secret_comes_out: LeakRecorder) -> None:
    async with serve_in(tmp_path) as served:
        place = await served.workspace(tmp_path / "project")
        for client in (served.unix, served.tcp):
            await client.post(f"{place}/sessions", json={"title": KEY})
    assert no_secret_comes_out.leaks == {"provider key": {f"the answer to POST {place}/sessions"}}


@planted
def test_a_key_in_the_log_is_found(no_secret_comes_out: LeakRecorder) -> None:
    logging.getLogger("longboat.models").warning("asked", extra={"headers": {"authorization": f"Bearer {KEY}"}})
    assert no_secret_comes_out.leaks == {"provider key": {"the log of longboat.models"}}


@planted
@pytest.mark.parametrize("at", range(1, len(KEY)))
def test_a_key_that_comes_in_two_pieces_is_found(at: int, no_secret_comes_out: LeakRecorder) -> None:
    check = StreamCheck("a stream")
    for piece in (b"x" * 500 + KEY[:at].encode(), KEY[at:].encode() + b"x" * 500):
        check.check_for_secrets(piece)
    assert no_secret_comes_out.leaks == {"provider key": {"a stream"}}


@pytest.mark.parametrize(("name", "secret"), SECRETS.items(), ids=list(SECRETS))
def test_pieces_and_other_spellings_of_every_secret_are_found(name: str, secret: str) -> None:
    assert secrets_in(b"nothing") == []
    assert all(secrets_in(secret[at : at + 9].encode()) == [name] for at in range(2, len(secret) - 8))
    for user in ("", "u", "me", "ann"):
        assert secrets_in(base64.b64encode(f"{user}:{secret}".encode())) == [name]


def test_a_test_that_lets_a_secret_out_fails_and_says_which_and_where(tmp_path: Path) -> None:
    for name in ("conftest.py", "environment.py", "secrecy.py"):
        shutil.copy(Path(__file__).parents[1] / name, tmp_path)
    leak = "secrecy.check_for_secrets(secrecy.SECRETS['MCP header'], 'some place')"
    program = f"import secrecy\ndef test_it():\n    {leak}\n"
    (tmp_path / "test_leak.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the MCP header came out in some place" in done.stdout


@pytest.mark.shows_secrets("MCP header", reason="planted")
def test_what_a_test_may_show_is_only_what_it_names(no_secret_comes_out: LeakRecorder) -> None:
    check_for_secrets(SECRETS["MCP header"], "some place")
    assert no_secret_comes_out.complaint("MCP header") == ""
    assert "the MCP header came out in some place" in no_secret_comes_out.complaint("provider key")
