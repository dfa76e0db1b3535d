"""A turn's decisions without I/O: what is a prompt, when the context window is nearly full, when the turn loops."""

from collections import deque
from collections.abc import Iterable, Iterator

from longboat.wire.models import Attachment, FilePart, FinishPart, Message, ToolCallPart, ToolResultPart, Usage

LOOP_WINDOW = 10
LOOP_REPEATS = 5
IMAGE = 6_000
"""Characters that an image counts for."""
MOST_TOKENS = 10**9
"""In one step."""


def has_words(prompt: str, attachments: Iterable[Attachment]) -> bool:
    """T1: a prompt needs text or a text attachment."""
    return bool(prompt.strip()) or any((file.text or "").strip() for file in attachments)


def is_waiting(call: ToolCallPart, result: ToolResultPart) -> bool:
    """Whether the call may be repeated for the same result: what it waits for has not happened yet. Only the limits of
    the turn end that."""
    return call.traits is not None and call.traits.waits and not result.is_error


class LoopGuard:
    """T9: notices a turn that repeats the same call with the same result."""

    def __init__(self) -> None:
        self._seen: deque[tuple[str, str, str]] = deque(maxlen=LOOP_WINDOW)

    def is_loop(self, call: ToolCallPart, result: ToolResultPart) -> bool:
        if is_waiting(call, result):
            return False
        signature = (call.name, call.input, result.content)
        self._seen.append(signature)
        return self._seen.count(signature) >= LOOP_REPEATS


def plausible(usage: Usage) -> Usage:
    """What a provider counted, within what can be counted: nonsense must not reach the ledger. Tokens without a cost
    are counted as unpriced."""

    def tokens(count: int) -> int:
        return min(max(count, 0), MOST_TOKENS)

    read, written = tokens(usage.input_tokens), tokens(usage.output_tokens)
    priced = usage.cost is not None and 0 <= usage.cost <= MOST_TOKENS
    return Usage.of(
        input_tokens=read,
        output_tokens=written,
        cost=usage.cost if usage.cost is not None and priced else 0.0,
        unpriced_tokens=0 if priced else read + written,
    )


def nearly_full(used_tokens: int, window: int) -> bool:
    """A7: 20 % of the window is left, or 20k tokens of one above 200k."""
    reserve = 20_000 if window > 200_000 else window // 5
    return window - used_tokens <= reserve


def estimate_tokens(messages: Iterable[Message]) -> int:
    """A rough count where no provider has told: four characters a token, and a little for each message."""
    return sum(8 + sum(_length(part) for part in message.parts) // 4 for message in messages)


def _length(part: object) -> int:
    match part:
        case ToolCallPart():
            return len(part.name) + len(part.input)
        case ToolResultPart():
            return len(part.content) + IMAGE * len(part.images)
        case FilePart():
            return len(part.text) if part.text is not None else IMAGE
        case FinishPart():
            return 0
        case _:
            return len(getattr(part, "text", ""))


class Asked:
    def __init__(self, first: str) -> None:
        self._prompts = [first]
        self._told = 0

    def add(self, prompt: str) -> None:
        self._prompts.append(prompt)

    def take_back(self, prompt: str) -> None:
        """Remove the newest prompt with this text: the same text may have been sent before."""
        at = len(self._prompts) - 1 - self._prompts[::-1].index(prompt)
        del self._prompts[at]
        if at < self._told:
            self._told -= 1

    def begin_with(self, prompt: str) -> None:
        """Replace the text of the prompt that began the turn."""
        self._prompts[0] = prompt

    def forget(self) -> None:
        self._prompts.clear()

    def untold(self) -> Iterator[tuple[str, bool]]:
        """Each prompt once, with whether it began the turn; includes those added during the iteration."""
        while self._told < len(self._prompts):
            self._told += 1
            yield self._prompts[self._told - 1], self._told == 1

    def text(self) -> str:
        return "\n\n".join(self._prompts)
