"""A turn's way to the log: what waits is merged and bounded, and adds up to the same message for whoever hears it."""

import asyncio
from typing import Any, cast

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longboat.backoff import Backoff
from longboat.core.history import close_message
from longboat.core.stream import MAX_PARTS, Draft, extend
from longboat.errors import OwnerLost, StoreUnavailable
from longboat.runtime.turn.outbox import ROOM_CHARACTERS, Outbox
from longboat.store.protocol import Entry, Store, Unit
from longboat.wire.events import Change, Event, decode_event
from longboat.wire.models import (
    AgentEvent,
    AgentEventType,
    Message,
    MessageDelta,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolResultPart,
)
from longboat.wire.sse import Decoder

AT = "2026-01-01T00:00:00.000000Z"


class SlowStore:
    """Takes units when the test says so, and remembers what it took as clients and as the disk see it."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.waiting: list[tuple[Unit, asyncio.Future[None]]] = []

    def submit(self, unit: Unit) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append((unit, future))
        return future

    async def answer(self, error: Exception | None = None) -> None:
        """Commit the unit that is in flight, or fail it; the outbox has heard of it when this returns."""
        ((unit, future),) = self.waiting
        self.waiting.clear()
        if error is None:
            self.units.append(unit)
            future.set_result(None)
        else:
            future.set_exception(error)
        for _ in range(3):
            await asyncio.sleep(0)

    async def answer_all(self) -> None:
        while self.waiting:
            await self.answer()

    @property
    def events(self) -> list[Event]:
        return [event for unit in self.units for event in events_of(unit.entries)]

    @property
    def size(self) -> int:
        return sum(len(body) for unit in self.units for entry in unit.entries for body in entry.bodies)


def events_of(entries: Any) -> list[Event]:
    data = b"".join(body for entry in cast("list[Entry]", entries) for body in entry.bodies)
    events = [decode_event(frame.data) for frame in Decoder().decode(data)]
    return [event for event in events if event is not None]


def heard(events: list[Event]) -> dict[str, Message]:
    """Messages as a client has them. A gap raises."""
    known: dict[str, Message] = {}
    for event in events:
        match event.payload:
            case Message() as message:
                assert (event.change is Change.CREATED) == (message.id not in known)
                known[message.id] = message
            case MessageDelta() as delta:
                known[delta.message_id] = extend(known[delta.message_id], [delta])
    return known


def stored(units: list[Unit], message: Message) -> Message:
    """The message as a crash leaves it: its row, and the deltas of later units."""
    for unit in units:
        rows = [write for write in unit.writes if write.query == "message_put"]
        if rows:
            parts = msgspec.json.decode(rows[-1].params["parts"], type=tuple[Part, ...])
            message = msgspec.structs.replace(message, parts=parts)
        else:
            message = extend(
                message, [e.payload for e in events_of(unit.entries) if isinstance(e.payload, MessageDelta)]
            )
    return message


def blank(message_id: str = "m", role: Role = Role.ASSISTANT) -> Message:
    return Message(id=message_id, session_id="s", run_id="r", seq=2, role=role, parts=(), created_at=AT)


@pytest.fixture
async def store() -> SlowStore:
    return SlowStore()


@pytest.fixture
async def outbox(store: SlowStore) -> Outbox:
    return Outbox(cast("Store", store), "w", "s")


def say(outbox: Outbox, grown: tuple[Message | None, MessageDelta]) -> None:
    shape, delta = grown
    if shape is not None:
        outbox.whole(shape)
    outbox.delta(delta)


def begin(outbox: Outbox) -> Draft:
    """A draft whose first unit is on its way."""
    outbox.whole(blank(), Change.CREATED)
    return Draft(blank())


# Many parts


async def test_the_parts_that_come_during_a_commit_cost_one_whole_message(store: SlowStore, outbox: Outbox) -> None:
    """E5: a model that goes back and forth between text and thoughts costs what it says, not the square of it."""
    draft = begin(outbox)
    for _ in range(MAX_PARTS // 2):
        say(outbox, draft.add_text("a" * 100))
        say(outbox, draft.add_reasoning("b" * 100, None))
    await store.answer_all()
    assert [type(event.payload) for event in store.events].count(Message) == 2
    assert store.size < 10 * MAX_PARTS * 100
    assert heard(store.events) == {"m": draft.message()}


async def test_every_character_arrives_as_a_delta_in_a_part_that_starts_empty(store: SlowStore, outbox: Outbox) -> None:
    """http.md, message_delta: also where shapes were merged."""
    draft = begin(outbox)
    for text in ("one ", "two ", "three "):
        say(outbox, draft.add_text(text))
        say(outbox, draft.add_reasoning(text, None))
    await store.answer_all()
    _, shape, *deltas = (event.payload for event in store.events)
    assert shape.parts == (TextPart(text=""), ReasoningPart(text="")) * 3
    texts = [(delta.part, delta.offset, delta.text) for delta in deltas]
    assert texts == [(i, 0, text) for i, text in enumerate(["one ", "one ", "two ", "two ", "three ", "three "])]


async def test_calls_that_start_during_a_commit_do_not_repeat_a_long_text(store: SlowStore, outbox: Outbox) -> None:
    draft = begin(outbox)
    say(outbox, draft.add_text("x" * 300_000))
    await store.answer_all()
    before = store.size
    outbox.tell(AgentEvent(type=AgentEventType.LOADING, session_id="s", run_id="r", message="", detail=""))
    for index in range(MAX_PARTS - 1):
        outbox.whole(draft.start_call(index, f"c{index}", "look"))
        outbox.delta(draft.add_input(index, "{}"))
        outbox.delta(draft.add_input(0, " "))
        assert not outbox.crowded, "the model need not wait: the next shape takes the place of this one"
    await store.answer_all()
    assert store.size - before < 500_000
    assert heard(store.events) == {"m": draft.message()}


class QuickStore(SlowStore):
    """Commits at once."""

    def submit(self, unit: Unit) -> "asyncio.Future[None]":
        self.units.append(unit)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future


async def _long_calls(count: int) -> QuickStore:
    """An answer of many long calls, from a model that is slower than the store."""
    store = QuickStore()
    outbox = Outbox(cast("Store", store), "w", "s")
    draft = begin(outbox)
    for index in range(count):
        outbox.whole(draft.start_call(index, f"c{index}", "write"))
        for _ in range(10):
            outbox.delta(draft.add_input(index, "x" * 10_000))
            await asyncio.sleep(0)
            await outbox.room()
    outbox.whole(msgspec.structs.replace(draft.message(), finished_at=AT), durable=True)
    await outbox.flush()
    assert heard(store.events)["m"].parts == draft.message().parts
    return store


async def test_an_answer_of_many_long_calls_costs_what_it_says_even_if_the_store_is_quick() -> None:
    """E5: not the square of it."""
    few, many = await _long_calls(10), await _long_calls(40)
    assert many.size < 6 * few.size
    assert many.size < 6 * 40 * 100_000


async def test_the_shape_of_a_long_message_is_told_after_a_rest_whatever_else_comes() -> None:
    store = QuickStore()
    outbox = Outbox(cast("Store", store), "w", "s")
    draft = begin(outbox)
    say(outbox, draft.add_text("x" * 200_000))
    for index in range(3):
        outbox.whole(draft.start_call(index, f"c{index}", "look"))
        outbox.delta(draft.add_input(index, "{}"))
        await asyncio.sleep(0)
    async with asyncio.timeout(20):
        while heard(store.events) != {"m": draft.message()}:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert [type(event.payload) for event in store.events].count(Message) == 4, "created, text, a call, the others"


async def test_the_results_of_many_calls_wait_as_one_message(store: SlowStore, outbox: Outbox) -> None:
    message = blank("t", Role.TOOL)
    outbox.tell(AgentEvent(type=AgentEventType.LOADING, session_id="s", run_id="r", message="", detail=""))
    outbox.whole(message, Change.CREATED)
    for index in range(100):
        result = ToolResultPart(tool_call_id=f"c{index}", content="y" * 1000)
        message = msgspec.structs.replace(message, parts=(*message.parts, result))
        outbox.whole(message)
    await store.answer_all()
    assert [event.payload for event in store.events[1:]] == [message]
    assert store.events[1].change is Change.CREATED


async def test_a_finished_message_does_not_overtake_its_deltas(store: SlowStore, outbox: Outbox) -> None:
    """T5: the final state comes last."""
    draft = begin(outbox)
    say(outbox, draft.add_text("all"))
    finished = close_message(draft.message(), None, at=AT)
    outbox.whole(finished)
    await store.answer_all()
    assert [type(event.payload) for event in store.events] == [Message, Message, MessageDelta, Message]
    assert heard(store.events) == {"m": finished}


async def test_what_is_to_survive_a_power_cut_is_not_merged_with_what_waits(store: SlowStore, outbox: Outbox) -> None:
    """T3: all up to here, the deltas before it included."""
    draft = begin(outbox)
    say(outbox, draft.add_text("all"))
    outbox.whole(draft.start_call(0, "c", "look"), durable=True)
    await store.answer_all()
    assert [unit.durable for unit in store.units] == [False, False, True]
    assert [type(event.payload) for event in store.events] == [Message, Message, MessageDelta, Message]


async def test_a_withdrawn_try_is_not_mixed_with_the_next(store: SlowStore, outbox: Outbox) -> None:
    """T7: the same parts again, with other text; and the notice stands between them."""
    draft = begin(outbox)
    say(outbox, draft.add_text("half"))
    draft.withdraw()
    outbox.whole(draft.message())
    outbox.tell(AgentEvent(type=AgentEventType.RETRYING, session_id="s", run_id="r", message="", detail=""))
    say(outbox, draft.add_text("whole"))
    await store.answer_all()
    kinds = [Message, Message, MessageDelta, Message, AgentEvent, Message, MessageDelta]
    assert [type(event.payload) for event in store.events] == kinds
    assert heard(store.events) == {"m": draft.message()}
    assert draft.message().parts == (TextPart(text="whole"),)


# Room


async def test_whole_messages_that_wait_take_room_but_for_the_newest(store: SlowStore, outbox: Outbox) -> None:
    """L15: what waits for the store is bounded."""
    outbox.whole(blank("a"), Change.CREATED)
    large = (ToolResultPart(tool_call_id="c", content="y" * (ROOM_CHARACTERS + 1)),)
    outbox.whole(msgspec.structs.replace(blank("b", Role.TOOL), parts=large), Change.CREATED)
    assert not outbox.crowded, "the answer's own text, as it were"
    outbox.whole(blank("c"), Change.CREATED)
    assert outbox.crowded
    await store.answer()
    assert not outbox.crowded, "it is on its way"


async def test_many_small_deltas_take_more_room_than_their_text(store: SlowStore, outbox: Outbox) -> None:
    """L15: two calls whose inputs come in turns, a character each."""
    draft = begin(outbox)
    for index in range(2):
        outbox.whole(draft.start_call(index, f"c{index}", "look"))
    said = 0
    while not outbox.crowded:
        outbox.delta(draft.add_input(said % 2, " "))
        said += 1
        assert said < ROOM_CHARACTERS // 50
    await store.answer_all()
    assert not outbox.crowded
    assert heard(store.events) == {"m": draft.message()}


# Whatever comes


async def _play(script: list[tuple[str, str]]) -> None:
    store = SlowStore()
    outbox = Outbox(cast("Store", store), "w", "s")
    draft = begin(outbox)
    calls = 0
    for kind, text in script:
        if kind == "text":
            say(outbox, draft.add_text(text))
        elif kind == "reasoning":
            say(outbox, draft.add_reasoning(text, "signed" if text.startswith("a") else None))
        elif kind == "call":
            outbox.whole(draft.start_call(calls, f"c{calls}", "look"))
            calls += 1
        elif kind == "input" and calls:
            outbox.delta(draft.add_input(len(text) % calls, text))
        elif kind == "notice":
            outbox.tell(AgentEvent(type=AgentEventType.LOADING, session_id="s", run_id="r", message="", detail=""))
        elif kind == "withdraw":
            draft.withdraw()
            calls = 0
            outbox.whole(draft.message())
        elif kind == "commit" and store.waiting:
            await store.answer()
        elif kind == "fail" and store.waiting:
            await store.answer(StoreUnavailable("full"))
    await store.answer_all()
    await outbox.flush()
    assert _unsigned(heard(store.events)["m"]) == _unsigned(stored(store.units, blank())) == _unsigned(draft.message())
    finished = close_message(draft.message(), None, at=AT)
    outbox.hold()
    outbox.whole(finished)
    writes, entries = await outbox.close()
    assert heard(store.events + events_of(entries)) == {"m": finished}
    assert writes[-1].params["finished_at"] == AT


async def test_g3_a_turn_whose_workspace_has_another_owner_sends_nothing_more(
    store: SlowStore, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even later, when this server may be the owner again. Nobody hears that it is on disk."""
    later: list[object] = []
    monkeypatch.setattr("longboat.runtime.turn.outbox.retry_later", later.append)
    begin(outbox)
    flushed = asyncio.create_task(outbox.flush())
    await store.answer(OwnerLost())
    outbox.tell(AgentEvent(type=AgentEventType.RETRYING, session_id="s", run_id="r"))
    assert (store.waiting, later, flushed.done()) == ([], [], False)
    flushed.cancel()


def _unsigned(message: Message) -> Message:
    """A signature is told with the next whole message: it is no text, and nobody shows it."""
    parts = tuple(ReasoningPart(text=part.text) if isinstance(part, ReasoningPart) else part for part in message.parts)
    return msgspec.structs.replace(message, parts=parts)


_words = st.text("ab é🛶", min_size=1, max_size=5)
_said = st.tuples(st.sampled_from(["text", "reasoning", "call", "input"]), _words)
_done = st.tuples(st.sampled_from(["notice", "withdraw", "commit", "fail"]), st.just(""))


@given(st.lists(st.one_of(_said, _said, _said, _done), max_size=40))
@example([("call", "a"), ("text", "a"), ("call", "a"), ("input", "ab"), ("fail", ""), ("input", "a"), ("call", "b")])
def test_whatever_is_said_and_whenever_it_commits_all_have_the_draft(
    script: list[tuple[str, str]],
) -> None:
    """T3, T5, T7: merging is only a saving."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longboat.runtime.store_retry.BACKOFF", Backoff(base_s=0.0))
        asyncio.run(_play(script))
