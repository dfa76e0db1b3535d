"""The terminal app: what streaming costs it, how soon text is on the screen, and whether a long session costs more."""

import statistics
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import Row, RunningServer, compare, line_of, longboat, process
from benchmarks.paced import PER_S
from benchmarks.screen import screen
from benchmarks.wires import RUN_COMPLETE

TOKENS, ROUNDS = 2_000, 3
SHORT, LONG, FEW_TOKENS = 100, 10_000, 600
LAST = "the-end-of-it"
NOW = "2026-11-15T12:00:00.000000Z"


def measure() -> list[Row]:
    with process("-m", "benchmarks.paced") as endpoint, longboat(f"{line_of(endpoint)}/v1") as server:
        once = _visit(server, SHORT, TOKENS)
        sides = [(_visit(server, SHORT, FEW_TOKENS), _visit(server, LONG, FEW_TOKENS)) for _ in range(ROUNDS)]
    return [_cpu(once.streamed), _delay(once.delays), *_ratios(sides)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What a session cost the app: CPU seconds, megabytes, and seconds until each stamp was on the screen."""

    opened: float
    streamed: float
    resident: float
    delays: list[float]


def _visit(server: RunningServer, messages: int, tokens: int) -> Visit:
    session_id = _imported(server, messages)
    with screen(server, session_id) as shown, server.subscriber() as events:
        shown.until(b"Idle")
        shown.until(LAST.encode())
        opened = shown.cpu_s
        shown.forget()
        server.wire.ask(
            "POST", f"{server.workspace}/agent", {"session_id": session_id, "prompt": f"Go on. [[{tokens}]]"}
        )
        events.wait_for(RUN_COMPLETE)
        shown.until(b"Idle")
        return Visit(
            opened=opened,
            streamed=shown.cpu_s - opened,
            resident=shown.resident_mb,
            delays=[delay / 1e9 for _, delay in sorted(shown.delays.items())],
        )


def _imported(server: RunningServer, count: int) -> str:
    """A session of so many messages, prompts and answers in turn."""
    messages = [
        {
            "id": f"m{number}",
            "session_id": "s",
            "run_id": f"r{number // 2}",
            "seq": number + 1,
            "role": "assistant" if number % 2 else "user",
            "parts": [{"type": "text", "text": _text(number, count)}],
            "created_at": NOW,
            "finished_at": NOW,
        }
        for number in range(count)
    ]
    session = {"id": "s", "workspace_id": "w", "title": f"{count} messages", "created_at": NOW, "updated_at": NOW}
    document = {"format": "longboat-session", "version": 1, "exported_at": NOW, "session": session}
    made: dict[str, Any] = server.wire.ask(
        "POST",
        f"{server.workspace}/sessions/import",
        # As with a session that was summarized: the model is sent its end, and the app waits no longer for it.
        document | {"summary_seq": count - 1, "messages": messages, "runs": []},
    )
    return str(made["id"])


def _text(number: int, count: int) -> str:
    if number % 2 == 0:
        return f"What is number {number}?"
    end = LAST if number == count - 1 else ""
    return f"# Answer {number}\n\nSome **words** and `code`.\n\n- one\n- two\n\n{end}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"


def _megabytes(megabytes: float) -> str:
    return f"{megabytes:.0f} MB"


def _cpu(used: float) -> Row:
    share = 100 * used * PER_S / TOKENS
    return Row(
        work=f"terminal app: CPU at {PER_S} tokens/s of Markdown, {TOKENS:,} of them",
        floor="–",
        longboat=f"{share:.0f} % of a core",
        score="–",
        spread="–",
        bound="≤ 50 %",
        passed=share <= 50,
    )


def _delay(delays: list[float]) -> Row:
    tenth = len(delays) // 10
    first, last = statistics.median(delays[:tenth]), statistics.median(delays[-tenth:])
    middle = statistics.median(delays)
    return Row(
        work="terminal app: model's byte → on the screen meanwhile, p50; spread: first and last tenth",
        floor="–",
        longboat=f"{1000 * middle:.0f} ms",
        score="–",
        spread=f"{1000 * first:.0f}–{1000 * last:.0f} ms",
        bound="≤ 150 ms",
        passed=middle <= 0.15,
    )


def _ratios(sides: list[tuple[Visit, Visit]]) -> list[Row]:
    def rounds(what: str) -> list[tuple[float, float]]:
        return [(getattr(short, what), getattr(long, what)) for short, long in sides]

    beside = f"{LONG:,} messages, floor: {SHORT}"
    return [
        compare(f"terminal app: CPU to open a session of {beside}", rounds("opened"), _seconds, at_most=2),
        compare(f"terminal app: CPU to stream into one of {beside}", rounds("streamed"), _seconds, at_most=2),
        compare(f"terminal app: memory with {beside}", rounds("resident"), _megabytes, at_most=2),
    ]
