"""What a typed line answers, and how an ask reads (A2)."""

from typing import Any

import click
import pytest

from longboat.cli.asks import (
    MAX_LINES,
    Word,
    choices_of,
    describe_end,
    describe_misreading,
    help_of,
    how_to_answer,
    is_answer,
    is_slip,
    render_ask,
    word_of,
)
from longboat.client.subject import subject_of
from longboat.tools.registry import built_in_traits
from longboat.wire.asks import (
    AskState,
    CommandPart,
    CommandPartKind,
    Permission,
    PermissionAnswer,
    PermissionNotification,
    Question,
)
from longboat.wire.typed_answers import answer_in, texts_in


def permission(**changes: Any) -> Permission:
    fields: dict[str, Any] = {
        "id": "p",
        "session_id": "s",
        "run_id": "r",
        "tool_call_id": "c",
        "tool": "bash",
        "action": "run",
        "argument": "make",
        "title": "Run make",
        "detail": "make",
        "why": "no rule allows it",
        "grant": ("bash(make)",),
        "wide": ("bash(make *)",),
        "asked_at": "t",
    }
    return Permission(**fields | changes)


def question(*choices: str, multiple: bool = False, descriptions: tuple[str, ...] = ()) -> Question:
    return Question(
        id="q",
        session_id="s",
        run_id="r",
        tool_call_id="c",
        text="Which?",
        choices=choices,
        descriptions=descriptions,
        multiple=multiple,
        asked_at="t",
    )


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("o", Word(answer=PermissionAnswer.ONCE)),
        (" Once ", Word(answer=PermissionAnswer.ONCE)),
        ("s", Word(answer=PermissionAnswer.SESSION)),
        ("always", Word(answer=PermissionAnswer.ALWAYS)),
        ("sw", Word(answer=PermissionAnswer.SESSION, wide=True)),
        ("always wide", Word(answer=PermissionAnswer.ALWAYS, wide=True)),
        ("d", Word(answer=PermissionAnswer.DENY)),
        ("deny use the other one", Word(answer=PermissionAnswer.DENY, reason="use the other one")),
        ("ow", None),
        ("dw", None),
        ("once more", None),
        ("a lot", None),
        ("y", Word(answer=PermissionAnswer.ONCE)),
        ("no not that one", Word(answer=PermissionAnswer.DENY, reason="not that one")),
        ("", None),
    ],
)
def test_a2_a_line_is_an_answer_or_none(line: str, word: Word | None) -> None:
    assert word_of(permission(), line) == word


@pytest.mark.parametrize("line", ["s", "always", "sw"])
def test_a2_what_cannot_be_granted_is_no_answer(line: str) -> None:
    assert word_of(permission(grant=(), wide=()), line) is None
    assert choices_of(permission(grant=(), wide=())) == "  [y]es, once  [d]eny (reason optional)  [?] help"


def test_a2_where_only_the_wide_form_is_offered_only_that_is_an_answer() -> None:
    ask = permission(grant=())
    assert word_of(ask, "sw") == Word(answer=PermissionAnswer.SESSION, wide=True)
    assert word_of(ask, "s") is None


def test_a2_without_a_wide_form_the_keys_for_it_are_no_answer() -> None:
    assert word_of(permission(wide=()), "aw") is None
    assert word_of(permission(wide=()), "always wide") is None


@pytest.mark.parametrize(
    ("line", "several", "texts"),
    [
        ("2", False, ("blue",)),
        ("3", False, ("3",)),
        ("0", False, ("0",)),
        ("1,2", False, ("1,2",)),
        ("1, 2,1", True, ("red", "blue")),
        ("1, or so", True, ("1, or so",)),
        ("٢", False, ("٢",)),
    ],
)
def test_numbers_stand_for_choices_and_other_words_for_themselves(line: str, several: bool, texts: Any) -> None:
    assert texts_in(question("red", "blue", multiple=several), line) == texts


def lines(ask: Permission | Question, **how: bool) -> list[str]:
    return [click.unstyle(line) for line in render_ask(ask, **how)]


@pytest.mark.parametrize(
    ("line", "several", "slip"),
    [
        ("3", False, True),
        ("0", False, True),
        ("2024", False, True),
        ("2", False, False),
        ("3 of them", False, False),
        ("-3", False, False),
        ("1,3", False, False),
        ("1,3", True, True),
        ("1,2", True, False),
        ("3, red", True, False),
    ],
)
def test_a_number_that_stands_for_no_choice_is_a_slip_and_words_never_are(line: str, several: bool, slip: bool) -> None:
    asked = question("red", "blue", multiple=several)
    assert is_slip(asked, line) is slip
    assert is_answer(asked, line) is not slip


def test_a_choice_may_be_a_number_itself_and_without_choices_any_number_is_an_answer() -> None:
    assert not is_slip(question("8", "16"), "16")
    assert texts_in(question("8", "16"), "16") == ("16",)
    assert is_slip(question("8", "16"), "32")
    assert not is_slip(question(), "9")


