"""The OpenAI chat stream, read from bytes alone: torn pieces, and the many shapes servers give the same thing."""

import json
from typing import Any

import msgspec
import pytest
from benchmarks.texts import chat_line
from hypothesis import given, settings
from hypothesis import strategies as st

from longboat.errors import ModelError
from longboat.models.catalogue import Counted
from longboat.models.openai_refusal import Addressee
from longboat.models.openai_stream import StreamReader
from longboat.models.protocol import (
    Finished,
    ModelEvent,
    Notice,
    Progress,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.wire.models import Usage
from work import check_proportion

TO = Addressee(provider="mine", model="m", url="http://here/v1", has_key=True)


def stream_of(*chunks: Any, end: bytes = b"\n\n") -> bytes:
    return b"".join(b"data: " + msgspec.json.encode(chunk) + end for chunk in chunks)


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields, "finish_reason": finish_reason}]}


def calls(*pieces: dict[str, Any]) -> dict[str, Any]:
    return delta(tool_calls=list(pieces))


def piece(arguments: Any = None, name: str | None = None, **fields: Any) -> dict[str, Any]:
    return {**fields, "function": {"name": name, "arguments": arguments}}


def read_all(*pieces: bytes) -> list[ModelEvent]:
    reader = StreamReader(TO)
    events = [event for part in pieces for event in reader.feed(part)]
    return [*events, *reader.finish()]


def test_people_are_told_every_quarter_of_a_long_prompt() -> None:
    reader = StreamReader(TO)

    def read(total: int, cache: int, processed: int) -> list[ModelEvent]:
        progress = {"total": total, "cache": cache, "processed": processed}
        return list(reader.feed(stream_of({"choices": [], "prompt_progress": progress})))

    assert read(900, 0, 600) == []
    assert read(9_000, 8_100, 8_800) == [], "nearly all of it was cached"
    told = [read(5_000, 1_000, processed) for processed in (1_000, 2_000, 2_500, 3_800, 4_200, 5_000)]
    assert told == [
        [],
        [Progress("Reading the prompt (4,000 new tokens): 25 %.")],
        [],
        [Progress("Reading the prompt (4,000 new tokens): 50 %.")],
        [Progress("Reading the prompt (4,000 new tokens): 75 %.")],
        [],
    ]


@pytest.mark.parametrize(
    "counted",
    [
        {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 900}},
        {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_cache_hit_tokens": 900},
        {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 900}, "cost": 7.0},
    ],
)
def test_a_step_is_priced_with_its_cached_tokens_unless_the_server_says_what_it_cost(counted: dict[str, Any]) -> None:
    """A6"""
    seen: list[Counted] = []

    def tariff(used: Counted) -> float:
        seen.append(used)
        return 2.5

    reader = StreamReader(TO, tariff=tariff)
    list(reader.feed(stream_of({"usage": {"prompt_tokens": 1}}, delta("stop"), {"choices": [], "usage": counted})))
    (finished,) = reader.finish()
    cost = counted.get("cost", 2.5)
    usage = Usage(input_tokens=1000, output_tokens=10, cost=cost)
    assert finished == Finished(StopReason.END_TURN, usage, cached_tokens=900)
    assert seen == ([] if "cost" in counted else [Counted(input_tokens=1000, output_tokens=10, cache_read_tokens=900)])


def test_a_stream_torn_anywhere_reads_the_same() -> None:
    data = b": comment\r\n\r\nevent: x\n" + stream_of(
        delta(content="Hé ☃"), delta("stop"), {"choices": [], "usage": {"prompt_tokens": 1}}, end=b"\r\n\r\n"
    )
    data += b"data:\n\ndata: [DONE]\n\ndata: after\n\n"
    expected = [TextDelta("Hé ☃"), Finished(StopReason.END_TURN, Usage(input_tokens=1, cost=None))]
    assert read_all(data) == expected
    assert read_all(*(data[at : at + 1] for at in range(len(data)))) == expected


