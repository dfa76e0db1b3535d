"""What a rule for the whole of a tool leaves to be asked (A2): places outside the workspace, what cannot be parsed."""

import re

import pytest
import shell_attacks
from hypothesis import given
from hypothesis import strategies as st
from rules import parse_rule, parse_rules, rules_for
from shell_attacks import TRICKS, UNCOVERED
from shell_corpus import ALLOWED, ASKED, DENIED, DIRECTORY, PIECES, WHOLE_ALLOWED, WHOLE_ASKED
from shell_reader_attacks import HIDDEN_PUSHES, NO_PUSHES

from cases import for_each
from longboat.permissions.shell.script import parse
from longboat.permissions.verdict import Allow, Ask, Deny, Need, Offer, Rules, Verdict, grant_for, judge, may_be_denied

WHOLE = rules_for(allow=["bash"])
FOR_ONCE_ONLY = re.compile(
    r"""\.git(?![\w.-])|longboat\.json|\A(?:7z|cp|cpio|patch|rsync|tar|unzip)\b|rm\ -rf\ /;|find\ .*-delete
    |(?:xargs|-exec|-ok)\b.*\brm\b|\b(?:tee|cp|mv|touch|rm|ln|sed\ -i)\b.*[$~`]|>\ *"?[^ ]*[$~`]""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""What changes guarded files, or everything, or files that only the run tells."""
NO_PUSH = rules_for(allow=["bash"], deny=["bash(git push *)"])


def need(command: str, *, paths: tuple[str, ...] = (), directory: str = "") -> Need:
    return Need(tool="bash", action="run", argument=command, paths=paths, directory=directory)


def bash(command: str, rules: Rules = WHOLE, *grants: str, paths: tuple[str, ...] = ()) -> Verdict:
    return judge(need(command, paths=paths), rules=rules, grants=parse_rules(grants), directory=DIRECTORY)


@for_each("command", WHOLE_ASKED)
def test_the_whole_of_bash_covers_no_place_outside_and_nothing_unparsed_a2(command: str) -> None:
    assert isinstance(bash(command), Ask)
    assert isinstance(bash(command, rules_for(allow=["bash(*)"])), Ask)


@for_each("command", WHOLE_ALLOWED)
def test_the_whole_of_bash_covers_what_stays_inside_a2(command: str) -> None:
    assert bash(command) == Allow()


@for_each("command", HIDDEN_PUSHES)
def test_what_may_turn_out_to_be_denied_is_asked_beside_the_whole_of_bash_d14(command: str) -> None:
    assert bash(command, NO_PUSH) != Allow()
    assert may_be_denied(need(command), rules=NO_PUSH, directory=DIRECTORY) or isinstance(bash(command, NO_PUSH), Deny)


@for_each("command", NO_PUSHES)
def test_what_cannot_be_denied_is_done_beside_the_whole_of_bash_d14(command: str) -> None:
    assert bash(command, NO_PUSH) == Allow()


@for_each("command", sorted({*ALLOWED, *ASKED, *DENIED, *TRICKS, *UNCOVERED}))
@for_each("allowed", [(), ("bash",)])
def test_an_answer_for_the_session_ends_the_asking_for_the_same_command_a2(
    command: str, allowed: tuple[str, ...]
) -> None:
    rules = rules_for(allow=allowed)
    offer = grant_for(need(command), rules=rules, directory=DIRECTORY)

    if bash(command, rules) == Allow():
        assert offer == Offer()
        return
    unprintable = not command.replace("\n", "").replace("\t", "").isprintable()
    assert offer.narrow or unprintable or FOR_ONCE_ONLY.search(command)
    for granted in filter(None, (offer.narrow, offer.wide)):
        assert bash(command, rules, *granted) == Allow(), granted
        assert bash(command, rules_for(allow=[*granted, *allowed])) == Allow(), granted


@pytest.mark.parametrize(
    ("command", "narrow"),
    [
        ("cat /etc/passwd", ["bash(cat /etc/passwd)"]),
        ("rm -rf /home/x && make", ["bash(rm -rf /home/x)"]),
        ("echo x > /etc/cron.d/y", ["write(/etc/cron.d/y)"]),
        ('eval "$X"', ['bash(= eval "$X")']),
        ("cat ~/.ssh/id_rsa", ["bash(= cat ~/.ssh/id_rsa)"]),
        ("cat $X; cat /etc/x", ["bash(= cat $X; cat /etc/x)"]),
    ],
)
def test_what_is_offered_where_the_whole_of_bash_is_not_enough_a2(command: str, narrow: list[str]) -> None:
    assert grant_for(need(command), rules=WHOLE, directory=DIRECTORY) == Offer(narrow=tuple(narrow))


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("bash(cat /etc/*)", "cat /etc/passwd"),
        ("bash(rm -rf /home/x)", "rm -rf /home/x"),
        ("edit(/etc/cron.d/**)", "echo x > /etc/cron.d/y"),
        ("edit(/tmp/**)", "cp -r src /tmp/a && ls /tmp/a > /tmp/b"),
        ("view(/opt/data/**)", "sort < /opt/data/x"),
        ('bash(= eval "$X")', '  eval "$X"\n'),
    ],
)
def test_a_rule_that_names_the_place_or_the_text_is_enough_beside_the_whole_of_bash_a2(rule: str, command: str) -> None:
    assert bash(command, WHOLE, rule) == Allow()
    assert isinstance(bash(f"{command}\ncat /var/x", WHOLE, rule), Ask)


