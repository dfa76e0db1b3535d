"""What the page shows of what others did to the workspace: its configuration, and sessions brought in (F3)."""

import json

from browser import MARKS, call, open_tab
from playwright.async_api import Browser, expect
from processes import Site
from sessions import SessionClient

from longboat.testing import Say

pytestmark = MARKS
pytest_plugins = ("chromium",)


async def test_f3_the_page_shows_who_answers_since_the_configuration_changed(chromium: Browser, site: Site) -> None:
    """http.md: config_changed. First the file is a stranger's again; then it is trusted; nobody reloads anything."""
    directory = site.project("changing")
    file = directory / "longboat.json"
    config = json.loads(file.read_text())
    async with open_tab(chromium, site, await site.session(directory)) as anna:
        choice = anna.page.get_by_label("Model", exact=True).locator("option").first
        await expect(choice).to_have_text("Default: mine/m")
        config["providers"]["mine"]["models"].append({"id": "second"})
        file.write_text(json.dumps(config | {"models": {"large": "mine/second", "small": "mine/m"}}))
        await expect(choice).to_have_text("No model available")
        await expect(anna.page.get_by_text("longboat trust").first).to_be_visible()
        trusted = await site.longboat("trust", "--yes", cwd=directory)
        assert await trusted.wait() == 0
        await expect(choice).to_have_text("Default: mine/second")


async def test_f3_an_imported_session_shows_its_sub_agents_inside_their_calls(chromium: Browser, site: Site) -> None:
    """Issue 3: an export is complete."""
    site.model.add([call("agent", prompt="[[sent]]")], [Say("Done.")], name="sends")
    site.model.add([Say("Seen with own eyes.")], name="sent")
    session = await site.session(site.project("carried"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[sends]] go")
        await anna.sees("Done.")
        await anna.idle()
    http = session.http
    export = await http.get(f"{session.workspace}/sessions/{session.session_id}/export")
    made = await http.post(f"{session.workspace}/sessions/import", content=export.content)
    copy = SessionClient(http, session.workspace, made.json()["id"], start="")
    async with open_tab(chromium, site, copy) as anna:
        await anna.sees("Done.")
        card = anna.tools.filter(has_text="agent").first
        if await card.get_attribute("open") is None:
            await card.locator("summary").first.click()
        await card.get_by_text("Sub-agent transcript").click()
        await expect(card.locator(".nested")).to_contain_text("Seen with own eyes.")