def test_a_last_line_without_its_end_counts() -> None:
    assert read_all(stream_of(delta("stop", content="a"), end=b"")) == [TextDelta("a"), Finished(StopReason.END_TURN)]


def test_other_spellings_of_text_and_reasoning() -> None:
    data = stream_of(
        delta(role="assistant", content=None),
        delta(reasoning="r1"),
        delta(reasoning_content="r2", reasoning="r2"),
        delta(refusal="I will not."),
        {"choices": [{"delta": None, "finish_reason": ""}], "usage": None},
        delta("eos", content=""),
    )
    assert read_all(data) == [
        ReasoningDelta("r1"),
        ReasoningDelta("r2"),
        ReasoningDelta("", '{"field":"reasoning_content"}'),
        TextDelta("I will not."),
        Finished(StopReason.END_TURN),
    ]


@pytest.mark.parametrize(
    ("odd", "usage"),
    [
        ({"cost": {"input_tokens_cost": 0.05, "total_cost": 0.1}}, Usage(input_tokens=3, output_tokens=2, cost=0.1)),
        ({"cost": "0.1"}, Usage(input_tokens=3, output_tokens=2, cost=0.1)),
        ({"cost": "free"}, Usage(input_tokens=3, output_tokens=2, cost=None)),
        ({"cost": "nan"}, Usage(input_tokens=3, output_tokens=2, cost=None)),
        ({"prompt_tokens": 3.0}, Usage(input_tokens=3, output_tokens=2, cost=None)),
        ({"prompt_tokens": "many"}, Usage(output_tokens=2, cost=None)),
        ({"prompt_tokens_details": []}, Usage(input_tokens=3, output_tokens=2, cost=None)),
        ({"prompt_tokens_details": {"cached_tokens": "no"}}, Usage(input_tokens=3, output_tokens=2, cost=None)),
    ],
)
def test_odd_usage_costs_no_answer(odd: dict[str, Any], usage: Usage) -> None:
    """What a server says it cost is not worth an answer."""
    counted = {"prompt_tokens": 3, "completion_tokens": 2, **odd}
    beside = {**delta(content="a"), "usage": counted}
    assert read_all(stream_of(beside, delta("stop"))) == [TextDelta("a"), Finished(StopReason.END_TURN, usage)]


@pytest.mark.parametrize("odd", [{"usage": [1]}, {"prompt_progress": {"total": "all"}}, {"usage": "none"}])
def test_what_is_said_about_an_answer_may_be_unreadable(odd: dict[str, Any]) -> None:
    data = stream_of({**delta(content="a"), **odd}, delta("stop"))
    assert read_all(data) == [TextDelta("a"), Finished(StopReason.END_TURN)]


