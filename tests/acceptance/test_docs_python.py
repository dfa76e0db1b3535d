"""The programs on README.md and docs/python.md run as they stand, and run again."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from cli_home import Endpoint, Home, Process, finished, home_with, wait_for_line

from longboat.testing.script import HttpItem

pytestmark = pytest.mark.acceptance

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


PROGRAMS = [
    program
    for page in ("README.md", "docs/python.md")
    for program in blocks(page, "python")
    if program.count("\n") > 1  # not the line that only shows the import
    and "DATABASE_URL" not in program  # see tests/testing/test_fleet.py
]
EVENTS, INBOX = (
    [program for program in PROGRAMS if call in program] for call in ("client.events(", "client.inbox_events(")
)
ENDLESS = [*EVENTS, *INBOX]


@pytest.fixture(scope="module")
def home(new_home: Home) -> Home:
    new_home.serve()
    return new_home


def start(home: Home, cwd: Path, program: str) -> Process:
    process = subprocess.Popen(
        [sys.executable, "-u", "-W", "error", "-c", program],
        cwd=cwd,
        env=home.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    home.processes.append(process)
    return process


@pytest.mark.parametrize("number", [PROGRAMS.index(each) for each in PROGRAMS if each not in ENDLESS])
def test_a_program_runs_and_runs_again(home: Home, number: int) -> None:
    cwd = home.workspace(f"program-{number}")
    for _ in range(2):
        done = finished(start(home, cwd, PROGRAMS[number]))
        assert (done.code, done.err) == (0, "")
        assert done.out


def test_a_run_id_of_ones_own_asks_the_model_once(home: Home) -> None:
    own = [PROGRAMS.index(each) for each in PROGRAMS if "job-1" in each]
    assert len(own) == 2
    for number in own:
        cwd = home.workspace(f"once-{number}")
        for _ in range(2):
            assert "end_turn" in finished(start(home, cwd, PROGRAMS[number])).out
        assert len(home.longboat("runs", "--format", "json", cwd=cwd).lines) == 1


def test_the_endless_one_shows_the_snapshot_without_a_cursor_and_events_with_one(home: Home) -> None:
    (program,) = EVENTS
    cwd = home.workspace("endless")
    process = start(home, cwd, program)
    wait_for_line(process, "None snapshot")
    home.longboat("run", "hi", cwd=cwd)
    wait_for_line(process, "run_complete")


def test_the_one_about_the_inbox_shows_what_is_new_in_any_directory(home: Home) -> None:
    (program,) = INBOX
    process = start(home, home.workspace("elsewhere"), program)
    wait_for_line(process, "0 waiting")
    cwd = home.workspace("inbox")
    home.longboat("run", "hi", cwd=cwd)
    wait_for_line(process, f"finished {cwd}")


def test_the_scripted_endpoint_answers_as_the_page_says(tmp_path: Path) -> None:
    config, scripts, *_ = map(json.loads, blocks("docs/python.md", "json"))
    (tmp_path / "script.json").write_text(json.dumps(scripts))
    command = [sys.executable, "-m", "longboat.testing.endpoint", "--script", str(tmp_path / "script.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("listening on ").strip()
        endpoint = Endpoint(url.removesuffix("/v1"))
        try:
            with home_with(endpoint) as home:
                config["providers"]["scripted"]["base_url"] = url
                (home.path / "config" / "longboat" / "longboat.json").write_text(json.dumps(config))
                cwd = home.workspace("w")
                assert home.longboat("run", "[[greet]]", cwd=cwd).out == "Good day.\n"
                assert home.longboat("run", "[[flaky]]", cwd=cwd).out == "At last.\n"
                slow = home.start("run", "[[slow]]", cwd=cwd)
                endpoint.wait_for_gate("door")
                endpoint.open_gate("door")
                assert finished(slow).out == "One. Two.\n"
                assert home.longboat("run", "anything", cwd=cwd).out == "echo: anything\n"
        finally:
            process.terminate()


def test_every_item_of_a_script_is_on_the_page() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    kinds = {str(item.__struct_config__.tag) for item in get_args(HttpItem)}
    assert {kind for kind in kinds if f'"type": "{kind}"' not in page} == {"think"}, "which stands beside say"
