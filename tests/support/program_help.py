"""What the installed programs say of their own options: for tests that compare it with ours."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNKNOWN = "--definitely-not-an-option"

_OPTION = re.compile(
    r"(?P<name>--[A-Za-z][\w-]*|-[A-Za-z0-9.])"
    r"(?P<value>\[[=<][^\]]*\]|=\S+| <[^>]+>|<[^>]+>| [A-Z][A-Z_]*(?=[\s,]|$))?"
)
_DESCRIBED = re.compile(r"\s{2,}(?=[^-\s])|\t")
_REFUSED = re.compile(
    r"(?:unrecognized|unknown|invalid|illegal) (?:option|flag|predicate)|unrecognized argument"
    r"|wasn't expected|unexpected argument|tree: invalid argument",
    re.IGNORECASE,
)


def run(argv: list[str], directory: Path) -> str:
    """What it prints. Nothing is read, and nothing of the user's is used."""
    environ = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(directory), "GIT_OPTIONAL_LOCKS": "0"}
    done = subprocess.run(
        argv,
        cwd=directory,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=30,
        check=False,
    )
    return done.stdout + done.stderr


def installed(name: str) -> str:
    if sys.platform != "linux":
        pytest.skip("the tables are compared with the GNU tools")
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def help_of(argv: list[str], directory: Path) -> str:
    installed(argv[0])
    return run([*argv, "-h" if argv[0] == "git" else "--help"], directory)


def options_in(text: str) -> dict[str, str]:
    """Every option that a help names: `no`, `yes` or `maybe` says whether it takes a value.

    Of `-f, --file=FILE` the value belongs to both; of `-F, --classify[=WHEN]` to the long one alone.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not re.match(r"\s{1,8}-", line):  # Further in, it is text.
            continue
        shown = _DESCRIBED.split(line.strip(), maxsplit=1)[0]
        here = {each["name"]: _takes(each["value"]) for each in _OPTION.finditer(shown) if _begins(shown, each.start())}
        required = "yes" in here.values()
        for name, takes in here.items():
            found.setdefault(name, "yes" if required else takes)
    return found


def _begins(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] in " ,|"


def _takes(value: str | None) -> str:
    if not value:
        return "no"
    return "maybe" if value.startswith("[") else "yes"


def takes_no_value(argv: list[str], directory: Path) -> bool:
    """Whether the program reads the word behind these as another option: it complains of one that it does not know."""
    said = run([*argv, UNKNOWN], directory)
    if said.startswith("usage: git"):  # All that some of its subcommands say of what they do not know.
        return not run(argv, directory).startswith("usage: git")
    return bool(_REFUSED.search(said)) and UNKNOWN.lstrip("-") in said
