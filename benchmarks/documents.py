"""Sessions with a past, for `POST W/sessions/import`: prompts and answers in turn."""

from collections.abc import Iterator
from typing import Any

NOW = "2026-01-02T03:04:05.678Z"


def document(messages: int) -> dict[str, Any]:
    turns = range(1, messages // 2 + 1)
    return {
        "format": "longboat-session",
        "version": 1,
        "exported_at": NOW,
        "session": {"id": "s", "workspace_id": "w", "title": f"{messages}", "created_at": NOW, "updated_at": NOW},
        "summary_seq": 0,
        "messages": [message for number in turns for message in _turn(number)],
        "runs": [_run(number) for number in turns],
    }


def _turn(number: int) -> Iterator[dict[str, Any]]:
    answer = f"Answer {number} has **weight**.\n\n- one\n- two\n\n```python\nprint({number})\n```\n"
    for offset, role, text in ((1, "user", f"Prompt {number}"), (0, "assistant", answer)):
        seq = 2 * number - offset
        yield {
            "id": f"m{seq}",
            "session_id": "s",
            "run_id": f"r{number}",
            "seq": seq,
            "role": role,
            "parts": [{"type": "text", "text": text}],
            "created_at": NOW,
            "finished_at": NOW,
        }


def _run(number: int) -> dict[str, Any]:
    return {
        "run_id": f"r{number}",
        "seq": number,
        "session_id": "s",
        "state": "finished",
        "outcome": "end_turn",
        "delivery": "queue",
        "prompt": f"Prompt {number}",
        "accepted_at": NOW,
        "started_at": NOW,
        "finished_at": NOW,
        "client_id": "bench",
    }
