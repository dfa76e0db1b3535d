"""Sessions that nobody lived through: documents for `POST W/sessions/import` with as many messages as a test wants."""

from collections.abc import Iterable
from typing import Any

import httpx2
import msgspec
from sessions import SessionClient

from longboat.tools.registry import built_in_traits
from longboat.wire.tools import ToolTraits

NOW = "2026-01-02T03:04:05.678Z"

Parts = list[dict[str, Any]]


def turn(number: int, prompt: Parts, answer: Parts, *, client_id: str = "anna") -> dict[str, Any]:
    """A prompt and its answer; a tool call in the answer is answered with the same number."""
    return {"run_id": f"r{number}", "client_id": client_id, "prompt": prompt, "answer": answer}


def text(value: str) -> Parts:
    return [{"type": "text", "text": value}]


def called(
    call_id: str, name: str, arguments: dict[str, Any], result: str, traits: ToolTraits | None = None
) -> tuple[Parts, Parts]:
    """A call and its result. `traits`: of a tool that is not built in, if it has any."""
    said = {"type": "tool_call", "id": call_id, "name": name, "input": msgspec.json.encode(arguments).decode()}
    told = msgspec.to_builtins(traits or built_in_traits().get(name))
    return [said | {"finished": True, "traits": told}], [
        {"type": "tool_result", "tool_call_id": call_id, "content": result}
    ]


async def imported(session: SessionClient, title: str, runs: Iterable[dict[str, Any]], **more: Any) -> SessionClient:
    """A new session beside another one. A run is a dict of run_id, client_id, prompt, and messages or an answer;
    `run` has what its row says otherwise."""
    messages: list[dict[str, Any]] = []
    known: list[dict[str, Any]] = []
    for run in runs:
        rows = run.get("messages") or [("user", run["prompt"]), ("assistant", run["answer"])]
        messages += [{"run_id": run["run_id"], "role": role, "parts": parts} for role, parts in rows]
        prompt = "".join(part.get("text", "") for part in run.get("prompt", ())) or "…"
        known.append(_run(run["run_id"], run["client_id"], len(known) + 1, prompt) | run.get("run", {}))
    document = {
        "format": "longboat-session",
        "version": 1,
        "exported_at": NOW,
        "session": {"id": "s", "workspace_id": "w", "title": title, "created_at": NOW, "updated_at": NOW},
        "summary_seq": 0,
        "messages": [
            message | {"id": f"m{seq}", "session_id": "s", "seq": seq, "created_at": NOW, "finished_at": NOW}
            for seq, message in enumerate(messages, 1)
        ],
        "runs": known,
    }
    answer = await session.http.post(
        f"{session.workspace}/sessions/import", content=msgspec.json.encode(document | more)
    )
    return _client(session.http, session.workspace, answer)


def _client(http: httpx2.AsyncClient, workspace: str, answer: httpx2.Response) -> SessionClient:
    assert answer.status_code == 201, answer.text
    return SessionClient(http, workspace, answer.json()["id"], start="")


def _run(run_id: str, client_id: str, seq: int, prompt: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "seq": seq,
        "session_id": "s",
        "state": "finished",
        "outcome": "end_turn",
        "delivery": "queue",
        "prompt": prompt,
        "accepted_at": NOW,
        "started_at": NOW,
        "finished_at": NOW,
        "client_id": client_id,
    }
