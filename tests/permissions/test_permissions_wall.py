"""Which commands run behind the wall (A2): those that are allowed because every part of them only looks."""

import pytest
import shell_attacks
from rules import parse_rules, rules_for

from cases import for_each
from longboat.permissions.shell.harmless import EXACT_FORMS
from longboat.permissions.verdict import Allow, Ask, Deny, Need, Verdict, grant_for, judge

DIRECTORY = "/w/p"


def bash(
    command: str, *allow: str, deny: tuple[str, ...] = (), outside: bool = False, has_wall: bool = True
) -> Verdict:
    need = Need(tool="bash", action="run", argument=command, outside=outside, has_wall=has_wall)
    return judge(need, rules=rules_for(allow=allow, deny=deny), directory=DIRECTORY)


def is_walled(verdict: Verdict) -> bool:
    return isinstance(verdict, Allow) and verdict.harmless


@for_each("command", shell_attacks.EVERYDAY)
def test_a_command_that_no_rule_allows_runs_behind_the_wall(command: str) -> None:
    assert is_walled(bash(command))


@pytest.mark.parametrize(
    ("command", "allow"),
    [
        ("ls", ["bash"]),
        ("ls", ["bash(ls)"]),
        ("git status && make test", ["bash(make test)"]),
        ("git log | make test", ["bash(make test)"]),
        ("make test > out/log", ["bash(make test)", "edit(out/**)"]),
        ("x=1", ["bash"]),
    ],
)
def test_what_rules_allow_or_take_part_in_runs_as_ever(command: str, allow: list[str]) -> None:
    verdict = bash(command, *allow)
    assert verdict == Allow()
    assert not is_walled(verdict)


@pytest.mark.parametrize(
    ("command", "allow"),
    [("ls && git status", ["bash(ls)"]), ("git status", ["bash(make *)", "edit(src/**)"]), ("x=1", ["bash(make *)"])],
)
def test_rules_that_do_not_allow_all_of_a_harmless_command_open_no_wall(command: str, allow: list[str]) -> None:
    assert is_walled(bash(command, *allow))


@pytest.mark.parametrize("command", ["ls", "git status --short", "x=1", "< a", "ls | wc -l", "cat a && git log"])
def test_outside_the_wall_a_harmless_command_needs_a_rule_or_a_person(command: str) -> None:
    verdict = bash(command, outside=True)
    assert isinstance(verdict, Ask)
    need = Need(tool="bash", action="run", argument=command, outside=True)
    offer = grant_for(need, rules=rules_for(), directory=DIRECTORY)
    granted = judge(need, rules=rules_for(), grants=parse_rules(offer.narrow), directory=DIRECTORY)
    assert granted == Allow(), offer
    assert not is_walled(granted)
    assert bash(command, "bash", outside=True) == Allow()


def test_outside_the_wall_denials_hold() -> None:
    assert isinstance(bash("git log", "bash", deny=("bash(git log *)",), outside=True), Deny)


def test_without_a_wall_only_exact_commands_are_harmless() -> None:
    for command in EXACT_FORMS:
        assert is_walled(bash(command, has_wall=False)), command
    asked = [command for command in shell_attacks.EVERYDAY if isinstance(bash(command, has_wall=False), Ask)]
    assert set(shell_attacks.EVERYDAY) - set(asked) <= EXACT_FORMS
    others = ("ls ", "ls -la src", "git  status", "git log -5", "cat a", "x=1", "< a", "ls; ls", "echo hi", "")
    assert [command for command in others if not isinstance(bash(command, has_wall=False), Ask)] == []


def test_without_a_wall_rules_count_as_ever() -> None:
    assert bash("cat a && make test", "bash(cat *)", "bash(make test)", has_wall=False) == Allow()
