"""`python -m evals` as people run it: a configured model, the table, the result file, a comparison."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from evals.site import scripted_config

from longboat.testing import Say
from longboat.testing.endpoint import ScriptedEndpoint
from parts import how, missing

pytestmark = [pytest.mark.acceptance, pytest.mark.skipif(missing("git"), reason=how("git"))]

ROOT = Path(__file__).parents[2]


async def evals(*arguments: str | Path) -> tuple[int | None, str]:
    """The exit code, and what was printed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "evals", *map(str, arguments)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    return process.returncode, printed.decode()


async def test_a_configured_model_is_asked_and_its_result_is_kept_and_compared(tmp_path: Path) -> None:
    asked = ("--model", "scripted/model", "--tasks", "answer-port", "--config", tmp_path / "longboat.json")
    async with ScriptedEndpoint() as endpoint:
        (tmp_path / "longboat.json").write_text(json.dumps(scripted_config(endpoint.base_url)))
        for label, words in (("first", "It is 80."), ("second", "It is 8042.")):
            endpoint.add([Say(words)])
            folder = tmp_path / label
            code, printed = await evals("--results", folder, "run", *asked)
            assert code == 0, printed
            (file,) = folder.iterdir()
            assert f"Kept as {file}" in printed
    (first,), (second,) = (tmp_path / "first").iterdir(), (tmp_path / "second").iterdir()
    code, printed = await evals("compare", first, second)
    assert code == 0
    assert "1 tasks better, 0 worse, 0 the same" in printed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "--tasks", "sail"), "No task is named 'sail'"),
        (("run", "--model", "mine/x", "--config", "/nonexistent/longboat.json"), "/nonexistent/longboat.json"),
        (("compare", "no-such-commit", "HEAD"), "No results of the same model and label"),
    ],
)
async def test_what_cannot_be_done_is_said_in_one_line(arguments: tuple[str, ...], told: str) -> None:
    code, printed = await evals(*arguments)
    assert code == 2
    assert told in printed
    assert "Traceback" not in printed


async def test_a_model_that_is_not_configured_is_refused_before_the_first_task(tmp_path: Path) -> None:
    (tmp_path / "longboat.json").write_text("{}")
    code, printed = await evals("run", "--model", "nobody/x", "--config", tmp_path / "longboat.json")
    assert code == 2
    assert "nobody" in printed.splitlines()[-1]


async def test_the_tasks_are_listed() -> None:
    code, printed = await evals("list")
    assert code == 0
    assert len(printed.splitlines()) == 40