def test_content_in_parts_is_text_and_reasoning() -> None:
    """Mistral and some proxies stream it so."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, "}, {"type": "text", "text": "so."}]}
    data = stream_of(
        delta(content=[thinking]),
        delta(content=[{"type": "text", "text": "It "}, {"type": "reference"}, "is"]),
        delta("stop", content=[]),
    )
    assert read_all(data) == [
        ReasoningDelta("Hm, so."),
        ReasoningDelta("", '{"field":"reasoning_content"}'),
        TextDelta("It is"),
        Finished(StopReason.END_TURN),
    ]


def test_a_call_in_a_chunk_with_odd_usage_is_made() -> None:
    chunk = {**calls(piece('{"x":1}', "f", index=0.0, id="one")), "usage": {"cost": []}}
    assert read_all(stream_of(chunk, delta("stop"))) == [*ONE_AND_TWO[:2], Finished(StopReason.TOOL_USE)]


@pytest.mark.parametrize(
    "fields", [{"content": 3}, {"content": {"text": "a"}}, {"tool_calls": "f()"}, {"tool_calls": [{"function": "f"}]}]
)
def test_an_answer_that_cannot_be_read_is_not_left_out(fields: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"sent a chunk that cannot be read \(Expected"):
        read_all(stream_of(delta(**fields), delta("stop")))


def test_usage_in_every_chunk_is_not_added_up() -> None:
    used = [{**delta(content="a"), "usage": {"prompt_tokens": 5, "completion_tokens": n}} for n in (1, 2)]
    last = read_all(stream_of(*used, delta("stop")))[-1]
    assert last == Finished(StopReason.END_TURN, Usage(input_tokens=5, output_tokens=2, cost=None))


ONE_AND_TWO = [
    ToolCallStart(0, "one", "f"),
    ToolCallDelta(0, '{"x":1}'),
    ToolCallStart(1, "two", "g"),
    ToolCallDelta(1, "{}"),
    Finished(StopReason.TOOL_USE),
]


@pytest.mark.parametrize(
    "chunks",
    [
        [calls(piece('{"x":1}', "f", index=0, id="one"), piece("{}", "g", index=1, id="two"))],
        [calls(piece('{"x":1}', "f", id="one")), calls(piece("{}", "g", id="two"))],
        [calls(piece('{"x":1}', "f", index=0, id="one")), calls(piece("{}", "g", index=0, id="two"))],
        [calls(piece({"x": 1}, "f", id="one"), piece({}, "g", id="two"))],
    ],
    ids=["whole in one chunk", "no index", "always index 0", "arguments as objects"],
)
def test_whole_tool_calls_in_all_their_shapes(chunks: list[dict[str, Any]]) -> None:
    assert read_all(stream_of(*chunks, delta("stop"))) == ONE_AND_TWO


@pytest.mark.parametrize(
    "more",
    [
        piece("b", index=0),
        piece("b"),
        piece("b", id="one"),
        piece("b", "f", index=0, id="one"),
        piece("b", "f", index=0),
        piece("b", "", index=0, id=""),
        piece("b", index=0, id="another"),
    ],
    ids=["by index", "by position", "by id", "all repeated", "name repeated", "empty strings", "a new id but no name"],
)
def test_a_tool_call_goes_on_in_all_its_shapes(more: dict[str, Any]) -> None:
    data = stream_of(calls(piece("a", "f", index=0, id="one")), calls(more), delta("tool_calls"))
    assert read_all(data) == [
        ToolCallStart(0, "one", "f"),
        ToolCallDelta(0, "a"),
        ToolCallDelta(0, "b"),
        Finished(StopReason.TOOL_USE),
    ]


@pytest.mark.parametrize("names", ["fg", "ff"])
@pytest.mark.parametrize("id_", ["", None, "call_0", "f"])
@pytest.mark.parametrize("index", [(0, 0), (0, 1), (None, None)])
@pytest.mark.parametrize("apart", [True, False])
def test_whole_calls_that_have_the_same_id_and_index_are_told_apart(
    names: str, id_: str | None, index: tuple[int | None, int | None], apart: bool
) -> None:
    """As from Gemini's compatible endpoint, and from servers that take the tool's name for an id."""
    both = [piece(f'{{"x":{n}}}', name, index=index[n], id=id_) for n, name in enumerate(names)]
    chunks = [calls(each) for each in both] if apart else [calls(*both)]
    events = read_all(stream_of(*chunks, delta("stop")))
    starts = [event for event in events if isinstance(event, ToolCallStart)]
    assert [(start.index, start.name) for start in starts] == [(0, names[0]), (1, names[1])]
    assert [event for event in events if isinstance(event, ToolCallDelta)] == [
        ToolCallDelta(0, '{"x":0}'),
        ToolCallDelta(1, '{"x":1}'),
    ]


def test_a_name_that_is_repeated_at_the_end_of_a_call_begins_no_other() -> None:
    data = stream_of(
        calls(piece("{}", "f", index=0, id="one")), calls(piece("", "f", index=0, id="one")), delta("stop")
    )
    assert [event for event in read_all(data) if isinstance(event, ToolCallStart)] == [ToolCallStart(0, "one", "f")]


def test_calls_without_ids_get_ids_of_their_own() -> None:
    events = read_all(stream_of(calls(piece("{}", "f")), calls(piece("{}", "f")), delta("stop")))
    starts = [event for event in events if isinstance(event, ToolCallStart)]
    assert [start.index for start in starts] == [0, 1]
    assert len({start.call_id for start in starts}) == 2


def test_a_finish_by_tool_calls_without_any_is_the_end_of_the_turn() -> None:
    assert read_all(stream_of(delta("tool_calls", content="a")))[-1] == Finished(StopReason.END_TURN)


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longboat.models.openai_stream.MAX_LINE", 100)
    with pytest.raises(ModelError, match="a line that is too long"):
        read_all(b"data: " + b"x" * 200)


def test_a_long_line_in_small_pieces_takes_steps_in_proportion() -> None:
    """How often its bytes are copied, the benchmark `texts` times."""

    def read(pieces: int) -> None:
        assert read_all(*chat_line(pieces)) == [TextDelta("a"), Finished(StopReason.END_TURN)]

    check_proportion(read, 500)


# Any bytes at all


DEEP = 100_000
NESTED = [
    b'{"choices":' + b"[" * DEEP + b"]" * DEEP + b"}",
    b'{"error":' * DEEP + b"1" + b"}" * DEEP,
    b'{"error":{"message":' + b'{"a":' * 900 + b"1" + b"}" * 901 + b"}",
    b'{"error":{"code":' + b"[" * 900 + b"]" * 900 + b"}}",
    b'{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":'
    + b'{"a":' * 900
    + b"1"
    + b"}" * 900
    + b"}}]}}]}",
]


@pytest.mark.parametrize("data", NESTED, ids=["list", "error", "message", "code", "arguments"])
@pytest.mark.parametrize("frames", range(0, 90, 6))
def test_nesting_without_end_breaks_the_stream_and_nothing_else(data: bytes, frames: int) -> None:
    """At several depths of the caller's own stack: what decodes with the last frames left must not fail later."""

    def deeper(more: int) -> None:
        if more:
            deeper(more - 1)
        else:
            read_or_refuse([b"data: " + data + b"\n\n"])

    deeper(frames)


