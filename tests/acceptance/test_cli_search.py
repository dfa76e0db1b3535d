"""Search, pin and archive from the command line against a real server."""

import json
import re
from pathlib import Path

import pytest
from cli_home import Home
from terminal_attacks import PAYLOADS

pytestmark = pytest.mark.acceptance


def titles(home: Home, cwd: Path, *options: str) -> list[str]:
    listed = home.longboat("session", "list", "--format", "json", *options, cwd=cwd)
    assert listed.code == 0, listed.err
    return [json.loads(line)["title"] for line in listed.out.splitlines()]


def test_what_was_said_is_found_in_every_directory(home: Home, cwd: Path) -> None:
    home.longboat("run", "Mend the Küche", cwd=cwd)
    elsewhere = home.workspace("elsewhere")
    home.longboat("run", "paint the kuche", cwd=elsewhere)
    found = home.longboat("search", "kuch", cwd=cwd)
    assert found.code == 0, found.err
    assert "  prompt: Mend the Küche" in found.out
    assert "  answer: echo: paint the kuche" in found.out
    assert f"  {elsewhere.name}  just now" in found.out
    here = home.longboat("search", "--here", "--format", "json", "KUCHE", cwd=cwd)
    hits = [json.loads(line) for line in here.out.splitlines()]
    assert {hit["workspace_path"] for hit in hits} == {str(cwd)}
    assert [hit.get("role") for hit in hits] == ["assistant", "user", None] or len(hits) == 3
    assert "kuche" not in home.longboat("search", '"kuche mend"', cwd=cwd).out
    for nothing in ("nowhere", '"', "AND (", "*"):
        assert home.longboat("search", nothing, cwd=cwd).out == "Nothing found.\n"
    few = home.longboat("search", "--limit", "1", "kuche", cwd=cwd)
    assert "There are more" in few.err


def test_hostile_words_are_found_and_do_nothing(home: Home, cwd: Path) -> None:
    for payload in PAYLOADS[:12]:
        assert home.longboat("run", f"needle {payload}", cwd=cwd).code == 0
    found = home.longboat("search", "--limit", "100", "needle", cwd=cwd).out
    assert found.count("prompt: ") == 12
    assert not [char for char in found if char < " " and char != "\n"]


def test_sessions_are_pinned_and_archived(home: Home, cwd: Path) -> None:
    for prompt in ("one", "two", "three"):
        home.longboat("run", prompt, cwd=cwd)
    assert titles(home, cwd) == ["three", "two", "one"]
    listed = home.longboat("session", "list", "--format", "json", cwd=cwd).out
    ids = {json.loads(line)["title"]: json.loads(line)["id"] for line in listed.splitlines()}
    pinned = home.longboat("session", "pin", ids["one"], cwd=cwd)
    assert (pinned.code, pinned.out) == (0, f"{ids['one']} pinned\n")
    assert titles(home, cwd) == ["one", "three", "two"]
    assert "★ one" in home.longboat("session", "list", cwd=cwd).out
    archived = home.longboat("session", "archive", ids["two"], cwd=cwd)
    assert (archived.code, archived.out) == (0, f"{ids['two']} archived\n")
    assert titles(home, cwd) == ["one", "three"]
    assert titles(home, cwd, "--archived") == ["two"]
    assert home.longboat("session", "show", ids["two"][:-1], cwd=cwd).code == 0, "found by a prefix all the same"
    home.longboat("session", "unarchive", ids["two"], cwd=cwd)
    home.longboat("session", "unpin", ids["one"], cwd=cwd)
    assert titles(home, cwd) == ["three", "two", "one"]
    assert home.longboat("session", "list", "--archived", cwd=cwd).out == "No archived sessions.\n"
    assert home.longboat("run", "-c", "more", cwd=cwd).code == 0
    assert titles(home, cwd)[0] == "three", "the last one used goes on, not the pinned one"


def test_runs_tell_how_long_they_took_and_who_sent_them(home: Home, cwd: Path) -> None:
    home.longboat("run", "hello", cwd=cwd)
    head, row = home.longboat("runs", cwd=cwd).out.splitlines()
    assert head.split() == ["RUN", "STATE", "ACCEPTED", "TOOK", "COST", "BY", "PROMPT"]
    assert row.split()[1] == "done"
    assert row.split()[-1] == "hello"
    assert re.search(r"  [0-9.]+ (ms|s) ", row)
