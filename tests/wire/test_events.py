"""The event manifest and its codec: every payload makes the round trip, and the manifest agrees with the shapes."""

import re
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longboat.wire import models
from longboat.wire.events import (
    EVENT_TYPES,
    EVENTS,
    UNLOGGED,
    Change,
    Event,
    decode_event,
    encode_body,
    encode_unlogged,
)
from longboat.wire.sse import Decoder

HTTP = Path(__file__).parents[2] / "docs" / "http.md"

# Any text at all: line ends, quotes and separators inside a payload must never break a frame.
_text = st.text(max_size=10) | st.sampled_from(["\n\ndata: x", "\r\r", 'a"}', "\u2028", "\0", "😀"])
_plain: dict[Any, st.SearchStrategy[Any]] = {
    str: _text,
    int: st.integers(0, 2**53),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
    dict[str, Any]: st.dictionaries(_text, st.none() | _text | st.integers(0, 9), max_size=2),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a wire shape or of one of its field types."""
    if hint in _plain:
        return _plain[hint]
    if get_origin(hint) in (Union, UnionType):
        return st.one_of(*map(values, get_args(hint)))
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0]), max_size=2).map(tuple)
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    return st.builds(hint, **{field.name: values(field.type) for field in msgspec.structs.fields(hint)})


PAYLOADS = {name: values(spec.payload) for name, spec in EVENTS.items()} | {
    name: values(payload) for name, payload in UNLOGGED.items()
}
EVERY_KIND = [(name, change) for name, spec in EVENTS.items() for change in spec.changes]


@pytest.mark.parametrize(("name", "change"), EVERY_KIND)
@settings(deadline=None)
@given(data=st.data())
def test_every_payload_makes_the_round_trip_as_one_frame(name: str, change: Change, data: st.DataObject) -> None:
    payload = data.draw(PAYLOADS[name])
    (frame,) = Decoder().decode(b"id: w/1/7\n" + encode_body(change, payload))
    assert (frame.event, frame.id) == (name, "w/1/7")
    assert decode_event(frame.data, frame.id) == Event(name, change, payload, "w/1/7")


@pytest.mark.parametrize("name", UNLOGGED)
@settings(deadline=None)
@given(data=st.data())
def test_snapshot_and_resync_make_the_round_trip_without_id_or_inner_envelope(name: str, data: st.DataObject) -> None:
    payload = data.draw(PAYLOADS[name])
    (frame,) = Decoder().decode(encode_unlogged(payload))
    assert (frame.event, frame.id) == (name, None)
    assert decode_event(frame.data) == Event(name, None, payload, None)
    assert list(msgspec.json.decode(frame.data)) == ["type", "payload"]


def test_the_envelope_is_the_one_of_the_contract() -> None:
    body = encode_body(Change.CREATED, models.ClientInfo(client_id="me", attached_at="2030-01-01T00:00:00.000000Z"))
    assert body == (
        b'event: client\ndata: {"type":"client","payload":{"type":"created",'
        b'"payload":{"client_id":"me","attached_at":"2030-01-01T00:00:00.000000Z"}}}\n\n'
    )


def test_run_complete_is_spelled_as_on_the_wire() -> None:
    complete = models.RunComplete(run_id="r", session_id="s", cancelled=True, outcome=models.Outcome.CANCELED)
    assert msgspec.to_builtins(complete) == {
        "run_id": "r",
        "session_id": "s",
        "message_id": None,
        "text": "",
        "error": "",
        "cancelled": True,
        "outcome": "canceled",
        "folded_into": None,
    }


@pytest.mark.parametrize(
    "data", [b'{"type":"sail","payload":{"type":"created","payload":{}}}', b'{"type":"x","payload":1}']
)
def test_a_type_that_this_client_does_not_know_is_none(data: bytes) -> None:
    assert decode_event(data, "w/1/1") is None


def test_fields_that_this_client_does_not_know_are_ignored() -> None:
    data = b'{"type":"resync","new":1,"payload":{"reason":"gone","more":{"x":[]}}}'
    assert decode_event(data) == Event("resync", None, models.Resync(reason="gone"))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"type":"run"}', b'{"type":"run","payload":{"type":"created"}}'])
def test_what_is_no_event_is_an_error_and_not_silence(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_event(data)


def test_the_manifest_agrees_with_the_payload_types() -> None:
    assert len(EVENT_TYPES) == len(EVENTS), "one payload type for each event, or encode_body could not name it"
    assert {EVENT_TYPES[spec.payload]: spec for spec in EVENTS.values()} == EVENTS
    assert set(EVENTS).isdisjoint(UNLOGGED)
    assert {name: payload.__name__.lower() for name, payload in UNLOGGED.items()} == {name: name for name in UNLOGGED}
    for name, spec in EVENTS.items():
        assert spec.changes, name
        assert len(set(spec.changes)) == len(spec.changes), name
        assert spec.meaning.endswith("."), name


def test_the_types_are_those_that_the_page_for_people_lists() -> None:
    """docs/http.md is written by hand, after the contract: what is missing here or there is a promise broken."""
    (listed,) = re.findall(r"^- The types of events: (.+?)\.\n", HTTP.read_text(), re.MULTILINE | re.DOTALL)
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted([*EVENTS, *UNLOGGED])


def test_the_manifest_has_the_inner_types_that_the_contract_fixes() -> None:
    assert EVENTS["run_complete"].changes == EVENTS["agent_event"].changes == (Change.CREATED,)
    assert EVENTS["message_delta"].changes == (Change.UPDATED,)


def test_a_shape_that_is_no_event_cannot_be_sent_as_one() -> None:
    with pytest.raises(KeyError):
        encode_body(Change.CREATED, models.Usage())
