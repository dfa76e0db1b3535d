"""What the paths of a shell command are on the disk (A2, D13): the machine's bash says what a pattern matches."""

import os
import subprocess
from pathlib import Path

import pytest
from rules import rules_for

from longboat.permissions.shell.script import parse
from longboat.permissions.verdict import Allow, Ask, Need, judge
from longboat.tools.context import ToolError
from longboat.tools.process.shell_paths import guarded_links, look_up

NAMES = (
    "x[a]b", "xab", "aé", "é", "aÿb", "a]b", "[", "*", "a*b", "a?", "ab c", "a\nb", "A", "Xy", ".hidden", "a\\b", "-",
    "sub/x[a]b", "sub/.dot", "s[u]b/é",
)  # fmt: skip
PATTERNS = (
    "x'[a]'*", "x\\[a]*", '"x["*', "x[a]*", "x[a]b", "a??", "a?", "?", "??", "[[:alpha:]]*", "[!x]*", "[^x]?", "[a-z]*",
    "*'*'*", "*'?'", "*b", "*", ".*", "*\\\\*", "s*/x'[a]'*", "'s[u]b'/*", "*/*", "sub/*", "sub/.*", "[", "'['*", "**",
    "[[=a=]]*", "[[.a.]]*", "a[]]b", "a[!]]*", "x[[]a[]]b", "*é", "a*é*", "$'x[a]'*",
)  # fmt: skip
SETTINGS = (
    "",
    "LC_ALL=C",
    "LC_ALL=C.UTF-8",
    "shopt -s dotglob",
    "shopt -s nocaseglob",
    "shopt -s globstar",
    "sho'pt' -s dotglob",
    "GLOBIGNORE=nothing",
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Every file in it is a link that leads out, each somewhere else."""
    place = tmp_path.resolve() / "work [x]*"
    for at, name in enumerate(NAMES):
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(tmp_path.resolve() / f"outside{at}")
        (tmp_path / f"outside{at}").touch()
    return place


def looked_up(command: str, workspace: Path) -> Need:
    return look_up(Need(tool="bash", action="run", argument=command), workspace, workspace)


def matched_by_bash(settings: str, pattern: str, workspace: Path) -> set[str]:
    script = f"{settings}\nprintf '%s\\0' {pattern}"
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", script],
        cwd=workspace,
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
    )
    return {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_link_that_bash_would_match_is_missed_d13(workspace: Path, settings: str) -> None:
    for pattern in PATTERNS:
        command = f"{settings}\ncat {pattern}"
        if parse(f"cat {pattern}").opaque:
            continue  # It cannot be read, and is asked.
        places = [workspace / name for name in matched_by_bash(settings, pattern, workspace)]
        links = {str(place.readlink()) for place in places if place.is_symlink()}
        assert links <= set(looked_up(command, workspace).paths), pattern


@pytest.mark.parametrize("command", ["cat x'[a]'*", "LC_ALL=C; cat a??", "cat 's[u]b'/*"])
def test_a_pattern_that_matches_a_link_that_leads_out_is_asked_d13(workspace: Path, command: str) -> None:
    need = looked_up(command, workspace)

    assert isinstance(judge(need, rules=rules_for(), directory=str(workspace)), Ask)


def test_an_ordinary_pattern_in_an_ordinary_repository_is_not_asked_d13(tmp_path: Path) -> None:
    """Other links, and guarded files, are no matter for what cannot match them."""
    for name in ("a.py", "src/b.py", ".git/config", "longboat.json", "docs/x.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "latest.txt").symlink_to("/etc/hostname")
    for command in (
        "cat *.py",
        "ls src/*",
        "head -n 3 d*/*.md",
        "wc -l src/*.json",
        "cat src/[a-c].py",
        "cat src/?.py",
    ):
        need = looked_up(command, tmp_path.resolve())
        assert judge(need, rules=rules_for(), directory=str(tmp_path.resolve())) == Allow(), command


def test_a_pattern_in_the_c_locale_may_name_what_is_denied_d13() -> None:
    rules = rules_for(deny=["view(aé)"])

    need = Need(tool="bash", action="run", argument="LC_ALL=C; cat a??")
    assert isinstance(judge(need, rules=rules, directory="/w"), Ask)


def test_a_pattern_that_may_change_a_guarded_file_is_asked_and_one_that_reads_it_is_not(tmp_path: Path) -> None:
    place = tmp_path.resolve()
    (place / "longboat.json").touch()
    (place / ".agents").mkdir()
    (place / ".claude").symlink_to(".agents")
    (place / ".agents" / "a.md").touch()

    assert looked_up("touch *.json", place).paths == (f"{place}/longboat.json",)
    assert looked_up("cat *.json", place).paths == ()
    read = looked_up("cat .claude/a.md", place)
    assert (read.paths, read.only_read) == ((f"{place}/.agents/a.md",),) * 2
    assert judge(read, rules=rules_for(), directory=str(place)) == Allow()


def test_what_a_linked_guarded_name_leads_to_is_guarded_too(tmp_path: Path) -> None:
    place = tmp_path.resolve()
    (place / "conf" / "skills").mkdir(parents=True)
    (place / "conf" / "rules.json").touch()
    (place / "longboat.json").symlink_to("conf/rules.json")
    (place / ".agents").mkdir()
    (place / ".agents" / "skills").symlink_to("../conf/skills")
    (place / ".claude").symlink_to(".agents")
    links = guarded_links(place)

    assert links.name_of(f"{place}/conf/rules.json") == f"{place}/longboat.json"
    assert links.name_of(f"{place}/conf/skills/a/SKILL.md") == f"{place}/.agents/skills/a/SKILL.md"
    assert links.name_of(f"{place}/conf/other") == ""
    assert f"{place}/longboat.json" in looked_up("cp a conf/rules.json", place).paths
    assert looked_up("cat conf/rules.json", place).paths == ()


def test_a_pattern_that_stands_for_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longboat.tools.process.shell_paths.MAX_FITTING", 3)
    for at in range(5):
        (tmp_path / f"a{at}").touch()

    with pytest.raises(ToolError, match="more than 3 files"):
        looked_up("cat a*", tmp_path.resolve())
