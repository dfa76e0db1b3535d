"""The set-up of providers (issue 12, 1): a key is tried, stored and used, by the server that is already running."""

import asyncio
import contextlib
import hashlib
import json
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from running_app import configure, launch, watch

from longboat.config.credentials import credentials_file
from longboat.config.load import user_config_file
from longboat.config.trust import record, trusted_file
from longboat.errors import BadInput, ConfigInvalid, ProviderNotFound
from longboat.models import provider_check
from longboat.runtime.app import App
from longboat.testing import CallTool, Say, ScriptedModel
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.models import Outcome
from longboat.wire.providers import Provider, ProviderCheck
from longboat.wire.requests import Approve, CheckProvider, ConnectProvider
from secrecy import SECRETS, check_files

KEY = SECRETS["stored key"]
QUIET = {"models": {"detect": False}, "titles": False, "retry": {"base_s": 0, "attempts": 1}}


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    configure(**QUIET)


@pytest.fixture
async def endpoint() -> AsyncIterator[ScriptedEndpoint]:
    async with ScriptedEndpoint(api_key=KEY, models=("text-embedding-9", "coder", "talker")) as found:
        yield found


def keys() -> Path:
    return credentials_file(user_config_file(os.environ, Path.home()))


def own_config() -> dict[str, object]:
    found: dict[str, object] = json.loads(user_config_file(os.environ, Path.home()).read_text())
    return found


async def check(app: App, provider: str, **entered: str) -> ProviderCheck:
    return await (await app.providers()).check(provider, CheckProvider(**entered))


async def connect(app: App, provider: str, **wanted: str) -> Provider:
    return await app.connect_provider(provider, ConnectProvider(**wanted))


async def listed(app: App, provider: str) -> Provider:
    return next(each for each in (await (await app.providers()).list()).items if each.id == provider)


# Listing


async def test_providers_say_what_they_need_and_where_a_key_is_made(tmp_path: Path) -> None:
    async with launch(tmp_path, None, config="{}") as running:
        page = await (await running.app.providers()).list()
        assert page.model is None
        assert not any(each.connected for each in page.items)
        anthropic = await listed(running.app, "anthropic")
        assert (anthropic.name, anthropic.key, anthropic.url) == ("Anthropic", "required", "none")
        assert anthropic.variable == "ANTHROPIC_API_KEY"
        assert (anthropic.key_page or "").startswith("https://console.anthropic.com/")
        assert {each.id for each in page.items} >= {"openai", "azure", "ollama", "llamacpp", "local", "custom"}
        assert (await listed(running.app, "custom")).url == "required"
        assert (await listed(running.app, "azure")).url == "required"


async def test_a_key_in_the_environment_connects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    async with launch(tmp_path, None, config="{}") as running:
        groq = await listed(running.app, "groq")
        assert (groq.connected, groq.source, groq.stored) == (True, "environment", False)
        page = await (await running.app.providers()).list()
        assert page.items[0].id == "groq", "connected ones come first"
        with pytest.raises(BadInput, match="GROQ_API_KEY, which comes first") as refused:
            await connect(running.app, "groq", api_key="another-key")
        assert refused.value.code == "key_set_elsewhere"
        await connect(running.app, "groq", api_key=KEY)
        assert not keys().exists(), "the environment has this very key"


# Checking