def read_or_refuse(pieces: list[bytes]) -> ModelError | None:
    try:
        read_all(*pieces)
    except ModelError as error:
        error.message.encode()  # it is shown and stored
        return error
    return None


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices":[{"delta":{"content":"\xff\xfe"}}]}',
        b'{"error":{"message":"\xff"}}',
        b'{"choices":[{"delta":{"content":"\\ud800"}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":{"a":"\xff"}}}]}}]}',
        b"\xff",
    ],
)
def test_what_is_not_utf_8_breaks_the_stream(data: bytes) -> None:
    error = read_or_refuse([b"data: " + data + b"\n\n"])
    assert error is not None
    assert (error.code, error.retryable) == ("stream_broken", True)


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def perhaps(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with some of these fields, each now and then of another kind than it should be; or another value."""
    optional = {name: strategy | VALUE for name, strategy in fields.items()}
    return st.fixed_dictionaries({}, optional=optional) | VALUE


CALL = perhaps(
    index=st.integers(0, 2), id=st.sampled_from(["", "one"]), function=perhaps(name=st.text(), arguments=st.text())
)
DELTA = perhaps(content=st.text(), reasoning=st.text(), refusal=st.text(), tool_calls=st.lists(CALL, max_size=3))
CHUNK = perhaps(
    choices=st.lists(perhaps(delta=DELTA, finish_reason=st.text()), max_size=2),
    usage=perhaps(prompt_tokens=st.integers(), completion_tokens=st.integers(), cost=st.floats(0, 1)),
    error=perhaps(error=VALUE, message=VALUE, code=VALUE, type=VALUE, detail=VALUE),
)
LINE = CHUNK.map(lambda value: b"data: " + json.dumps(value).encode() + b"\n")
GOOD = stream_of(
    delta(content="Hé ☃"),
    delta(reasoning="r"),
    calls(piece('{"x":1}', "f", index=0, id="one")),
    delta("stop"),
    {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.5}},
    {"error": {"message": "m", "code": 429, "type": "t"}},
)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.binary() | LINE, max_size=4))
def test_any_bytes_are_read_or_refused(pieces: list[bytes]) -> None:
    read_or_refuse(pieces)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=6), st.integers(1, 60))
def test_a_stream_with_wrong_bytes_in_it_is_read_or_refused(wrong: list[tuple[int, int]], size: int) -> None:
    data = bytearray(GOOD)
    for at, byte in wrong:
        data[at] = byte
    read_or_refuse([bytes(data[at : at + size]) for at in range(0, len(data), size)])


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>\nHm, so.\n</think>\n\nYes.", "Hm, so.", "Yes."),
        ("  <thinking>a < b </think> c</thinking>Yes.", "a < b </think> c", "Yes."),
        ("<think></think>Yes.", "", "Yes."),
        ("<thinner> Yes.", "", "<thinner> Yes."),
        ("Use <think> tags.", "", "Use <think> tags."),
        ("<think>It never ends", "It never ends", ""),
        ("<thi", "", "<thi"),
        ("  Yes.", "", "  Yes."),
    ],
)
def test_think_tags_at_the_beginning_are_reasoning(text: str, thought: str, answer: str, size: int) -> None:
    pieces = [delta(content=text[n : n + size]) for n in range(0, len(text), size)]
    events = read_all(stream_of(*pieces, delta("stop")))
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)).strip() == thought
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == answer
    assert isinstance(events[-1], Finished)


def standing(events: list[ModelEvent]) -> tuple[str, str]:
    """The reasoning and the text that count in the end."""
    withdrawn = [n for n, event in enumerate(events) if isinstance(event, Notice) and event.withdraw]
    last = events[withdrawn[-1] + 1 :] if withdrawn else events
    thought = "".join(event.text for event in last if isinstance(event, ReasoningDelta))
    return thought, "".join(event.text for event in last if isinstance(event, TextDelta))


UNOPENED = [
    ("Is 2 > 1? `<b>`\n</think>\n\nIt is 4. So </think> it is.", "Is 2 > 1? `<b>`", "It is 4. So </think> it is."),
    ("\nHm.</think>Yes.", "Hm.", "Yes."),
    ("</think>\n\nYes.", "", "Yes."),
]


@pytest.mark.parametrize("in_thought", [False, True], ids=["the first time", "known"])
@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize(("text", "thought", "answer"), UNOPENED)
def test_thoughts_that_only_end_are_reasoning(
    text: str, thought: str, answer: str, *, size: int, in_thought: bool
) -> None:
    """Qwen3-Thinking, DeepSeek and others, whose template has the opening tag in the prompt."""
    reader = StreamReader(TO, in_thought=in_thought)
    pieces = [delta(content=text[n : n + size]) for n in range(0, len(text), size)]
    events = list(reader.feed(stream_of(*pieces, delta("stop"))))
    assert reader.begins_in_thought is True
    events += reader.finish()
    said, answered = standing(events)
    assert (said.strip(), answered) == (thought, answer)
    assert any(isinstance(event, Notice) for event in events) is (size < 100 and not in_thought)
    assert isinstance(events[-1], Finished)


def test_a_model_that_is_known_to_begin_with_thoughts_may_mark_them_now() -> None:
    reader = StreamReader(TO, in_thought=True)
    events = list(reader.feed(stream_of(delta(content="<think>Hm.</think>Yes."), delta("stop"))))
    assert reader.begins_in_thought is None
    assert standing([*events, *reader.finish()]) == ("Hm.", "Yes.")


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "Models end with `</think>`, and then answer.",
        'The tag is "</think>". Then </think> again.',
        "Take this:\n```xml\n<a>\n</think>\n```\n",
        "First <think> opens, then </think> closes.",
        "In HTML you write <b>x</b>, and models end with </think>, then go on.",
        "This is how it ends: </think>",
        "The tag (</think>) ends the thoughts. Then comes the answer.",
        "Qwen ends with **</think>** and then answers.",
        "<p>x</think></p> is invalid HTML.",
        "Thoughts end at:\n</think>\nand then comes the answer.",
        "They write “</think>” there.",
        "Thoughts</think>, then the answer.",
    ],
)
def test_a_closing_tag_that_an_answer_quotes_is_text(text: str, size: int) -> None:
    pieces = [delta(content=text[n : n + size]) for n in range(0, len(text), size)]
    events = read_all(stream_of(*pieces, delta("stop")))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
    assert not any(isinstance(event, Notice | ReasoningDelta) for event in events)


def test_where_the_server_sends_reasoning_apart_a_closing_tag_is_text() -> None:
    reader = StreamReader(TO, in_thought=True)
    pieces = stream_of(delta(reasoning_content="Hm."), delta(content="A </think> is "), delta("stop", content="text."))
    events = [*reader.feed(pieces), *reader.finish()]
    assert standing(events) == ("Hm.", "A </think> is text.")
    assert not any(isinstance(event, Notice) for event in events)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_an_answer_without_thoughts_is_one_all_the_same(size: int) -> None:
    text = "  It is 4 </thin"
    reader = StreamReader(TO, in_thought=True)
    pieces = [delta(content=text[n : n + size]) for n in range(0, len(text), size)]
    events = list(reader.feed(stream_of(*pieces, delta("stop"))))
    assert reader.begins_in_thought is False
    assert standing([*events, *reader.finish()]) == ("", text)


@pytest.mark.parametrize("end", [[delta("length")], [calls(piece("{}", "f", id="one")), delta("tool_calls")]])
def test_thoughts_that_are_cut_off_or_lead_to_a_call_stay_thoughts(end: list[Any]) -> None:
    reader = StreamReader(TO, in_thought=True)
    events = list(reader.feed(stream_of(delta(content="Hm, so"), *end)))
    assert reader.begins_in_thought is None
    assert standing([*events, *reader.finish()]) == ("Hm, so", "")


def test_a_think_block_ends_at_a_tool_call() -> None:
    data = stream_of(delta(content="<think>hm"), calls(piece("{}", "f", id="one")), delta("tool_calls"))
    assert read_all(data) == [
        ReasoningDelta("hm"),
        ToolCallStart(0, "one", "f"),
        ToolCallDelta(0, "{}"),
        Finished(StopReason.TOOL_USE),
    ]


def test_pieces_of_reasoning_details_are_joined() -> None:
    def detail(**fields: Any) -> dict[str, Any]:
        return delta(reasoning_details=[{"type": "reasoning.text", "index": 0, **fields}])

    secret = {"type": "reasoning.encrypted", "index": 1, "data": "x"}
    data = stream_of(
        detail(text="a"), detail(text="b", signature="s"), delta(reasoning_details=[secret]), delta(content="c"),
        delta("stop"),
    )  # fmt: skip
    signature = next(
        event.signature for event in read_all(data) if isinstance(event, ReasoningDelta) and event.signature
    )
    assert msgspec.json.decode(signature) == {
        "field": "reasoning",
        "details": [{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"}, secret],
    }


def test_a_server_that_starts_to_send_reasoning_apart_loses_nothing_of_the_answer() -> None:
    """The model was known to begin with thoughts; its operator has set the server up better since."""
    reader = StreamReader(TO, in_thought=True)
    pieces = [delta(content="Ans"), delta(reasoning_content="Hm."), delta("stop", content="wer here")]
    events = [*reader.feed(stream_of(*pieces)), *reader.finish()]
    assert standing(events)[1] == "Answer here"
    assert reader.begins_in_thought is False
