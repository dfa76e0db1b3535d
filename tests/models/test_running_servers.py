"""Ollama and llama.cpp on this machine, found by what they answer (A6)."""

import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from longboat.config.settings import Config, ModelEntry, ModelsSection
from longboat.errors import ModelError
from longboat.models.catalogue import FREE
from longboat.models.registry import Registry
from longboat.models.running_servers import LOOK_S, OLLAMA_WINDOW, USUAL, Usual, look

OLLAMA, LLAMA_CPP = USUAL
TAGS = {"models": [{"name": "qwen3:8b"}, {"name": "llama3.2:latest"}]}
MODELS = {"data": [{"id": "qwen.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 40960}}]}


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A server that gives one answer, or accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                held.append(connection)
                if answer is not None:
                    connection.recv(4096)
                    connection.sendall(answer)
                    connection.close()

        held: list[socket.socket] = []
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in held:
            connection.close()


def page(value: Any, status: str = "200 OK") -> bytes:
    return f"HTTP/1.0 {status}\r\nContent-Type: application/json\r\n\r\n{json.dumps(value)}".encode()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_running_ollama_is_found_with_its_models():
    with listening(page(TAGS)) as port:
        found = look([replace(OLLAMA, port=port)])
    assert found is not None
    name, section = found
    assert (name, section.base_url) == ("ollama", f"http://127.0.0.1:{port}/v1")
    assert section.models == tuple(
        ModelEntry(id=each, context_window=OLLAMA_WINDOW, price=FREE) for each in ("qwen3:8b", "llama3.2:latest")
    )


def test_a_running_llama_cpp_tells_its_window():
    with listening(page(MODELS)) as port:
        found = look([replace(OLLAMA, port=free_port()), replace(LLAMA_CPP, port=port)])
    assert found is not None
    assert found[1].models == (ModelEntry(id="qwen.gguf", context_window=40960, price=FREE),)


@pytest.mark.parametrize(
    "answer",
    [
        page({"data": [{"id": "gpt", "owned_by": "someone else"}]}),
        page({"models": []}),
        page(TAGS, "404 Not Found"),
        b"<html>hello</html>",
        b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 100_000,
        page("a web server"),
        b"",
    ],
)
@pytest.mark.parametrize("server", USUAL, ids=lambda server: server.name)
def test_whatever_else_listens_there_is_left_alone(server: Usual, answer: bytes):
    with listening(answer) as port:
        assert look([replace(server, port=port)]) is None


def test_a_server_that_never_answers_is_given_up_and_the_next_is_not_asked():
    """Whoever starts waits once, however many servers there could be."""
    with listening(None) as port, listening(page(MODELS)) as other:
        servers = [replace(OLLAMA, port=port), replace(LLAMA_CPP, port=other)]
        assert look(servers, within_s=0.05) is None
        assert look(servers[1:]) is not None
    assert LOOK_S < 1


def registry(port: int, **models: Any) -> Registry:
    return Registry(
        Config(models=ModelsSection(**models)),
        {},
        data_dir=Path("/nowhere"),
        look=lambda: look([replace(OLLAMA, port=port)]),
    )


def test_it_answers_when_nothing_is_configured_and_before_the_local_model(monkeypatch: pytest.MonkeyPatch):
    runtime = ModuleType("xllamacpp")
    runtime.__spec__ = ModuleSpec("xllamacpp", None)
    monkeypatch.setitem(sys.modules, "xllamacpp", runtime)
    with listening(page(TAGS)) as port:
        overview = registry(port).describe()
        model = registry(port).resolve(None, "large")
    assert (overview.large, overview.small) == ("ollama/qwen3:8b", "ollama/qwen3:8b")
    assert next(info for info in overview.providers if info.name == "ollama").source == "found running"
    assert (model.provider, model.name, model.context_window) == ("ollama", "qwen3:8b", OLLAMA_WINDOW)


def test_nobody_looks_where_the_setting_says_no_or_a_key_is_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    asked: list[None] = []

    def noted() -> None:
        asked.append(None)

    with pytest.raises(ModelError):
        Registry(Config(models=ModelsSection(detect=False)), {}, data_dir=Path("/nowhere"), look=noted).resolve(
            None, "large"
        )
    keyed = Registry(Config(), {"GROQ_API_KEY": "k"}, data_dir=Path("/nowhere"), look=noted)
    assert keyed.resolve(None, "large").provider == "groq"
    assert asked == []


def test_a_prompt_may_name_it_without_a_look():
    model = Registry(Config(), {}, data_dir=Path("/nowhere"), look=lambda: None).resolve("llamacpp/qwen", "large")
    assert (model.provider, model.name) == ("llamacpp", "qwen")
