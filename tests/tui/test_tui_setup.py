"""The set-up in the terminal app: it opens where nothing answers, and ends with an answer (issue 12, 1)."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from running_app import configure
from textual.widgets import Input
from tui_driver import TuiDriver, local_server, open_tui
from tui_stage import Stage, picture

from longboat.errors import BadInput
from longboat.testing import Say
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.tui.dialogs.confirm import TextDialog
from longboat.tui.dialogs.frame import Dialog
from longboat.tui.dialogs.models import ModelPicker
from longboat.tui.dialogs.setup import KeyDialog, ProviderPicker, SetupModelPicker, WorkingKey
from longboat.wire.listings import ModelInfo, ModelPrice
from longboat.wire.providers import Provider, ProviderCheck
from secrecy import SECRETS, check_for_secrets

KEY = SECRETS["stored key"]
ANTHROPIC = Provider(
    id="anthropic", name="Anthropic", connected=False, key="required", url="none", key_page="https://a.example/keys"
)
CUSTOM = Provider(id="custom", name="Another server", connected=False, key="optional", url="required")
FOUND = ProviderCheck(
    ok=True,
    models=(
        ModelInfo(name="anthropic/big", ready=True, price=ModelPrice(input=3, output=15), context_window=200_000),
        ModelInfo(name="anthropic/small", ready=True),
    ),
)


@pytest.fixture
async def endpoint() -> AsyncIterator[ScriptedEndpoint]:
    async with ScriptedEndpoint(api_key=KEY, models=("coder", "talker")) as found:
        yield found


@pytest.fixture
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setattr("longboat.tui.setup.GRACE_S", 0.0)
    configure(models={"detect": False}, titles=False)


async def enter(tui: TuiDriver, field: str, text: str) -> None:
    tui.app.screen.query_one(f"#{field}", Input).value = text
    await tui.pilot.pause()


async def opened(tui: TuiDriver, kind: type[Dialog[Any]]) -> None:
    await tui.until(lambda: isinstance(tui.app.screen, kind) and tui.app.screen.is_open)


@pytest.mark.usefixtures("nothing_configured")
async def test_from_nothing_to_the_first_answer(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    endpoint.add([Say("Here I am.")])
    server = local_server(tmp_path, None, config="{}")
    async with server.serving(), open_tui(server) as tui:
        await opened(tui, ProviderPicker)
        await enter(tui, "filter", "OpenAI-compatible")
        await tui.pilot.press("enter")
        await opened(tui, KeyDialog)
        await enter(tui, "url", endpoint.url)
        await enter(tui, "key", "a-wrong-key")
        await tui.pilot.press("enter")
        await tui.until(lambda: "rejected the API key (status 401)" in tui.screen)
        await enter(tui, "key", KEY)
        check_for_secrets(tui.screen, "the screen")
        await tui.pilot.press("enter")
        await opened(tui, SetupModelPicker)
        await tui.pilot.press("down", "enter")
        await tui.until(lambda: tui.app.models is not None and tui.app.models.large == "custom/talker")
        await tui.say("hello?")
        await tui.until(lambda: tui.answers == ["Here I am."])
    assert [exchange.body["model"] for exchange in endpoint.requests] == ["talker"]


@pytest.mark.usefixtures("nothing_configured")
async def test_a_server_without_a_list_of_models_asks_for_a_name(tmp_path: Path) -> None:
    server = local_server(tmp_path, None, config="{}")
    async with ScriptedEndpoint(models=None) as endpoint, server.serving(), open_tui(server) as tui:
        await opened(tui, ProviderPicker)
        await enter(tui, "filter", "OpenAI-compatible")
        await tui.pilot.press("enter")
        await opened(tui, KeyDialog)
        await enter(tui, "url", endpoint.base_url)
        await tui.pilot.press("enter")
        await opened(tui, TextDialog)
        assert "the server has no list of models" in " ".join(tui.screen.split())
        await tui.pilot.press(*"odd", "enter")
        await tui.until(lambda: tui.app.models is not None and tui.app.models.large == "custom/odd")


@pytest.mark.usefixtures("nothing_configured")
async def test_whoever_closes_it_finds_it_again(tmp_path: Path) -> None:
    server = local_server(tmp_path, None, config="{}")
    async with server.serving(), open_tui(server) as tui:
        await opened(tui, ProviderPicker)
        await tui.pilot.press("escape")
        await tui.until(lambda: not isinstance(tui.app.screen, ProviderPicker))
        await tui.say("/connect")
        await opened(tui, ProviderPicker)
        await tui.pilot.press("escape")
        await tui.until(lambda: not isinstance(tui.app.screen, ProviderPicker))
        await tui.pilot.press("ctrl+l")
        await opened(tui, ModelPicker)
        await tui.pilot.press("ctrl+n")
        await opened(tui, ProviderPicker)


async def test_a_model_that_is_ready_needs_no_set_up(tmp_path: Path) -> None:
    configure(providers={"box": {"type": "openai-compatible", "base_url": "http://127.0.0.1:1/v1"}})
    server = local_server(tmp_path, None, config='{"models": {"large": "box/m", "small": "box/m"}}')
    async with server.serving(), open_tui(server) as tui:
        await tui.until(lambda: tui.app.models is not None and tui.app.models.large == "box/m")
        assert not isinstance(tui.app.screen, ProviderPicker)


async def test_the_key_is_never_on_the_screen_and_a_refusal_is() -> None:
    async def refuse(api_key: str | None, base_url: str | None) -> ProviderCheck:
        raise BadInput("The base URL must look like https://example.com/v1.")

    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, KeyDialog(CUSTOM, refuse))
        await pilot.press(*"http", "tab", *"secret", "enter")
        await app.settled(pilot)
        assert "must look like" in picture(app)
        assert "secret" not in picture(app)
        assert app.results == []
        await pilot.press("escape")
        await pilot.pause()
        assert app.results == [None]


async def test_what_was_entered_is_what_is_tested() -> None:
    asked: list[tuple[str | None, str | None]] = []

    async def accept(api_key: str | None, base_url: str | None) -> ProviderCheck:
        asked.append((api_key, base_url))
        return FOUND

    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, KeyDialog(ANTHROPIC, accept))
        assert "https://a.example/keys" in picture(app)
        await pilot.press(*"sk-1", "enter")
        await app.settled(pilot)
    assert asked == [("sk-1", None)]
    assert app.results == [WorkingKey(api_key="sk-1", base_url=None, found=FOUND)]
    assert "sk-1" not in repr(app.results)


async def test_a_provider_that_needs_nothing_is_tested_at_once() -> None:
    async def accept(api_key: str | None, base_url: str | None) -> ProviderCheck:
        return FOUND

    app = Stage()
    local = Provider(id="local", name="Small local model", connected=True, source="local", key="none", url="none")
    async with app.run_test() as pilot:
        await app.open(pilot, KeyDialog(local, accept))
        await app.settled(pilot)
    assert app.results == [WorkingKey(api_key=None, base_url=None, found=FOUND)]


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (("enter",), FOUND.models[0]),
        (("down", "enter"), FOUND.models[1]),
        (("up", "enter"), FOUND.models[1]),
        (("pagedown", "pageup", "enter"), FOUND.models[0]),
        ((*"SMALL", "enter"), FOUND.models[1]),
        (("escape",), None),
    ],
)
async def test_each_key_of_the_list(keys: tuple[str, ...], result: ModelInfo | None) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, SetupModelPicker(FOUND.models))
        assert "$3 in, $15 out per M, 200k context" in picture(app)
        await pilot.press(*keys)
        await pilot.pause()
        assert app.results == [result]


async def test_nothing_is_taken_from_an_empty_list() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, SetupModelPicker(FOUND.models))
        await pilot.press(*"xyz", "enter")
        await pilot.pause()
        assert "Nothing found." in picture(app)
        assert app.results == []