def test_a_rule_for_a_text_is_for_that_text_and_directory_alone() -> None:
    rules = rules_for(allow=['bash(= eval "$X")', "bash(= cd sub && cat ../$Y)"])

    assert bash('eval "$X"', rules) == Allow()
    assert [command for command in ('eval "$X" ', "eval $X", 'eval "$X" y') if bash(command, rules) == Allow()] == [
        'eval "$X" '
    ]
    assert isinstance(
        judge(need('eval "$X"', directory=f"{DIRECTORY}/sub"), rules=rules, directory=DIRECTORY),
        Ask,
    )
    below = need("cat ../$Y", directory=f"{DIRECTORY}/sub")
    assert judge(below, rules=rules, directory=DIRECTORY) == Allow()
    assert grant_for(below, rules=rules_for(), directory=DIRECTORY).narrow == ("bash(= cd sub && cat ../$Y)",)


def test_a_rule_for_a_text_can_deny_it_and_never_goes_before_a_denial_a2() -> None:
    assert bash("eval x", rules_for(allow=["bash"], deny=["bash(= eval x)"])) == Deny("bash(= eval x)")
    assert isinstance(bash("eval x", rules_for(deny=["bash(rm *)"]), "bash(= eval x)"), Ask)
    assert bash("rm $x", rules_for(deny=["bash(rm *)"]), "bash(= rm $x)") == Deny("bash(rm *)")


def test_a_text_that_is_too_long_or_cannot_be_shown_is_allowed_once_at_most() -> None:
    for command in ("eval " + "x" * 3_000, "eval x\x1b[2J", "eval \u202ex"):
        assert grant_for(need(command), rules=WHOLE, directory=DIRECTORY) == Offer()


def test_a_link_that_leads_out_is_asked_beside_a_text_and_offered_with_it_a2() -> None:
    linked = need("cat link $x", paths=("/etc/x",))
    offer = grant_for(linked, rules=WHOLE, directory=DIRECTORY)

    assert isinstance(judge(linked, rules=WHOLE, grants=parse_rules(["bash(= cat link $x)"]), directory=DIRECTORY), Ask)
    assert set(offer.narrow) == {"edit(/etc/x)", "bash(= cat link $x)"}
    assert judge(linked, rules=WHOLE, grants=parse_rules(offer.narrow), directory=DIRECTORY) == Allow()


@pytest.mark.parametrize(
    "tool",
    [
        "definition",
        "diagnostics",
        "edit",
        "glob",
        "grep",
        "ls",
        "multiedit",
        "references",
        "rename",
        "symbols",
        "view",
        "write",
    ],
)
def test_a_rule_for_a_whole_tool_of_files_covers_no_place_outside_a2(tool: str) -> None:
    outside = Need(tool=tool, action="touch", argument="/etc/x", paths=("/etc/x",))
    rules = rules_for(allow=[tool, "edit", "bash"])
    offer = grant_for(outside, rules=rules, directory=DIRECTORY)

    assert isinstance(judge(outside, rules=rules, directory=DIRECTORY), Ask)
    assert judge(outside, rules=rules, grants=parse_rules(offer.narrow), directory=DIRECTORY) == Allow()


def test_a_download_to_a_place_outside_is_asked_whatever_is_allowed_a2() -> None:
    outside = Need(tool="download", action="get", argument="https://x.org/a", paths=("/etc/x",))

    assert isinstance(judge(outside, rules=rules_for(allow=["download", "edit"]), directory=DIRECTORY), Ask)


def test_what_an_approved_run_may_do_hangs_on_denials_alone_a2() -> None:
    """`--yolo` does what a person would be asked, but nothing that may be denied."""
    rules = rules_for(deny=["bash(rm *)"])

    assert may_be_denied(need("cat /etc/passwd > /tmp/x"), rules=rules, directory=DIRECTORY) == ""
    assert may_be_denied(need("cat link", paths=("/etc/x",)), rules=rules, directory=DIRECTORY) == ""
    assert "bash(rm *)" in may_be_denied(need("eval x"), rules=rules, directory=DIRECTORY)
    assert may_be_denied(need("eval x"), rules=rules_for(), directory=DIRECTORY) == ""


def test_a_text_is_no_pattern_of_words() -> None:
    assert parse_rule("bash(= a; b > $x)").text == "bash(= a; b > $x)"
    assert isinstance(bash("= a", rules_for(allow=["bash(= b)"])), Ask)


NOISE = st.lists(
    st.sampled_from([*PIECES, " /etc/x ", "> /etc/x", " ~/x ", "eval ", " ../.. "]) | st.text(max_size=3), max_size=5
).map("".join)
COMMANDS = st.sampled_from(["make all", "npm test -- a", "cat < a", "echo 'a b' > src/o", "rm -rf out", "git push"])


@given(command=COMMANDS, place=st.integers(0, 20), noise=NOISE)
def test_no_unparsed_part_and_no_place_outside_is_allowed_by_the_whole_of_bash_a2(
    command: str, place: int, noise: str
) -> None:
    text = command[:place] + noise + command[place:]
    if bash(text) != Allow():
        return
    script = parse(text)
    moves = any(each.words[0].text in ("cd", "pushd") for each in script.commands)

    assert script.opaque == ""
    assert not any(each.target.text.startswith(("/etc", "~")) for each in script.redirections)
    words = [word for each in script.commands if each.words[0].text != "echo" for word in each.words]
    assert not any(word.literal and word.text.startswith(("/etc", "../..")) for word in words)
    assert moves or not any(word.literal and word.text == ".." for word in words)


@for_each("command", shell_attacks.EVERYDAY)
def test_an_everyday_command_is_not_asked_where_the_whole_of_bash_is_allowed(command: str) -> None:
    assert judge(need(command), rules=WHOLE, directory=shell_attacks.DIRECTORY) == Allow()
