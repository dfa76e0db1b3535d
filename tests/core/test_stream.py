"""A message while it streams: what a draft tells adds up to the message, for whoever listens and after a crash."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longboat.core.history import calls_of
from longboat.core.stream import MAX_PARTS, Draft, encodable, extend, reshape
from longboat.errors import ModelError
from longboat.wire.models import (
    FinishPart,
    FinishReason,
    Message,
    MessageDelta,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def blank() -> Message:
    return Message(
        id="m",
        session_id="s",
        run_id="r",
        seq=2,
        role=Role.ASSISTANT,
        parts=(),
        created_at="2026-01-01T00:00:00.000000Z",
    )


def delta(part: int, offset: int, text: str) -> MessageDelta:
    return MessageDelta(message_id="m", session_id="s", run_id="r", part=part, offset=offset, text=text)


def with_parts(*parts: object) -> Message:
    return msgspec.structs.replace(blank(), parts=parts)


def test_a_part_starts_empty_and_every_character_arrives_as_a_delta() -> None:
    """http.md, message_delta: first the whole message in its new shape, then the text."""
    draft = Draft(blank())
    assert draft.add_text("ab") == (with_parts(TextPart(text="")), delta(0, 0, "ab"))
    assert draft.add_text("c") == (None, delta(0, 2, "c"))
    assert draft.add_reasoning("hm", None) == (
        with_parts(TextPart(text="abc"), ReasoningPart(text="")),
        delta(1, 0, "hm"),
    )
    assert draft.add_text("d") == (
        with_parts(TextPart(text="abc"), ReasoningPart(text="hm"), TextPart(text="")),
        delta(2, 0, "d"),
    )


def test_offsets_count_characters_not_bytes_nor_code_units() -> None:
    """http.md: Unicode code points, far beyond 16 bits too."""
    draft = Draft(blank())
    assert [draft.add_text(text)[1].offset for text in ("🛶", "é", "𝔘𝔘", "x")] == [0, 1, 2, 4]


def test_the_calls_of_a_step_grow_apart() -> None:
    """T3: a provider may interleave the arguments of several calls."""
    draft = Draft(blank())
    draft.add_text("so")
    draft.start_call(0, "c1", "look")
    draft.start_call(1, "c2", "read")
    assert draft.add_input(0, '{"a"') == delta(1, 0, '{"a"')
    assert draft.add_input(1, "{}") == delta(2, 0, "{}")
    assert draft.add_input(0, ":1}") == delta(1, 4, ":1}")
    assert draft.message() == with_parts(
        TextPart(text="so"),
        ToolCallPart(id="c1", name="look", input='{"a":1}'),
        ToolCallPart(id="c2", name="read", input="{}"),
    )


def test_a_signature_is_kept_with_its_reasoning() -> None:
    """What a provider signed goes back to it as it was."""
    draft = Draft(blank())
    draft.add_reasoning("hm", None)
    shape, told = draft.add_reasoning("", "signed")
    assert (shape, told.text) == (None, "")
    assert draft.message() == with_parts(ReasoningPart(text="hm", signature="signed"))


def test_a_withdrawn_draft_begins_anew() -> None:
    """T7: shape, parts and calls are forgotten; offsets start at 0."""
    draft = Draft(blank())
    draft.add_text("half")
    draft.start_call(0, "c1", "look")
    draft.withdraw()
    assert draft.empty
    assert draft.message() == blank()
    assert draft.add_text("whole") == (with_parts(TextPart(text="")), delta(0, 0, "whole"))
    with pytest.raises(KeyError):
        draft.add_input(0, "{}")


def test_a_repeat_is_dropped_and_a_gap_is_a_defect() -> None:
    """http.md: the offset lets a client detect a gap and drop a repeat."""
    message = with_parts(TextPart(text="ab"), FinishPart(reason=FinishReason.END_TURN))
    assert extend(message, []) == message
    assert extend(message, [delta(0, 0, "ab")]) == message
    assert extend(message, [delta(0, 1, "bcd"), delta(0, 2, "cd"), delta(0, 4, "e")]).parts[0] == TextPart(text="abcde")
    with pytest.raises(ValueError, match="1 characters are missing"):
        extend(message, [delta(0, 3, "d")])
    with pytest.raises(ValueError, match="does not stream"):
        extend(message, [delta(1, 0, "d")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain", "plain"),
        ("é🛶\x00", "é🛶\x00"),
        ("\ud83d", "\ufffd"),
        ("a\ud83db", "a\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),
    ],
)
def test_halves_of_surrogate_pairs_are_replaced(text: str, said: str) -> None:
    """E1: what UTF-8 cannot say would break the log, and with it the turn."""
    assert encodable(text) == said
    assert Draft(blank()).add_text(text)[1].text == said


words = st.text(st.characters(codec="utf-8"), max_size=12)
told = st.one_of(
    st.tuples(st.just("text"), words),
    st.tuples(st.just("reasoning"), words),
    st.tuples(st.just("call"), words),
    st.tuples(st.just("input"), words),
    st.tuples(st.just("withdraw"), st.just("")),
)


@given(st.lists(told, max_size=30), st.integers(min_value=1, max_value=4))
def test_whoever_hears_a_draft_has_its_message(script: list[tuple[str, str]], repeats: int) -> None:
    """T5, T7: after every event, with repeats of any delta; and from the last whole message on."""
    draft = Draft(blank())
    heard = whole = draft.message()
    since: list[MessageDelta] = []
    calls = 0
    for kind, text in script:
        shape: Message | None = None
        grown: MessageDelta | None = None
        if kind == "text":
            shape, grown = draft.add_text(text)
        elif kind == "reasoning":
            shape, grown = draft.add_reasoning(text, None)
        elif kind == "call":
            shape, calls = draft.start_call(calls, f"c{calls}", "look"), calls + 1
        elif kind == "input" and calls:
            grown = draft.add_input(calls - 1, text)
        elif kind == "withdraw":
            draft.withdraw()
            shape, calls = draft.message(), 0
        if shape is not None:
            heard, whole, since = shape, shape, []
        if grown is not None:
            since.append(grown)
            heard = extend(heard, [grown] * repeats)
        assert heard == draft.message() == extend(whole, since)


def test_a_thought_after_a_signed_one_is_a_part_of_its_own() -> None:
    draft = Draft(blank())
    draft.add_reasoning("first", None)
    draft.add_reasoning("", "signature")
    draft.add_reasoning("second", None)
    assert draft.message().parts == (
        ReasoningPart(text="first", signature="signature"),
        ReasoningPart(text="second"),
    )


# Many parts


def fill(draft: Draft) -> None:
    for index in range(MAX_PARTS):
        draft.start_call(index, f"c{index}", "look")


def test_an_answer_of_too_many_parts_is_an_error_and_keeps_what_it_has() -> None:
    """E5: every part is told with the whole message, so a hundred thousand of them would fill memory and disk."""
    draft = Draft(blank())
    fill(draft)
    whole = draft.message()
    for begin in (
        lambda: draft.add_text("a"),
        lambda: draft.add_reasoning("b", None),
        lambda: draft.start_call(MAX_PARTS, "c", "look"),
    ):
        with pytest.raises(ModelError) as caught:
            begin()
        assert (caught.value.code, caught.value.retryable) == ("too_many_parts", False)
    assert draft.message() == whole
    assert draft.add_input(MAX_PARTS - 1, "{}") == delta(MAX_PARTS - 1, 0, "{}"), "a part that is there still grows"


def test_a_withdrawn_draft_has_room_for_parts_again() -> None:
    """T7: the parts of a failed try do not count for the next."""
    draft = Draft(blank())
    fill(draft)
    draft.withdraw()
    fill(draft)
    assert len(draft.message().parts) == MAX_PARTS


def test_the_shapes_of_a_draft_share_their_text() -> None:
    """What waits for the store takes no room of its own, however many shapes a long answer goes through."""
    draft = Draft(blank())
    for _ in range(3):
        draft.add_text("x" * 1000)
    first, second = (draft.start_call(index, f"c{index}", "look").parts[0] for index in range(2))
    assert first == second == TextPart(text="x" * 3000)
    assert first.text is second.text


def test_a_new_shape_takes_the_place_of_an_older_one_if_deltas_say_the_rest() -> None:
    """http.md, message_delta: in the merged shape, too, a part starts empty."""
    old = with_parts(TextPart(text="a"), ReasoningPart(text=""))
    grown = [delta(1, 0, "hm"), delta(0, 1, "b")]
    new = with_parts(
        TextPart(text="ab"), ReasoningPart(text="hm", signature="s"), ToolCallPart(id="c", name="look", input="")
    )
    assert reshape(old, new, grown) == with_parts(
        TextPart(text="a"), ReasoningPart(text="", signature="s"), ToolCallPart(id="c", name="look", input="")
    )
    results = (ToolResultPart(tool_call_id="c", content="one"), ToolResultPart(tool_call_id="d", content="two"))
    assert reshape(with_parts(results[0]), with_parts(*results), []) == with_parts(*results)


@pytest.mark.parametrize(
    "new",
    [
        with_parts(),
        with_parts(TextPart(text="abc")),
        with_parts(TextPart(text="ab"), TextPart(text="not told")),
        with_parts(ReasoningPart(text="ab"), TextPart(text="")),
        with_parts(ToolResultPart(tool_call_id="c", content="ab")),
    ],
)
def test_a_message_that_says_more_than_its_deltas_takes_no_older_ones_place(new: Message) -> None:
    """T7: one that was withdrawn, among others."""
    assert reshape(with_parts(TextPart(text="a")), new, [delta(0, 1, "b")]) is None


def test_a_call_whose_id_is_taken_gets_another() -> None:
    """T3: a result names one call, whatever a server numbers from 0 in every answer."""
    draft = Draft(blank(), taken=["call_0"])
    for index in range(3):
        draft.start_call(index, "call_0", "look")
    assert [part.id for part in calls_of(draft.message())] == ["call_0-2", "call_0-3", "call_0-4"]
    draft.withdraw()
    draft.start_call(0, "call_1", "look")
    assert [part.id for part in calls_of(draft.message())] == ["call_1"]
