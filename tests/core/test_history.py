"""The transcript: repaired so that the next request is valid, and shown so that the model sees what it should."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longboat.core.history import (
    NOT_RUN,
    SUMMARY_LEAD,
    calls_of,
    close_message,
    close_turn,
    for_model,
    group_calls,
    is_object,
    missing_results,
    not_begun,
    text_of,
    with_results,
)
from longboat.wire.models import (
    FilePart,
    FinishPart,
    FinishReason,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from longboat.wire.tools import Effect, SubAgents, ToolTraits

AT = "2026-01-01T00:00:00.000000Z"
LATER = "2026-01-01T00:00:01.000000Z"
END = FinishPart(reason=FinishReason.END_TURN)
CANCELED = FinishPart(reason=FinishReason.CANCELED)


def message(role: Role, *parts: Part, seq: int = 1, finished: bool = True) -> Message:
    return Message(
        id=f"m{seq}",
        session_id="s",
        run_id="r",
        seq=seq,
        role=role,
        parts=parts,
        created_at=AT,
        finished_at=AT if finished else None,
    )


def call(call_id: str, given: str = "{}", *, finished: bool = True) -> ToolCallPart:
    return ToolCallPart(id=call_id, name="look", input=given, finished=finished)


def result(call_id: str, content: str = "seen", *, is_error: bool = False) -> ToolResultPart:
    return ToolResultPart(tool_call_id=call_id, name="look", content=content, is_error=is_error)


def blank(role: Role) -> Message:
    return message(role, seq=99, finished=False)


def lost(call_id: str) -> ToolResultPart:
    return result(call_id, "lost", is_error=True)


def test_text_and_calls_of_a_message() -> None:
    mixed = message(Role.ASSISTANT, TextPart(text="a"), ReasoningPart(text="hm"), call("c1"), TextPart(text="b"), END)
    assert text_of(mixed) == "ab"
    assert calls_of(mixed) == [call("c1")]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("{}", True),
        ('{"a": [1, {"b": null}]}', True),
        ("", False),
        ('{"a": "x', False),
        ("[]", False),
        ("null", False),
        ("{} {}", False),
        ('{"a":' * 5_000, False),
        ('{"a": "\ud800"}', False),
    ],
)
def test_a_calls_input_is_one_whole_json_object_or_not(text: str, whole: bool) -> None:
    """T3: also when it nests deeper than any parser goes, or cannot be encoded."""
    assert is_object(text) is whole


def test_a_closed_message_has_one_finish_and_no_open_call() -> None:
    """T3: truncated arguments become an empty object; what was said stays."""
    half = message(Role.ASSISTANT, TextPart(text="so"), call("c1", '{"a', finished=False), finished=False)
    closed = close_message(half, CANCELED, at=LATER)
    assert closed.parts == (TextPart(text="so"), call("c1"), CANCELED)
    assert closed.finished_at == LATER
    again = close_message(closed, END, at="never")
    assert again.parts == (TextPart(text="so"), call("c1"), END)
    assert again.finished_at == LATER
    assert close_message(half, None, at=LATER).parts == (TextPart(text="so"), call("c1"))


def test_every_call_without_a_result_gets_one() -> None:
    """T3: in the order of the calls, across messages."""
    messages = [
        message(Role.ASSISTANT, call("c1"), call("c2")),
        message(Role.TOOL, result("c2"), seq=2),
        message(Role.ASSISTANT, call("c3"), seq=3),
    ]
    assert missing_results(messages, "lost") == [lost("c1"), lost("c3")]
    assert missing_results([*messages, message(Role.TOOL, result("c1"), result("c3"), seq=4)], "lost") == []


def test_a_call_that_waited_for_somebody_and_those_behind_it_were_not_run() -> None:
    """A2: the one before them may have been."""
    messages = [message(Role.ASSISTANT, call("c1"), call("c2"), call("c3"))]
    waiting = not_begun(messages, {"c2", "elsewhere"})
    assert waiting == {"c2", "c3"}
    told = [result.content for result in missing_results(messages, "lost", not_run=waiting)]
    assert told == ["lost", NOT_RUN, NOT_RUN]
    assert not_begun(messages, {"elsewhere"}) == frozenset()


LOOKS = ToolTraits(effect=Effect.READS, side_by_side=True)
FETCHES = ToolTraits(sub_agents=SubAgents.ALL, side_by_side=True)
DELEGATES = ToolTraits(effect=Effect.NOTHING, side_by_side=True)
TRAITS = {
    "look": LOOKS,
    "fetch": FETCHES,
    "agent": DELEGATES,
    "other": DELEGATES,
    "edit": ToolTraits(effect=Effect.CHANGES),
    "wait": ToolTraits(effect=Effect.READS),
    "gone": None,
}


def made(names: str) -> list[ToolCallPart]:
    return [
        ToolCallPart(id=f"c{at}", name=name, input="{}", finished=True, traits=TRAITS[name])
        for at, name in enumerate(names.split())
    ]


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        ("", []),
        ("look fetch look", ["look fetch look"]),
        ("look edit look look", ["look", "edit", "look look"]),
        ("agent agent look agent", ["agent agent", "look", "agent"]),
        ("agent other", ["agent", "other"]),
        ("wait wait look", ["wait", "wait", "look"]),
        ("gone gone", ["gone", "gone"]),
        ("look " * 9, ["look " * 8, "look"]),
        ("agent " * 9, ["agent " * 9]),
    ],
)
def test_calls_are_made_at_once_where_their_traits_say_so(names: str, groups: list[str]) -> None:
    """A1: reads beside any reads, sub-agents beside their own kind; everything else alone."""
    assert [" ".join(each.name for each in group) for group in group_calls(made(names))] == [
        group.strip() for group in groups
    ]


def test_a_call_that_ran_beside_one_that_waited_may_have_been_run() -> None:
    """A2: those in later groups were not."""
    messages = [message(Role.ASSISTANT, *made("edit look fetch look edit look"))]
    assert not_begun(messages, {"c2"}) == {"c2", "c4", "c5"}
    assert not_begun(messages, {"c1", "c3"}) == {"c1", "c3", "c4", "c5"}
    assert not_begun(messages, {"c0"}) == {"c0", "c1", "c2", "c3", "c4", "c5"}


def test_a_result_for_a_call_that_broke_off_stands_in_its_place() -> None:
    """T3: also where calls beside it were done."""
    half = msgspec.structs.replace(result("c1", "half"), finished=False)
    closed = with_results(
        message(Role.TOOL, half, result("c2", "done"), finished=False), [lost("c1"), lost("c3")], LATER
    )
    assert closed.parts == (result("c1", "half\nlost", is_error=True), result("c2", "done"), lost("c3"))


def close(*messages: Message) -> tuple[Message, list[tuple[Message, bool]]]:
    closing = close_turn(messages, CANCELED, at=LATER, lost="lost", blank=blank)
    return closing.answer, list(closing.changes)


def test_a_turn_that_said_nothing_gets_an_answer() -> None:
    """T2."""
    expected = msgspec.structs.replace(blank(Role.ASSISTANT), parts=(CANCELED,), finished_at=LATER)
    assert close() == (expected, [(expected, True)])


def test_a_turn_in_mid_stream_keeps_what_was_streamed() -> None:
    """T3: the open call gets a result in a new message, after the answer."""
    answer, changes = close(
        message(Role.ASSISTANT, TextPart(text="so"), call("c1", "{", finished=False), finished=False)
    )
    assert answer.parts == (TextPart(text="so"), call("c1"), CANCELED)
    results = msgspec.structs.replace(blank(Role.TOOL), parts=(lost("c1"),), finished_at=LATER)
    assert changes == [(answer, False), (results, True)]


def test_a_turn_between_two_tools_keeps_the_first_result() -> None:
    """T3: the message that was being filled takes the missing results too."""
    said = message(Role.ASSISTANT, call("c1"), call("c2"))
    answer, changes = close(said, message(Role.TOOL, result("c1"), seq=2, finished=False))
    assert answer.parts == (call("c1"), call("c2"), CANCELED)
    results = msgspec.structs.replace(
        message(Role.TOOL, result("c1"), lost("c2"), seq=2, finished=False), finished_at=LATER
    )
    assert changes == [(answer, False), (results, False)]


def test_a_turn_between_tools_and_the_next_step_changes_only_its_answer() -> None:
    """T3: the results are complete."""
    answer, changes = close(message(Role.ASSISTANT, call("c1")), message(Role.TOOL, result("c1"), seq=2))
    assert answer.parts == (call("c1"), CANCELED)
    assert changes == [(answer, False)]


def test_a_results_message_that_was_just_begun_is_finished() -> None:
    """T3: it has no result yet at all, or all of them but no end."""
    said = message(Role.ASSISTANT, call("c1"))
    _, changes = close(said, message(Role.TOOL, seq=2, finished=False))
    assert changes[1][0].parts == (lost("c1"),)
    _, changes = close(said, message(Role.TOOL, result("c1"), seq=2, finished=False))
    assert (changes[1][0].parts, changes[1][0].finished_at) == ((result("c1"),), LATER)


def test_of_a_long_output_that_was_broken_off_its_two_ends_are_kept() -> None:
    """A1: a model reads 30,000 characters at once."""
    said = message(Role.ASSISTANT, call("c1"))
    for shown, kept in (("a" * 30_000, 30_000), ("a" * 500_000 + "b" * 500_000, 30_100)):
        half = ToolResultPart(tool_call_id="c1", name="look", content=shown, finished=False)
        _, changes = close(said, message(Role.TOOL, half, seq=2, finished=False))
        (part,) = changes[1][0].parts
        assert isinstance(part, ToolResultPart)
        content = part.content.removesuffix(f"\n{lost('c1').content}")
        assert len(shown[:30_000]) <= len(content) <= kept
        assert (content[:15_000], content[-15_000:]) == (shown[:15_000], shown[-15_000:])


streamed = st.lists(
    st.one_of(
        st.builds(TextPart, text=st.text(max_size=5)),
        st.builds(ReasoningPart, text=st.text(max_size=5)),
        st.just("call"),
    ),
    max_size=4,
)


@given(st.lists(streamed, min_size=1, max_size=4), st.integers(0, 4), st.booleans(), st.text(max_size=8))
def test_a_turn_broken_off_anywhere_leaves_a_valid_transcript(
    steps: list[list[Part | str]], done: int, streaming: bool, given_: str
) -> None:
    """T3: whatever was streamed and however many results there are, every call has one result, right behind it."""
    turn: list[Message] = []
    for number, parts in enumerate(steps):
        last = number == len(steps) - 1
        open_ = last and streaming
        made: list[Part] = [
            call(f"c{number}.{place}", given_ if open_ else "{}", finished=not open_) if isinstance(part, str) else part
            for place, part in enumerate(parts)
        ]
        turn.append(message(Role.ASSISTANT, *made, seq=len(turn) + 1, finished=not open_))
        calls = calls_of(turn[-1])
        if open_ or not calls:
            continue
        have = [result(part.id) for part in (calls[:done] if last else calls)]
        turn.append(message(Role.TOOL, *have, seq=len(turn) + 1, finished=len(have) == len(calls)))
    closing = close_turn(turn, CANCELED, at=LATER, lost="lost", blank=blank)
    changed = {part.id: part for part, _ in closing.changes}
    after = [changed.pop(part.id, part) for part in turn] + list(changed.values())
    user = message(Role.USER, TextPart(text="go"), seq=0)
    expected: list[str] = []
    for shown in for_model([user, *after], 0):
        answered = [part.tool_call_id for part in shown.parts if isinstance(part, ToolResultPart)]
        assert answered == expected
        assert all(is_object(part.input) for part in calls_of(shown))
        expected = [part.id for part in calls_of(shown)]
    assert expected == []
    assert all(part.finished_at for part in after)
    assert [part for part in closing.answer.parts if isinstance(part, FinishPart)] == [CANCELED]


def test_a_model_is_shown_no_bookkeeping() -> None:
    """T3: no finish, no empty text, no message that says nothing."""
    picture = FilePart(name="a.png", media_type="image/png", data="aGk=")
    transcript = [
        message(Role.USER, TextPart(text="go"), picture),
        message(Role.ASSISTANT, TextPart(text=""), TextPart(text="gone"), END, seq=2),
        message(Role.USER, TextPart(text="stop"), seq=3),
        message(Role.ASSISTANT, CANCELED, seq=4),
    ]
    assert for_model(transcript, 0) == (
        transcript[0],
        message(Role.ASSISTANT, TextPart(text="gone"), seq=2),
        transcript[2],
    )


def test_thoughts_are_shown_only_with_an_answer_that_came_to_its_end() -> None:
    """T3: providers refuse reasoning that they did not sign to the end."""
    thought = ReasoningPart(text="hm", signature="signed")
    text = TextPart(text="a")
    for finish, shown in (
        (END, (thought, text)),
        (FinishPart(reason=FinishReason.MAX_TOKENS), (thought, text)),
        (CANCELED, (text,)),
        (FinishPart(reason=FinishReason.ERROR, title="t"), (text,)),
        (FinishPart(reason=FinishReason.INTERRUPTED), (text,)),
    ):
        (only,) = for_model([message(Role.ASSISTANT, thought, text, finish)], 0)
        assert only.parts == shown
    assert for_model([message(Role.ASSISTANT, thought, END)], 0) == ()
    (goes_on,) = for_model([message(Role.ASSISTANT, thought, call("c1"))], 0)
    assert goes_on.parts == (thought, call("c1"))


def test_after_a_summary_the_model_sees_it_first_and_nothing_older() -> None:
    """T8: as something a person told it."""
    transcript = [
        message(Role.USER, TextPart(text="old")),
        message(Role.ASSISTANT, TextPart(text="Sum."), seq=2),
        message(Role.USER, TextPart(text="new"), seq=3),
    ]
    summary, new = for_model(transcript, 2)
    assert (summary.role, summary.parts) == (Role.USER, (TextPart(text=SUMMARY_LEAD + "Sum."),))
    assert new == transcript[2]
