"""No script that runs unasked tells the value of a variable of the environment (D14): bash itself is the judge.

Scripts are made by chance out of comparisons, branches, loops and settings. Those that would run unasked are run with
two values of the same variables, and must not show a difference.
"""

import random
import subprocess
from pathlib import Path

import pytest
from rules import rules_for

from longboat.permissions.verdict import Allow, Need, judge

SECRETS = ("aaa", "sb b", "")
FOREIGN = ("TOKEN", "token", "x", "y", "1", "@")
EXPANSIONS = (
    *("${0}", "${{{0}}}", "${{{0}:0:1}}", "${{{0}%%b*}}", "${{{0}##a*}}", "${{#{0}}}", "${{{0}:-n}}", "${{{0}:+y}}"),
    *("${{{0}:?e}}", "${{{0}:=z}}", "${{{0}/a/b}}", "${{{0}^^}}", '"${0}"', "${{{0}:-$TOKEN}}", "${{{0}%$TOKEN}}"),
)
PLAIN_WORDS = ("a", "'s*'", "aa", "'a b'", "1", "a*", "[a-m]*", "f", "''")
COMMANDS = (
    "echo b",
    "true",
    "false",
    ":",
    "echo $?",
    "cat f",
    "pwd",
    "ls",
    "echo f*",
    "exit 3",
    "export CI=1",
    "export",
)


class Scripts:
    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def script(self) -> str:
        return "; ".join(self._statement(0) for _ in range(self._chance.randint(1, 3)))

    def _word(self) -> str:
        if self._chance.random() < 0.5:
            return self._chance.choice(PLAIN_WORDS)
        return self._chance.choice(EXPANSIONS).format(self._chance.choice(FOREIGN))

    def _simple(self) -> str:
        forms = (
            lambda: f"{self._chance.choice(('x', 'y', 'token'))}{self._chance.choice(('=', '=', '+='))}{self._word()}",
            lambda: f"{self._chance.choice(('x', 'TZ', 'LC_ALL'))}={self._word()} date +%Z",
            lambda: f"cat <<< {self._word()}",
            lambda: f"[ {self._word()} = a ]",
            lambda: self._chance.choice(COMMANDS),
            lambda: self._chance.choice(COMMANDS),
            lambda: f"[[ {self._word()} {self._chance.choice(('==', '!='))} {self._word()} ]]",
            lambda: f"[[ {self._chance.choice(('-n', '-z', '-f', '-d'))} {self._word()} ]]",
        )
        return self._chance.choice(forms)()

    def _statement(self, depth: int) -> str:
        if depth > 2:
            return self._simple()

        def inner() -> str:
            return self._statement(depth + 1)

        forms = (
            self._simple,
            lambda: f"{inner()} {self._chance.choice(('&&', '||', '|', ';'))} {inner()}",
            lambda: f"if {inner()}; then {inner()}; else {inner()}; fi",
            lambda: f"case {self._word()} in {self._word()}) {inner()};; *) {inner()};; esac",
            lambda: f"for {self._chance.choice('ixy')} in {self._word()} {self._word()}; do {inner()}; done",
            lambda: f"( {inner()} )",
            lambda: f"{{ {inner()}; }}",
            lambda: f"z=$({inner()})",
        )
        return self._chance.choice(forms)()


def shown_with(text: str, secret: str, directory: Path) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", text],
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", **dict.fromkeys(("TOKEN", "token", "x", "y"), secret)},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def runs_unasked(text: str, directory: Path) -> bool:
    need = Need(tool="bash", action="run", argument=text)
    return judge(need, rules=rules_for(), directory=str(directory)) == Allow()


@pytest.mark.parametrize("seed", range(4))
def test_what_runs_unasked_is_the_same_whatever_the_environment_holds_d14(seed: int, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("content\n")
    scripts = Scripts(seed)
    texts = [text for text in (scripts.script() for _ in range(2_000)) if "$" in text and runs_unasked(text, tmp_path)]
    assert len(texts) > 20

    for text in texts:
        assert len({shown_with(text, secret, tmp_path) for secret in SECRETS}) == 1, text


@pytest.mark.parametrize("text", ["[[ $TOKEN == s* ]]", "case $x in a*) echo a;; esac", "TZ=$TOKEN date +%Z", "export"])
def test_these_do_tell_and_are_asked_d14(text: str, tmp_path: Path) -> None:
    assert len({shown_with(text, secret, tmp_path) for secret in SECRETS}) > 1
    assert not runs_unasked(text, tmp_path)