async def test_a_check_lists_the_models_that_talk_and_stores_nothing(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    before = own_config()
    async with launch(tmp_path, None, config="{}") as running:
        found = await check(running.app, "custom", api_key=KEY, base_url=endpoint.base_url)
        assert (found.ok, found.problem, found.base_url) == (True, None, endpoint.base_url)
        assert [model.name for model in found.models] == ["custom/coder", "custom/talker"]
        assert found.models[0].price is None
    assert own_config() == before
    assert not keys().exists()


@pytest.mark.parametrize("path", ["/", "/chat/completions", "/v1/chat/completions"])
async def test_a_forgotten_v1_is_found_and_the_address_of_the_chat_is_understood(
    tmp_path: Path, endpoint: ScriptedEndpoint, path: str
) -> None:
    async with launch(tmp_path, None, config="{}") as running:
        found = await check(running.app, "custom", api_key=KEY, base_url=endpoint.url + path)
        assert (found.ok, found.base_url) == (True, endpoint.base_url)


async def test_a_wrong_key_is_told_as_such_and_not_quoted(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    wrong = f"{KEY}-with-a-slip"
    async with launch(tmp_path, None, config="{}") as running:
        found = await check(running.app, "custom", api_key=wrong, base_url=endpoint.base_url)
        assert not found.ok
        assert (found.problem or "").startswith("custom rejected the API key (status 401). Response: Incorrect API key")
        assert wrong not in (found.problem or "")
        found = await check(running.app, "custom", base_url=endpoint.base_url)
        assert (found.problem or "").startswith("custom needs an API key.")
        found = await check(running.app, "custom", api_key=wrong, base_url=endpoint.url)
        assert "rejected the API key" in (found.problem or ""), "the address was guessed right, the key is wrong"


async def test_a_server_that_is_down_is_told_as_such(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with launch(tmp_path, None, config="{}") as running:
        found = await check(running.app, "custom", base_url=f"http://127.0.0.1:{port}/v1")
        why = "Is the server running, and is the address correct?"
        assert found.problem == f"Cannot connect to 127.0.0.1:{port}. {why}"


async def test_a_hosted_provider_that_cannot_be_reached_is_no_server_of_yours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
    async with launch(tmp_path, None, config="{}") as running:
        found = await check(running.app, "openai", api_key=KEY)
        assert found.problem == "Cannot connect to api.openai.com. Check your network connection."


async def test_a_server_that_never_answers_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(provider_check.check.__kwdefaults__, "within_s", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        async with launch(tmp_path, None, config="{}") as running:
            found = await check(running.app, "custom", base_url=f"http://127.0.0.1:{port}/v1")
    assert found.problem == f"127.0.0.1:{port} did not answer in time. Check the network and the address."


async def test_a_server_that_answers_by_drops_holds_up_neither_the_check_nor_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E5. Each drop used to begin the time limit anew, in a thread that the runs needed."""
    dripping, drips = asyncio.Semaphore(0), set[asyncio.Task[None] | None]()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        drips.add(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n")
        dripping.release()
        with contextlib.suppress(OSError), contextlib.closing(writer):
            while not writer.is_closing():
                writer.write(b"x: y\r\n")
                await writer.drain()
                await asyncio.sleep(0.05)

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    more_than_threads = (os.cpu_count() or 1) + 5
    async with asyncio.timeout(60), server, launch(tmp_path, ScriptedModel.echo()) as running:
        monkeypatch.setitem(provider_check.check.__kwdefaults__, "within_s", 100.0)
        asked = [asyncio.create_task(check(running.app, "custom", base_url=url)) for _ in range(more_than_threads)]
        for _ in asked:
            await dripping.acquire()
        await running.submit("hello", "r1")
        await running.completed("r1")
        for each in asked:
            assert not each.done()
            each.cancel()
        monkeypatch.setitem(provider_check.check.__kwdefaults__, "within_s", 0.5)
        found = await check(running.app, "custom", base_url=url)
        assert "did not answer in time" in (found.problem or "")
        await asyncio.wait([each for each in drips if each is not None])


@pytest.mark.parametrize("answer", [b"<html>", b"[", b'{"data": 3}', b"[" * 9999])
async def test_what_is_no_list_is_told_as_such(tmp_path: Path, answer: bytes) -> None:
    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(tell, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, launch(tmp_path, None, config="{}") as running:
        found = await check(running.app, "custom", base_url=f"http://127.0.0.1:{port}/v1")
        assert "not with a list of models" in (found.problem or "")
        found = await check(running.app, "custom", base_url=f"http://127.0.0.1:{port}")
        assert "not with a list of models" in (found.problem or "")


@pytest.mark.parametrize("path", ["/v1", ""])
async def test_a_chat_without_a_list_of_models_passes(tmp_path: Path, path: str) -> None:
    async with (
        ScriptedEndpoint(api_key=KEY, models=None) as endpoint,
        launch(tmp_path, None, config="{}") as running,
    ):
        found = await check(running.app, "custom", api_key=KEY, base_url=endpoint.url + path)
        assert found == ProviderCheck(ok=True, base_url=endpoint.url + path)
        found = await check(running.app, "custom", base_url=endpoint.base_url)
        assert (found.problem or "").startswith("custom needs an API key.")
        await connect(running.app, "custom", api_key=KEY, base_url=endpoint.base_url, model="odd")
        await running.submit("hello?", "r1")
        assert (await running.completed("r1")).text == "echo: hello?"


NO_ROUTE = b"404 Not Found\r\ncontent-type: application/json\r\n\r\n" + b'{"detail": "Not Found"}'
NO_MODEL = b"404 Not Found\r\ncontent-type: application/json\r\n\r\n" + b'{"error": {"message": "No model named"}}'


@pytest.mark.parametrize(
    ("chat", "passes"),
    [
        (NO_ROUTE, False),
        (NO_MODEL, True),
        (b"400 Bad Request\r\n\r\n", True),
        (b"404 Not Found\r\ncontent-type: text/html\r\n\r\n<p>No model", False),
        (b"200 OK\r\ncontent-type: text/html; charset=utf-8\r\n\r\n<html>", False),
        (b"302 Found\r\nlocation: /\r\n\r\n", False),
        (b"405 Method Not Allowed\r\n\r\n", False),
        (b"501 Unsupported method\r\n\r\n", False),
    ],
)
async def test_only_a_chat_makes_up_for_a_missing_list(tmp_path: Path, chat: bytes, passes: bool) -> None:
    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 " + (chat if asked.startswith(b"POST /v1/chat/completions ") else NO_ROUTE))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(tell, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, launch(tmp_path, None, config="{}") as running:
        found = await check(running.app, "custom", base_url=f"{url}/v1")
        assert found.ok is passes
        if not passes:
            assert (found.problem or "").startswith(
                "There is no chat and no list of models at this address (status 404). Is it correct?"
            )
        found = await check(running.app, "custom", base_url=url)
        assert (found.ok, found.base_url) == (passes, f"{url}/v1" if passes else None)
        found = await check(running.app, "custom", base_url=f"{url}/api")
        assert "(status 404). Base URLs usually end in /v1." in (found.problem or "")


async def test_a_redirection_does_not_get_the_key(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    async def send_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.0 302 Found\r\nlocation: {endpoint.base_url}/models\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(send_on, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, launch(tmp_path, None, config="{}") as running:
        found = await check(running.app, "custom", api_key=KEY, base_url=f"http://127.0.0.1:{port}/v1")
        assert found.problem == "custom answered with status 302."
    assert len(endpoint.lists) == 0


async def test_a_provider_without_a_key_is_not_asked(tmp_path: Path) -> None:
    async with launch(tmp_path, None, config="{}") as running:
        found = await check(running.app, "anthropic")
        assert (found.problem or "").startswith("Anthropic needs an API key. Create one at https://")
        assert (await check(running.app, "azure", api_key=KEY)).problem == (await check(running.app, "custom")).problem


@pytest.mark.parametrize(
    "url", ["ftp://x/v1", "x", "http://", "http://a b/v1", "http://u:p@x/v1", "http://x/v1?k=1", "http://x:99999/v1"]
)
async def test_an_address_of_another_kind_is_refused(tmp_path: Path, url: str) -> None:
    async with launch(tmp_path, None, config="{}") as running:
        with pytest.raises(BadInput) as refused:
            await check(running.app, "custom", base_url=url)
        assert refused.value.code == "bad_base_url"


async def test_a_key_with_a_line_break_is_refused_and_not_quoted(tmp_path: Path) -> None:
    async with launch(tmp_path, None, config="{}") as running:
        for wrong in (f"{KEY}\nx", f"{KEY} x", f"{KEY}é"):
            with pytest.raises(BadInput) as refused:
                await connect(running.app, "anthropic", api_key=wrong)
            assert refused.value.code == "bad_api_key"
            assert KEY not in refused.value.message
        await connect(running.app, "anthropic", api_key=f"  {KEY}\n")
        assert (await listed(running.app, "anthropic")).source == "stored"


@pytest.mark.parametrize("name", ["", "..", "A b", "x/y", "-x", "é", "x" * 65])
async def test_a_name_that_cannot_be_one_is_unknown(tmp_path: Path, name: str) -> None:
    async with launch(tmp_path, None, config="{}") as running:
        with pytest.raises(ProviderNotFound):
            await connect(running.app, name, base_url="http://127.0.0.1:1/v1")
        with pytest.raises(ProviderNotFound):
            await running.app.forget_provider(name or "nobody")


# Connecting


async def test_from_nothing_to_an_answer_without_a_restart(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    endpoint.add([Say("Here I am.")])
    async with launch(tmp_path, None, config="{}") as running, watch(running.workspace, client_id="other") as other:
        await running.submit("hello?", "r1")
        complete = await running.completed("r1")
        assert complete.outcome is Outcome.ERROR
        assert (
            complete.error
            == "Cannot run the prompt: No model is configured. Run `longboat connect` (in the apps: /connect)."
        )
        found = await connect(running.app, "custom", api_key=KEY, base_url=endpoint.base_url, model="coder")
        assert (found.connected, found.stored, found.base_url) == (True, True, endpoint.base_url)
        told = (await other.until(lambda event: event.type == "config_changed")).payload
        assert (told.large, told.ready) == ("custom/coder", True)
        await running.submit("hello?", "r2")
        assert (await running.completed("r2")).text == "Here I am."
        exported = await running.workspace.archive.export(running.session_id)
        assert KEY not in str(exported)
    (exchange,) = endpoint.requests
    assert exchange.body["model"] == "coder"
    assert exchange.headers["authorization"] == f"Bearer {KEY}"
    assert own_config() == QUIET | {
        "models": {"detect": False, "large": "custom/coder"},
        "providers": {
            "custom": {"type": "openai-compatible", "base_url": endpoint.base_url, "models": [{"id": "coder"}]}
        },
    }
    assert stat.S_IMODE(keys().stat().st_mode) == 0o600
    check_files(*(tmp_path / "data").rglob("*"))


async def test_a_known_provider_needs_no_entry_in_the_file(tmp_path: Path) -> None:
    async with launch(tmp_path, None, config="{}") as running:
        await connect(running.app, "anthropic", api_key=KEY, model="claude-haiku-5-5")
        assert own_config() == QUIET | {"models": {"detect": False, "large": "anthropic/claude-haiku-5-5"}}
        assert (await running.workspace.agent()).ready
        page = await running.workspace.models()
        haiku = next(model for model in page.items if model.name == "anthropic/claude-haiku-5-5")
        assert haiku.ready


async def test_a_chosen_model_becomes_the_first_of_a_list_and_the_others_stay(tmp_path: Path) -> None:
    listed = ["openai/gpt-6.1-sol", "anthropic/claude-haiku-5-5", "mistral/large"]
    configure(**QUIET | {"models": {"detect": False, "large": listed}})
    async with launch(tmp_path, None, config="{}") as running:
        await connect(running.app, "anthropic", api_key=KEY, model="claude-haiku-5-5")
        large = ["anthropic/claude-haiku-5-5", "openai/gpt-6.1-sol", "mistral/large"]
        assert own_config() == QUIET | {"models": {"detect": False, "large": large}}


async def test_another_key_is_used_from_the_next_prompt_on(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    async with launch(tmp_path, None, config="{}") as running:
        await connect(running.app, "custom", api_key="an-old-key", base_url=endpoint.base_url, model="coder")
        await running.submit("one", "r1")
        assert (await running.completed("r1")).outcome is Outcome.ERROR
        await connect(running.app, "custom", api_key=KEY)
        await running.submit("two", "r2")
        assert (await running.completed("r2")).outcome is Outcome.END_TURN


async def test_a_forgotten_key_is_not_used_any_more(tmp_path: Path) -> None:
    async with launch(tmp_path, None, config="{}") as running:
        await connect(running.app, "anthropic", api_key=KEY)
        assert (await running.workspace.agent()).ready
        left = await running.app.forget_provider("anthropic")
        assert (left.connected, left.stored) == (False, False)
        assert not (await running.workspace.agent()).ready
        assert KEY not in keys().read_text()
        assert await running.app.forget_provider("anthropic") == left, "safe to repeat"


async def test_two_who_connect_at_once_both_succeed(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    async with launch(tmp_path, None, config="{}") as running:
        names = [f"box{number}" for number in range(6)]
        await asyncio.gather(
            *(connect(running.app, name, api_key=KEY, base_url=endpoint.base_url, model="coder") for name in names)
        )
        assert set(json.loads(keys().read_text())) == set(names)
        providers = own_config()["providers"]
        assert isinstance(providers, dict)
        assert set(providers) == set(names)
        for name in names:
            assert (await check(running.app, name)).ok


async def test_a_broken_file_is_named_and_nothing_is_stored(tmp_path: Path) -> None:
    user_config_file(os.environ, Path.home()).write_text("{ oh")
    async with launch(tmp_path, None, config="{}") as running:
        with pytest.raises(ConfigInvalid, match=r"longboat\.json:1"):
            await connect(running.app, "anthropic", api_key=KEY, model="x")
        assert not keys().exists()


# Who gets a key


async def test_the_stored_key_goes_to_no_other_address(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    async with ScriptedEndpoint() as thief, launch(tmp_path, None, config="{}") as running:
        await connect(running.app, "custom", api_key=KEY, base_url=endpoint.base_url, model="coder")
        # A check at another address,
        assert (await check(running.app, "custom", base_url=thief.base_url)).ok
        # a project that moves the provider, even one that is trusted,
        file = running.workspace.directory / "longboat.json"
        moved = json.dumps({"providers": {"custom": {"type": "openai-compatible", "base_url": thief.base_url}}})
        file.write_text(moved)
        record_trust(file)
        await running.submit("steal", "r1")
        assert (await running.completed("r1")).text == "echo: steal"
        file.write_text("{}")
        # and an address that somebody sets without a key.
        await connect(running.app, "custom", base_url=thief.base_url)
        await running.submit("steal again", "r2")
        assert (await running.completed("r2")).text == "echo: steal again"
        assert len(thief.lists) == 1
        assert len(thief.requests) == 2
        assert all("authorization" not in headers for headers in thief.lists)
        assert all("authorization" not in exchange.headers for exchange in thief.requests)


async def test_a_key_from_the_environment_goes_to_no_given_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with ScriptedEndpoint() as thief, launch(tmp_path, None, config="{}") as running:
        assert (await check(running.app, "openai", base_url=thief.base_url)).ok
        await connect(running.app, "openai", base_url=thief.base_url, model="gpt-x")
        await running.submit("steal", "r1")
        assert (await running.completed("r1")).text == "echo: steal"
        assert all("authorization" not in headers for headers in thief.lists)
        assert all(KEY not in str(exchange.headers) for exchange in thief.requests)


async def test_a_project_that_calls_another_kind_by_the_name_gets_no_key(tmp_path: Path) -> None:
    """`type` is harmless in a project's file, and chooses the address."""
    async with launch(tmp_path, None, config="{}") as running:
        await connect(running.app, "anthropic", api_key=KEY, model="claude-haiku-5-5")
        file = running.workspace.directory / "longboat.json"
        file.write_text('{"providers": {"anthropic": {"type": "groq"}}}')
        agent = await running.workspace.agent()
        assert not agent.ready
        assert "GROQ_API_KEY" in (agent.problem or "")


async def test_a_key_in_the_configuration_comes_first_and_is_not_replaced(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    section = {"type": "openai-compatible", "base_url": endpoint.base_url, "api_key": KEY, "models": [{"id": "coder"}]}
    configure(**QUIET, providers={"mine": section})
    async with launch(tmp_path, None, config="{}") as running:
        assert (await check(running.app, "mine")).ok
        with pytest.raises(BadInput, match=r"Change providers\.mine\.api_key"):
            await connect(running.app, "mine", api_key="another")
        with pytest.raises(BadInput, match="Change its base_url there"):
            await connect(running.app, "mine", base_url="http://127.0.0.1:1/v1")
        mine = await listed(running.app, "mine")
        assert (mine.source, mine.stored) == ("configuration", False)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("view", {"path": "{file}"}),
        ("bash", {"command": "cat {file}"}),
        ("bash", {"command": "cd {folder} && cat cred*"}),
        ("edit", {"path": "{file}", "old_text": "custom", "new_text": "x"}),
        ("grep", {"pattern": "key", "path": "{folder}"}),
    ],
)
async def test_the_agent_does_not_get_stored_keys_even_where_all_is_allowed(
    tmp_path: Path, endpoint: ScriptedEndpoint, tool: str, arguments: dict[str, str]
) -> None:
    given = {name: text.format(file=keys(), folder=keys().parent) for name, text in arguments.items()}
    endpoint.add([CallTool(tool, json.dumps(given))], [Say("Done.")])
    async with launch(tmp_path, None, config="{}") as running:
        await connect(running.app, "custom", api_key=KEY, base_url=endpoint.base_url, model="coder")
        stored = keys().read_text()
        await running.submit("steal", "r1", approve=Approve.ALL)
        assert (await running.completed("r1")).text == "Done."
        await running.messages()
    assert KEY not in json.dumps(endpoint.requests[-1].body)
    assert keys().read_text() == stored


def record_trust(file: Path) -> None:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    record(trusted_file(user_config_file(os.environ, Path.home())), file.parent, digest)


async def test_another_server_is_always_offered_under_a_free_name(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    async with launch(tmp_path, None, config="{}") as running:
        for name in ("custom", "custom-2", "custom-3"):
            items = (await (await running.app.providers()).list()).items
            assert [each.id for each in items if each.name.startswith("Another")] == [name]
            assert (await connect(running.app, name, api_key=KEY, base_url=endpoint.base_url, model="coder")).connected