def test_a_slip_is_told_what_can_be_said() -> None:
    told = describe_misreading(question("red", "blue"), "9")
    assert told == "'9' is not a choice. The choices are 1 to 2; anything else is taken as your own answer."
    assert "The only choice is 1;" in describe_misreading(question("red"), "9")


def test_the_command_that_answers_says_only_what_this_ask_takes() -> None:
    assert how_to_answer(permission()) == (
        "answer: longboat permissions answer p once   "
        "(or session, always, deny --reason TEXT; --wide for the wider rules)"
    )
    only_once = permission(grant=(), wide=())
    assert how_to_answer(only_once) == "answer: longboat permissions answer p once   (or deny --reason TEXT)"
    assert how_to_answer(question("red")) == (
        "answer: longboat questions answer q 1   (or another number, or your own answer)"
    )
    assert how_to_answer(question("red", "blue", multiple=True)).endswith("answer; several: 1 3)")
    assert how_to_answer(question()) == 'answer: longboat questions answer q "…"'


def test_a2_a_permission_shows_what_why_and_what_would_be_allowed() -> None:
    assert lines(permission()) == [
        "? Run make",
        "    why: no rule allows it",
        "    session, always: will allow bash(make)",
        "    wider rules:     will allow bash(make *)",
    ]


def test_a2_the_parts_of_a_command_stand_below_the_reason_with_a_mark_at_those_that_are_asked() -> None:
    made = CommandPart(kind=CommandPartKind.COMMAND, text="make\x1b[2J", why="no rule allows it")
    looks = CommandPart(kind=CommandPartKind.COMMAND, text="npm test", rule="bash(npm test *)")
    ask = permission(
        title="Run npm test && make",
        argument="npm test && make",
        detail="npm test && make\n\n(in a sandbox)",
        parts=(looks, made),
        more_parts=3,
        wide=(),
        rules_file="~/p/longboat.json",
    )

    assert lines(ask) == [
        "? Run npm test && make",
        "    (in a sandbox)",
        "    why: no rule allows it",
        "    session, always: will allow bash(make)",
        "    always adds the rules to ~/p/longboat.json",
    ]
    assert lines(ask, parts=True)[3:6] == [
        "      ✓ npm test: allowed by bash(npm test *)",
        "      ? make␛[2J: no rule allows it",
        "      … and 3 more",
    ]
    assert not any("✓" in line or "make: " in line for line in lines(permission(parts=(made,))))


def test_a_dangerous_command_says_why_and_which_part_in_words_too() -> None:
    made = CommandPart(kind=CommandPartKind.COMMAND, text="make", why="needs approval", start=0, end=4)
    removes = CommandPart(
        kind=CommandPartKind.COMMAND, text="rm -rf \x1b[2J", why="needs approval", danger="It deletes.", start=8, end=20
    )
    ask = permission(argument="make && rm -rf ü\x1b[2J", parts=(made, removes), danger="It deletes.", grant=(), wide=())

    assert lines(ask) == [
        "? Run make && rm -rf ü␛[2J",
        "    ⚠ Dangerous. It deletes.",
        "      ⚠ rm -rf ␛[2J",
    ]
    marked = next(render_ask(ask))
    assert click.style("rm -rf ü␛[2J", fg="red", bold=True, underline=True) in marked
    assert click.style("make", underline=True) in marked


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("yes", PermissionAnswer.ONCE),
        (" Yes! ", PermissionAnswer.ONCE),
        ("a", PermissionAnswer.ALWAYS),
        ("session", PermissionAnswer.SESSION),
        ("No.", PermissionAnswer.DENY),
        ("yes, but use the other file", None),
        ("actually, use make", None),
        ("", None),
    ],
)
def test_a_whole_word_is_an_answer_and_a_sentence_is_a_reason(text: str, answer: PermissionAnswer | None) -> None:
    assert answer_in(permission(), text) == answer


def test_a_word_for_a_grant_is_no_answer_where_none_is_offered() -> None:
    assert answer_in(permission(grant=(), wide=()), "always") is None
    assert answer_in(permission(grant=()), "always") is PermissionAnswer.ALWAYS


@pytest.mark.parametrize("letter", ["y", "s", "a", "A.", " y "])
def test_no_single_letter_allows_a_dangerous_call(letter: str) -> None:
    dangerous = permission(danger="It deletes files for good.")
    assert answer_in(permission(), letter) is not None
    assert answer_in(dangerous, letter) is None
    assert answer_in(dangerous, "d") is PermissionAnswer.DENY
    assert answer_in(dangerous, "yes") is PermissionAnswer.ONCE


def test_a2_a_rule_of_several_lines_stands_on_one_and_forges_no_other() -> None:
    forged = permission(grant=("bash(= $X\n    wider rules:     will allow bash(ls))",), wide=())

    assert lines(forged)[-1] == "    session, always: will allow bash(= $X wider rules: will allow bash(ls))"


