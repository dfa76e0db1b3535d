"""Finds model servers that already run on this machine: Ollama and llama.cpp, on their default ports.

Owns how they are recognized: by their answer, because anything may listen on these ports. The search has a time limit,
and happens only if nothing else is configured. Must not know the wire format that is then used.
"""

import json
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from longboat.config.settings import ModelEntry, ProviderSection
from longboat.models.catalogue import FREE

LOOK_S = 0.2
"""For all of them together."""
OLLAMA_WINDOW = 32_768
"""Ollama does not say how much it gives a model; this much it usually does, and more is set in longboat.json."""

_MAX_ANSWER = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """A server with its default port, and how to read its list of models."""

    name: str
    port: int
    path: str
    models: Callable[[Any], list[ModelEntry]]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


def _of_ollama(answer: Any) -> list[ModelEntry]:
    return [ModelEntry(id=model["name"], context_window=OLLAMA_WINDOW, price=FREE) for model in answer["models"]]


def _of_llama_cpp(answer: Any) -> list[ModelEntry]:
    ours = [model for model in answer["data"] if model.get("owned_by") == "llamacpp"]
    return [ModelEntry(id=model["id"], context_window=_window(model.get("meta")), price=FREE) for model in ours]


def _window(meta: Any) -> int | None:
    found = (meta.get("n_ctx") or meta.get("n_ctx_train")) if isinstance(meta, dict) else None
    return found if isinstance(found, int) and found > 0 else None


USUAL = (
    Usual(name="ollama", port=11434, path="/api/tags", models=_of_ollama),
    Usual(name="llamacpp", port=8080, path="/v1/models", models=_of_llama_cpp),
)

Found = tuple[str, ProviderSection]


def look(servers: Iterable[Usual] = USUAL, *, within_s: float = LOOK_S) -> Found | None:
    """The first server that is there and has a model, as a provider and its section."""
    until = time.monotonic() + within_s
    for server in servers:
        try:
            models = server.models(json.loads(_get(server, until)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # no one is there, or it is something else
        if models:
            section = ProviderSection(type="openai-compatible", base_url=server.base_url, models=tuple(models))
            return server.name, section
    return None


def section_of(name: str, servers: Iterable[Usual] = USUAL) -> ProviderSection | None:
    """The section of such a server when a prompt names it; whether it runs will be seen."""
    for server in servers:
        if server.name == name:
            return ProviderSection(type="openai-compatible", base_url=server.base_url)
    return None


def _get(server: Usual, until: float) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=_left(until)) as connection:
        # The older HTTP: the answer comes in one piece and ends with the connection.
        connection.sendall(f"GET {server.path} HTTP/1.0\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        answer = bytearray()
        while len(answer) < _MAX_ANSWER:
            connection.settimeout(_left(until))
            piece = connection.recv(65536)
            if not piece:
                break
            answer += piece
    head, _, body = bytes(answer).partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise ValueError("no such list")
    return body


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
