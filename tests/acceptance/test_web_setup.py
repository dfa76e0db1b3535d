"""The set-up on the page: from nothing to the first answer, without a restart and by keyboard alone (issue 12, 1)."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from audit import walk_to
from axe_playwright_python.async_playwright import Axe
from browser import MARKS, NARROW, Tab, open_tab
from playwright.async_api import Browser, Route, expect
from processes import Site, open_site

from longboat.testing import Refuse, Say
from longboat.testing.endpoint import ScriptedEndpoint
from secrecy import SECRETS

pytestmark = MARKS
pytest_plugins = ("chromium",)

KEY = SECRETS["stored key"]


@asynccontextmanager
async def bare_site() -> AsyncIterator[tuple[Site, Path]]:
    """A server of somebody who has configured nothing, and an empty directory."""
    async with open_site("tcp") as site:
        library = site.path / "library"
        library.mkdir()
        (library / "sitecustomize.py").write_text("import sys; sys.modules['xllamacpp'] = None")
        site.environ["PYTHONPATH"] = str(library)
        config = {"server": {"drain_s": 1}, "models": {"detect": False}, "titles": False}
        (site.path / "config" / "longboat" / "longboat.json").write_text(json.dumps(config))
        await site.serve()
        directory = site.path / "empty"
        directory.mkdir()
        yield site, directory


async def go_to(tab: Tab, site: Site, directory: Path) -> None:
    http = await site.client()
    joined = (await http.post("/v1/workspaces", json={"path": str(directory)})).json()
    await tab.page.goto(f"{tab.origin}/#/{joined['id']}")
    await tab.live()


@pytest.mark.parametrize("size", [(1280, 800), NARROW])
async def test_from_nothing_to_the_first_answer(chromium: Browser, size: tuple[int, int]) -> None:
    async with (
        bare_site() as (site, directory),
        ScriptedEndpoint(api_key=KEY, models=("coder", "talker")) as endpoint,
        open_tab(chromium, site, size=size) as tab,
        open_tab(chromium, site, name="ben") as ben,
    ):
        endpoint.add([Say("Here I am.")])
        await go_to(tab, site, directory)
        await go_to(ben, site, directory)
        main = tab.page.locator("#main")
        await expect(main.locator(".problem")).to_contain_text("No model is configured")
        await expect(main.get_by_role("list", name="Example prompts")).to_be_hidden()
        await tab.picture(f"setup-nothing-{size[0]}")
        keys = tab.page.keyboard
        await walk_to(tab, tab.button("Connect a provider"), "Shift+Tab")
        await keys.press("Enter")
        dialog = tab.page.get_by_role("dialog")
        await expect(dialog.get_by_role("button", name="Anthropic")).to_be_focused()
        await tab.picture(f"setup-providers-{size[0]}")
        assert (await Axe().run(tab.page)).violations_count == 0
        await walk_to(tab, dialog.get_by_role("button", name="OpenAI-compatible"))
        await keys.press("Enter")
        await expect(dialog.get_by_label("Base URL")).to_be_focused()
        await keys.type(endpoint.url)
        await keys.press("Tab")
        await expect(dialog.get_by_label("Key")).to_be_focused()
        await keys.type("a-wrong-key")
        await keys.press("Enter")
        await expect(dialog.get_by_role("alert")).to_contain_text("rejected the API key (status 401)")
        await expect(dialog.get_by_label("Key")).to_be_focused()
        assert (await Axe().run(tab.page)).violations_count == 0
        await keys.press("ControlOrMeta+a")
        await keys.type(KEY)
        await keys.press("Enter")
        await expect(dialog.get_by_role("radio", name="custom/coder")).to_be_focused()
        await keys.press("ArrowDown")
        assert (await Axe().run(tab.page)).violations_count == 0
        await tab.picture(f"setup-models-{size[0]}")
        if size == NARROW:
            small = [box for each in await dialog.get_by_role("button").all() if (box := await each.bounding_box())]
            assert all(box["height"] >= 44 for box in small)
        await keys.press("Enter")
        await expect(dialog).to_have_count(0)
        await expect(main).to_contain_text("Model: custom/talker")
        await expect(main.get_by_role("list", name="Example prompts")).to_be_visible()
        await expect(ben.page.locator("#main")).to_contain_text("Model: custom/talker")
        await tab.picture(f"setup-done-{size[0]}")
        await tab.say("hello?")
        await tab.sees("Here I am.")
        assert [exchange.body["model"] for exchange in endpoint.requests] == ["talker"]


async def test_a_stored_key_is_forgotten_after_a_question(chromium: Browser) -> None:
    async with (
        bare_site() as (site, directory),
        ScriptedEndpoint(api_key=KEY, models=("coder",)) as endpoint,
        open_tab(chromium, site) as tab,
    ):
        http = await site.client()
        body = {"api_key": KEY, "base_url": endpoint.url, "model": "coder"}
        assert (await http.put("/v1/providers/custom", json=body)).is_success
        await go_to(tab, site, directory)
        await expect(tab.page.locator("#main")).to_contain_text("Model: custom/coder")
        await tab.say("/connect")
        dialog, question = tab.page.locator(".setup"), tab.page.get_by_role("dialog", name="Forget the key")
        forget = tab.button("Forget key", within=dialog)
        await dialog.get_by_role("button", name="Anthropic").click()
        await expect(dialog.get_by_label("API key")).to_be_visible()
        await expect(forget, "no key is stored for it").to_have_count(0)
        await tab.button("Back", within=dialog).click()
        await dialog.get_by_role("button", name="longboat.json").click()
        await forget.click()
        assert (await Axe().run(tab.page)).violations_count == 0
        await question.press("Escape")
        await expect(question).to_have_count(0)
        await expect(forget).to_be_focused()
        assert await stored(site) == ["custom"]
        await forget.press("Enter")
        await tab.button("Forget key", within=question).click()
        await expect(tab.toasts).to_contain_text("deleted")
        await expect(dialog.get_by_role("list", name="Providers")).to_be_visible()
        assert await stored(site) == []


async def stored(site: Site) -> list[str]:
    """The providers whose key is stored."""
    page = (await (await site.client()).get("/v1/providers")).json()
    return [each["id"] for each in page["items"] if each["stored"]]


async def test_a_new_session_shows_where_it_is_and_what_to_try(chromium: Browser, site: Site) -> None:
    directory = site.project("tried")
    session = await site.session(directory)
    await session.http.patch(f"{session.workspace}/sessions/{session.session_id}", json={"title": "Mend <b>it</b>"})
    (directory / ".git").mkdir()
    (directory / ".git" / "HEAD").write_text("ref: refs/heads/<i>trunk</i>\n")
    async with open_tab(chromium, site) as tab:
        await tab.page.goto(f"{tab.origin}/#/{session.workspace.rpartition('/')[2]}")
        main = tab.page.locator("#main")
        await expect(main).to_contain_text(f"Directory: {directory}")
        await expect(main).to_contain_text("Branch: <i>trunk</i>")
        await expect(main).to_contain_text("Model: mine/m (128K context).")
        tries = main.get_by_role("list", name="Example prompts")
        await expect(tries.get_by_role("button")).to_have_text(
            ["Start a Python project", "Build a web page", "Plan a new project"]
        )
        await tries.get_by_role("button", name="Build a web page").click()
        await expect(tab.prompt).to_have_value("Build a simple web page here with plain HTML, CSS and JavaScript.")
        assert (await Axe().run(tab.page)).violations_count == 0
        await main.get_by_role("link", name="Mend <b>it</b>").click()
        await expect(tab.title).to_have_text("Mend <b>it</b>")


async def test_the_recent_sessions_of_a_new_one_show_which_failed(chromium: Browser, site: Site) -> None:
    site.model.add([Refuse(400, message="No.")], name="recent-failed")
    site.model.add([Say("Fine.")], name="recent-fine")
    directory = site.project("recent")
    for name, outcome in (("recent-failed", "error"), ("recent-fine", "end_turn")):
        session = await site.session(directory)
        assert await session.outcome(await session.submit(f"[[{name}]]")) == outcome
    async with open_tab(chromium, site) as tab:
        await tab.page.goto(f"{tab.origin}/#/{session.workspace.rpartition('/')[2]}")
        recent = tab.page.locator(".recent li")
        await expect(recent).to_have_count(2)
        await expect(recent.filter(has_text="recent-failed").get_by_role("img", name="failed")).to_be_visible()
        await expect(recent.filter(has_text="recent-fine").get_by_role("img")).to_have_count(0)
        assert (await Axe().run(tab.page)).violations_count == 0


async def test_the_set_up_is_in_the_menu_and_a_command_and_closes(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("menu"))
    async with open_tab(chromium, site, session) as tab:
        dialog = tab.page.get_by_role("dialog")
        await tab.page.get_by_role("button", name="Session", exact=True).click()
        await tab.page.get_by_role("menuitem", name="Connect a provider").click()
        await expect(dialog.get_by_role("list", name="Providers")).to_be_visible()
        await tab.page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await tab.say("/connect")
        await dialog.get_by_role("button", name="Anthropic").click()
        link = dialog.get_by_role("link", name="Create an API key")
        await expect(link).to_have_attribute("rel", "noopener noreferrer")
        await tab.button("Back", within=dialog).click()
        await expect(dialog.get_by_role("list", name="Providers")).to_be_visible()
        await tab.button("Cancel", within=dialog).click()
        await expect(dialog).to_have_count(0)


async def test_a_hosted_provider_needs_only_its_key(chromium: Browser, site: Site) -> None:
    """Its check is answered here: no test reaches the provider itself."""
    session = await site.session(site.project("hosted"))
    async with open_tab(chromium, site, session) as tab:
        sent: list[object] = []

        async def check(route: Route) -> None:
            sent.append(route.request.post_data_json)
            await route.fulfill(json={"ok": False, "problem": "It said no.", "base_url": None, "models": []})

        await tab.page.route("**/v1/providers/anthropic/check", check)
        dialog = tab.page.get_by_role("dialog")
        await tab.say("/connect")
        await dialog.get_by_role("button", name="Anthropic").click()
        await expect(dialog.get_by_label("Base URL")).to_have_count(0)
        await dialog.get_by_label("Key").fill("sk-typed")
        await dialog.get_by_label("Key").press("Enter")
        await expect(dialog.get_by_role("alert")).to_contain_text("It said no.")
        assert sent == [{"api_key": "sk-typed"}]


async def test_a_prompt_that_nobody_can_answer_fails_once(chromium: Browser) -> None:
    """The error was shown twice."""
    async with bare_site() as (site, directory), open_tab(chromium, site) as tab:
        await go_to(tab, site, directory)
        await tab.say("hello?")
        await expect(tab.page.locator("#polite")).to_contain_text("No model is configured.")  # the run has ended
        await expect(tab.transcript.get_by_text("hello?")).to_be_visible()
        await expect(tab.transcript.get_by_text("No model is configured.")).to_have_count(1)
        await expect(tab.toasts).to_be_empty()
        end = tab.transcript.locator(".finish")
        await expect(end.locator("code")).to_have_text("longboat connect")
        await expect(end).not_to_contain_text("`")
        await tab.button("Connect a model", within=end).click()
        await expect(tab.page.get_by_role("dialog", name="Connect a provider")).to_be_visible()