def test_a2_a_long_one_says_that_there_is_more_and_can_be_seen_whole() -> None:
    long = permission(title="Edit a.py", detail="\n".join(f"+{number}" for number in range(MAX_LINES + 5)))
    assert "    … 5 more lines" in lines(long)
    assert "[?] show all" in choices_of(long)
    assert f"    +{MAX_LINES + 4}" in lines(long, whole=True)
    assert "[?] help" in choices_of(permission())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "Type an answer."),
        ("\x1b[2Jfoo bar", "'␛[2Jfoo bar' is not an answer: type one of the letters, then Enter. ? explains them."),
    ],
)
def test_a2_a_line_that_is_no_answer_is_told_why(line: str, told: str) -> None:
    assert describe_misreading(permission(), line) == told


def test_a2_an_answer_that_is_not_offered_is_told_why() -> None:
    only_once = permission(grant=(), wide=())
    assert describe_misreading(only_once, "a").startswith("'a' is not available: this call can only be allowed once.")
    assert "no wider rules" in describe_misreading(permission(wide=()), "sw")


def test_a2_help_says_what_each_answer_does_and_nothing_of_those_that_are_not_offered() -> None:
    told = "\n".join(help_of(permission(wide=())))
    assert "longboat.json" in told
    assert "sw" not in told
    assert "session" not in "\n".join(help_of(permission(grant=(), wide=())))
    several = next(iter(help_of(question("red", "blue", multiple=True))))
    assert several == "  1 to 2: that choice; several with commas: 1,3"


def test_a2_a_line_is_never_cut_short_and_never_moves_the_cursor() -> None:
    command = "echo " + "x" * 3_000 + "\x1b[2K; rm -rf /"
    assert lines(permission(title="Run echo …", detail=command))[1] == "    " + command.replace("\x1b", "␛")


def test_how_it_ended_without_us() -> None:
    told = PermissionNotification(
        id="p",
        session_id="s",
        run_id="r",
        state=AskState.ANSWERED,
        answer=PermissionAnswer.DENY,
        reason="no",
        answered_by="bob",
    )
    assert describe_end(told) == "bob answered: deny (no)"


@pytest.mark.parametrize(
    ("tool", "arguments", "text", "path"),
    [
        ("edit", '{"path": "src/a.py", "old_text": "x", "new_text": "y"}', "src/a.py", "src/a.py"),
        ("grep", '{"pattern": "def ", "path": "src"}', "def  src", "src"),
        ("mcp_thing", '{"number": 3, "place": "here"}', "here", ""),
        ("agent", '{"prompt": "Look.", "agent": "critic"}', "Look. critic", ""),
        (
            "todos",
            '{"items": [{"text": "a", "state": "completed"}, {"text": "b", "state": "in_progress"}]}',
            "1 of 2 done: b",
            "",
        ),
        ("todos", '{"items": 3}', "0 of 0 done", ""),
        ("propose_plan", '{"summary": "s", "items": ["one", "two"]}', "2 steps", ""),
        ("bash", "not json", "", ""),
        ("bash", "", "", ""),
        ("bash", "[" * 5_000, "", ""),
    ],
)
def test_what_a_call_is_about(tool: str, arguments: str, text: str, path: str) -> None:
    subject = subject_of(arguments, built_in_traits().get(tool))
    assert (subject.text, subject.path) == (text, path)


@pytest.mark.parametrize("line", ["y", "Y", "o", "s", "a", "sw", "aw", " y ", "s wide"])
def test_at_the_prompt_too_only_a_whole_word_allows_a_dangerous_call(line: str) -> None:
    dangerous = permission(danger="It deletes files for good.")
    assert not is_answer(dangerous, line)
    assert "type the whole word, such as yes. d denies it." in describe_misreading(dangerous, line)
    assert is_answer(permission(), line)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("yes", Word(answer=PermissionAnswer.ONCE)),
        ("once", Word(answer=PermissionAnswer.ONCE)),
        ("Session", Word(answer=PermissionAnswer.SESSION)),
        ("always wide", Word(answer=PermissionAnswer.ALWAYS, wide=True)),
        ("d use make", Word(answer=PermissionAnswer.DENY, reason="use make")),
        ("n", Word(answer=PermissionAnswer.DENY)),
    ],
)
def test_the_words_that_answer_a_dangerous_call(line: str, word: Word) -> None:
    assert word_of(permission(danger="It deletes files for good."), line) == word


def test_a_dangerous_call_offers_the_words_that_it_takes() -> None:
    dangerous = permission(danger="It deletes files for good.")
    assert choices_of(dangerous) == (
        "  [yes] once  [session]  [always]  [session wide], [always wide]  [d]eny (reason optional)  [?] help"
    )
    assert next(help_of(dangerous)) == "  yes, once: allow this call only"


def test_choices_are_listed_with_what_they_mean_and_nothing_in_it_acts() -> None:
    asked = question("Up", "Down", "Even", descriptions=("away from\nzero\x1b[2J", ""))
    assert [click.unstyle(line) for line in render_ask(asked)] == [
        "? Which?",
        "    1. Up",
        "       away from zero␛[2J",
        "    2. Down",
        "    3. Even",
    ]
