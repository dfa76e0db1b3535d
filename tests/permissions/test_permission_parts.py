"""What a shell command that is asked is made of, for the person who is asked (A2)."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from rules import rules_for
from shell_corpus import ASKED, DIRECTORY, PIECES

from cases import for_each
from longboat.permissions.shell.summary import MAX_PARTS, MAX_TEXT
from longboat.permissions.verdict import Ask, Deny, Need, Rules, grant_for, judge, parts_of
from longboat.wire.asks import CommandPart, CommandPartKind, Permission
from work import check_proportion

RULES = rules_for(allow=["bash(npm test *)", "edit(src/**)"], deny=["view(.env)"])


def parts(command: str, rules: Rules = RULES, **fields: str) -> tuple[CommandPart, ...]:
    """Without places and dangers: `test_danger` has those."""
    need = Need(tool="bash", action="run", argument=command, **fields)  # type: ignore[arg-type]
    found = parts_of(need, rules=rules, directory=DIRECTORY)[0]
    return tuple(replace(part, start=None, end=None, danger="") for part in found)


def command(text: str, why: str = "", rule: str = "") -> CommandPart:
    return CommandPart(kind=CommandPartKind.COMMAND, text=text, why=why, rule=rule)


def redirection(text: str, why: str = "", rule: str = "") -> CommandPart:
    return CommandPart(kind=CommandPartKind.REDIRECTION, text=text, why=why, rule=rule)


def whole(why: str) -> CommandPart:
    return CommandPart(kind=CommandPartKind.WHOLE, text="", why=why)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "npm test && curl x.org > /tmp/x; ls",
            (
                command("npm test", rule="bash(npm test *)"),
                command("curl x.org", "needs approval"),
                command("ls"),
                redirection("> /tmp/x", "outside the workspace"),
            ),
        ),
        ('eval "$X"; ls', (command('eval "$X"', "“eval” can run anything"), command("ls"))),
        (
            "timeout 5 bash -c 'cat /etc/passwd'; A=1 bash -c 'eval x'",
            (
                command("cat /etc/passwd", "/etc/passwd is outside the workspace."),
                command("A=1 eval x", "“eval” can run anything"),
            ),
        ),
        (
            "cat .env > src/a < $Y",
            (
                command("cat .env", "It names .env, which the deny rule view(.env) may cover."),
                redirection("> src/a", rule="edit(src/**)"),
                redirection("< $Y", "only known when it runs"),
            ),
        ),
        (
            "PATH=x make 'a b' $C; export PATH=y",
            (
                command("PATH=x make 'a b' $C", "$C may be outside the workspace."),
                whole("It sets PATH for the commands that follow."),
            ),
        ),
        ("ls; echo 'a", (command("ls"), whole("This command cannot be checked: a quote is not closed."))),
        (
            "sudo eval x",
            (
                command("sudo eval x", "needs approval"),
                whole("This command cannot be checked: “eval” can run anything."),
            ),
        ),
    ],
)
def test_each_part_says_what_allows_it_or_why_it_is_asked_a2(text: str, expected: tuple[CommandPart, ...]) -> None:
    assert parts(text) == expected


def test_the_rule_for_the_whole_of_bash_is_told_too() -> None:
    assert parts("make > a; cat /etc/x", rules_for(allow=["bash"])) == (
        command("make", rule="bash"),
        command("cat /etc/x", "/etc/x is outside the workspace."),
        redirection("> a", rule="bash"),
    )


def test_other_tools_have_no_parts() -> None:
    need = Need(tool="view", action="read", argument="/etc/x", paths=("/etc/x",))

    assert parts_of(need, rules=RULES, directory=DIRECTORY) == ((), 0)


def test_parts_are_bounded_in_number_and_length_and_the_reasons_come_first() -> None:
    many = "; ".join(f"ls {number}" for number in range(MAX_PARTS)) + "; make " + "x" * 1_000
    need = Need(tool="bash", action="run", argument=many)
    told, left_out = parts_of(need, rules=RULES, directory=DIRECTORY)

    assert (len(told), left_out) == (MAX_PARTS, 1)
    assert told[0].text.startswith("make xxx")
    assert len(told[0].text) == MAX_TEXT


@for_each("text", ASKED)
def test_whatever_is_asked_has_a_part_that_is_the_reason_a2(text: str) -> None:
    need = Need(tool="bash", action="run", argument=text)

    if isinstance(judge(need, rules=RULES, directory=DIRECTORY), Ask):
        assert any(part.why for part in parts(text))


@given(text=st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_the_parts_and_the_verdict_agree_a2(text: str) -> None:
    verdict = judge(Need(tool="bash", action="run", argument=text), rules=RULES, directory=DIRECTORY)
    assume(not isinstance(verdict, Deny))

    assert any(part.why for part in parts(text)) == isinstance(verdict, Ask)


@pytest.mark.parametrize("piece", ["eval a; ", "cat /etc/x;", "> a ", "make a$x;"])
def test_the_parts_of_a_long_command_are_told_in_steps_in_proportion(piece: str) -> None:
    rules = rules_for(allow=["bash", "bash(= x)", "bash(cat *)"], deny=["view(.env)", "bash(rm *)"])

    def tell(times: int) -> None:
        need = Need(tool="bash", action="run", argument=piece * times)
        grant_for(need, rules=rules, directory=DIRECTORY)
        parts_of(need, rules=rules, directory=DIRECTORY)

    check_proportion(tell, 60)


def permission(**fields: object) -> Permission:
    known = dict.fromkeys(("id", "session_id", "run_id", "tool_call_id", "action", "why", "asked_at"), "x")
    return Permission(**known | {"tool": "bash", "grant": ()} | fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("title", "argument", "detail", "beyond"),
    [
        ("Run make", "make\n", "make\n", ""),
        ("Run make", "make", "make\n\n(in a sandbox)", "(in a sandbox)"),
        ("Run make …", "make\nls", "make\nls", "make\nls"),
        ("Fetch https://x.org", "https://x.org", "", ""),
        ("Edit a", "a", "--- a\n+++ a", "--- a\n+++ a"),
    ],
)
def test_what_the_title_says_is_not_said_twice(title: str, argument: str, detail: str, beyond: str) -> None:
    assert permission(title=title, argument=argument, detail=detail).beyond_title == beyond


def test_a_rule_for_the_text_of_the_command_does_not_repeat_it() -> None:
    ask = permission(
        title="", detail="", argument="eval $X\n", grant=("bash(= eval $X)", "bash(ls)"), wide=("bash(ls *)",)
    )

    assert ask.told_rules() == ("exactly this command", "bash(ls)")
    assert ask.told_rules(wide=True) == ("bash(ls *)",)


def test_parts_are_told_where_there_are_several_each_on_one_line() -> None:
    made, looks = command("make 'a\nb'", "needs approval"), command("ls")
    of_two = permission(title="", argument="", detail="", parts=(made, looks))

    assert permission(title="", argument="", detail="", parts=(made,)).shown_parts == ()
    assert [part.describe() for part in of_two.shown_parts] == [
        "? make 'a b': needs approval",
        "✓ ls: needs no approval",
    ]
    assert command("x", rule="bash(x)").describe() == "✓ x: allowed by bash(x)"
    assert whole("It sets PATH.").describe() == "? It sets PATH."
