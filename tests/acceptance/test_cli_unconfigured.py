"""Nothing configured (A6): said where a prompt is sent and where one looks, with the way to a real model.

The runtime of the local model is one that ends at once: what is asked of it fails, and needs no network.
"""

import json
import re
from pathlib import Path

import pytest
from cli_home import Home
from local_files import put_stub

pytestmark = pytest.mark.acceptance

SAID = "No provider is configured. Using the small local model. It can chat but cannot code."


@pytest.fixture(scope="module")
def home(new_home: Home) -> Home:
    configure(new_home)
    library = new_home.path / "library"
    library.mkdir()
    (library / "xllamacpp.py").write_text("raise SystemExit('this one only pretends')")
    new_home.environ["PYTHONPATH"] = str(library)
    put_stub(new_home.path / "data")
    return new_home


def configure(home: Home, **config: object) -> None:
    file = home.path / "config" / "longboat" / "longboat.json"
    file.write_text(json.dumps({"models": {"detect": False}, "titles": False, **config}))


def test_a6_run_says_once_on_stderr_that_nothing_is_configured_and_what_to_do(home: Home, cwd: Path) -> None:
    done = home.longboat("run", "hi", cwd=cwd)
    assert done.err.count(SAID) == 1
    assert "run `longboat connect`" in done.err
    shown = home.longboat("run", "--format", "json", "hi", cwd=cwd)
    assert SAID in shown.err
    assert all(event["type"] for event in shown.events), "its output is events and nothing else"
    assert "cannot code" not in shown.out


def test_a6_whoever_chose_the_local_model_is_not_told(home: Home, cwd: Path) -> None:
    assert "cannot code" not in home.longboat("run", "-m", "local/smollm2-135m", "hi", cwd=cwd).err
    (cwd / "longboat.json").write_text('{"models": {"large": "local/smollm2-135m"}}')
    assert "cannot code" not in home.longboat("run", "hi", cwd=cwd).err
    for command in ("models", "doctor"):
        assert "No provider is configured" not in home.longboat(command, cwd=cwd).out


def test_a6_models_and_doctor_say_it(home: Home, cwd: Path) -> None:
    for command in ("models", "doctor"):
        assert home.longboat(command, cwd=cwd).out.count(SAID) == 1, command
    shown = json.loads(home.longboat("models", "--format", "json", cwd=cwd).out)
    assert shown["advice"].startswith(SAID)
    explained = " ".join(home.longboat("models", "--help", cwd=cwd).out.split())
    assert "To add a provider or to choose the default model, run `longboat connect`." in explained


def test_a6_make_run_finds_out_that_the_local_model_answers(home: Home, cwd: Path) -> None:
    """It then fetches the model, with its progress, before the first prompt."""
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    (wanted,) = re.findall(r"longboat models --format json \| grep -q '([^']+)'", makefile)
    configure(home)
    assert wanted in home.longboat("models", "--format", "json", cwd=cwd).out


def test_a6_where_providers_are_there_but_none_is_ready_that_is_said_instead(home: Home, cwd: Path) -> None:
    (cwd / "longboat.json").write_text('{"providers": {"groq": {"type": "groq"}}}')
    done = home.longboat("run", "hi", cwd=cwd)
    (told,) = [line for line in done.err.splitlines() if "small local model" in line]
    assert told.startswith("No provider in longboat.json is ready. ")
    assert (
        "groq (longboat.json) is skipped: Run `longboat connect groq`, or set GROQ_API_KEY."
        in home.longboat("models", cwd=cwd).out
    )
