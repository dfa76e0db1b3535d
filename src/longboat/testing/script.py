"""What a scripted model does: the items of a step, the gates that force an interleaving, and their form as JSON.

Owns the script alone; `scripted` plays it in-process, `endpoint` plays it over HTTP. A step is a list of items, played
in order; it ends like a real answer unless an item ends it otherwise.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar, assert_never

import msgspec

from longboat.errors import ModelError
from longboat.models.protocol import StopReason

T = TypeVar("T")


class Gate:
    """A place where a script waits. A test awaits `reached()`, does what must happen meanwhile, and calls `open()`.

    An open gate stays open. Over HTTP a gate is known by its name.
    """

    def __init__(self, name: str = "gate") -> None:
        self.name = name
        self._reached = asyncio.Event()
        self._open = asyncio.Event()

    @property
    def is_reached(self) -> bool:
        return self._reached.is_set()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    async def reached(self) -> None:
        """Wait until a script stands at the gate."""
        await self._reached.wait()

    def open(self) -> None:
        self._open.set()

    async def arrive(self) -> None:
        """What the script does: say that it is here, and wait."""
        self._reached.set()
        await self._open.wait()


class _Item(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of all items."""


class Say(_Item, frozen=True, tag="say"):
    """One delta of text. Several in a row are several deltas; `words` cuts a text into them."""

    text: str


class Think(_Item, frozen=True, tag="think"):
    """One delta of reasoning."""

    text: str


class CallTool(_Item, frozen=True, tag="call_tool"):
    """A tool call. `arguments` as text are sent as they are, for what no valid JSON can show."""

    name: str
    arguments: dict[str, Any] | str = {}
    call_id: str | None = None

    @property
    def input(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else msgspec.json.encode(self.arguments).decode()


class Pause(_Item, frozen=True, tag="pause"):
    """Wait at a gate."""

    gate: Gate


class Delay(_Item, frozen=True, tag="delay"):
    """Wait some seconds: for demonstrations and load. A test that needs an order uses `Pause`."""

    seconds: float


class Use(_Item, frozen=True, tag="use"):
    """The usage that the step will report. Without a cost its price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


class Stop(_Item, frozen=True, tag="stop"):
    """End the step with this reason. Without it: `tool_use` if a tool was called, else `end_turn`."""

    reason: StopReason = StopReason.END_TURN


class Fail(_Item, frozen=True, tag="fail"):
    """Fail with this error. Over HTTP: an error object inside the stream (`Refuse` is a refusal by status)."""

    error: ModelError


class Hang(_Item, frozen=True, tag="hang"):
    """Send nothing more until the other side leaves."""


class Break(_Item, frozen=True, tag="break"):
    """End the stream without a finish reason. Over HTTP it closes in good order, or drops the connection."""

    drop: bool = False


class Refuse(_Item, frozen=True, tag="refuse"):
    """HTTP only, first in its step: refuse the request with a status."""

    status: int
    message: str = "refused by the script"
    code: str | None = None
    retry_after: str | None = None
    body: str | None = None
    """The whole body, when it should not be the usual error object."""


class Raw(_Item, frozen=True, tag="raw"):
    """HTTP only: these very characters on the stream."""

    text: str


Item = Say | Think | CallTool | Pause | Delay | Use | Stop | Fail | Hang | Break
HttpItem = Item | Refuse | Raw
Step = Sequence[Item]
HttpStep = Sequence[HttpItem]


async def wait_for(item: Pause | Delay | Hang) -> None:
    """Do what an item that only takes time does."""
    match item:
        case Pause():
            await item.gate.arrive()
        case Delay():
            await asyncio.sleep(item.seconds)
        case Hang():
            await asyncio.get_running_loop().create_future()
        case _:
            assert_never(item)


class ScriptExhausted(LookupError):
    """A step was asked for and none is left."""


class Script(Generic[T]):
    """Steps in order. With `repeat` they start again after the last."""

    def __init__(self, steps: Iterable[T] = (), *, repeat: bool = False) -> None:
        self._steps = list(steps)
        self._repeat = repeat
        self._taken = 0

    def add(self, *steps: T) -> None:
        self._steps += steps

    @property
    def left(self) -> bool:
        return self._taken < len(self._steps) or (self._repeat and bool(self._steps))

    def take(self) -> T:
        if not self.left:
            raise ScriptExhausted(f"all {len(self._steps)} steps of the script are used up")
        step = self._steps[self._taken % len(self._steps)]
        self._taken += 1
        return step


class Recorded(list[T]):
    """A list that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = asyncio.Event()

    def note(self, item: T) -> None:
        self.append(item)
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, count: int) -> None:
        """Wait until it holds at least `count` items."""
        while len(self) < count:
            await self._changed.wait()


def words(text: str) -> list[Say]:
    """The text as word-sized deltas that add up to it."""
    pieces = text.split(" ")
    return [Say(piece if index == 0 else f" {piece}") for index, piece in enumerate(pieces)]


class ScriptBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A script as JSON: what `POST /control/script` takes, and `--script FILE` a list of. No name: the common queue."""

    steps: list[list[HttpItem]]
    name: str | None = None
    repeat: bool = False


def encode_script(steps: Iterable[HttpStep], *, name: str | None = None, repeat: bool = False) -> bytes:
    """The body of `POST /control/script` for these steps; gates go by their names."""
    return msgspec.json.encode(
        ScriptBody(steps=[list(step) for step in steps], name=name, repeat=repeat), enc_hook=_encode_custom
    )


def decode_script(body: bytes, gate: Callable[[str], Gate]) -> ScriptBody:
    """The script in a body of `POST /control/script`; `gate` gives the gate of a name."""
    return msgspec.json.decode(body, type=ScriptBody, dec_hook=_decoder_of_custom(gate))


def decode_scripts(text: bytes, gate: Callable[[str], Gate]) -> list[ScriptBody]:
    """The scripts in a file: a list of what `decode_script` takes."""
    return msgspec.json.decode(text, type=list[ScriptBody], dec_hook=_decoder_of_custom(gate))


def _decoder_of_custom(gate: Callable[[str], Gate]) -> Callable[[type, Any], Any]:
    def decode(kind: type, value: Any) -> Any:
        if kind is Gate and isinstance(value, str):
            return gate(value)
        if kind is ModelError and isinstance(value, dict):
            return ModelError(**value)
        raise ValueError(f"{value!r} is no {kind.__name__}")

    return decode


def _encode_custom(value: Any) -> Any:
    match value:
        case Gate():
            return value.name
        case ModelError():
            return {"message": value.message, "code": value.code}
    raise NotImplementedError(f"{type(value).__name__} has no place in a script")
