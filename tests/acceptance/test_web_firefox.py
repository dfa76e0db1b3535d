"""The main path of the page in a second engine, Firefox's (F3, F6). The other tests of the page use Chromium."""

import json

import pytest
from firefox import CONTROL, ENTER, MARKS, Window, open_firefox
from processes import Site, ended, open_site
from sessions import SessionClient

from longboat.testing import CallTool, Pause, Say

pytestmark = MARKS

LIVE = "document.querySelector('#connection')?.dataset.state === 'live'"
ASKED = "document.querySelector('article.ask:not(.leaving)')?.innerText"
NOT_ASKED = "!document.querySelector('article.ask:not(.leaving)')"


async def log_in(window: Window, site: Site, session: SessionClient, link: str, *, name: str) -> None:
    """With the link of `longboat web`, another name typed in the dialog, and then at the session."""
    await window.go(link)
    await window.until("document.querySelector('.toast button')")
    await window.click("button", "Change name")
    await window.until("document.activeElement === document.querySelector('dialog[open] input')")
    await window.type("a", with_key=CONTROL)
    await window.type(name + ENTER)
    await window.until(f"document.querySelector('#me').textContent === {json.dumps(name)}")
    await window.go(f"http://127.0.0.1:{site.port}/#/{session.workspace.rpartition('/')[2]}/{session.session_id}")
    await window.until(LIVE)


@pytest.mark.shows_secrets("server token", reason="`longboat web --no-open` prints the link that logs in")
async def test_f3_in_firefox_two_people_see_words_come_and_either_answers_what_is_asked() -> None:
    async with open_site("tcp") as site, open_firefox() as firefox:
        gate = site.model.gate("words")
        site.model.add(
            [Say("First words, "), Pause(gate), Say("**last** words.")],
            [CallTool("bash", json.dumps({"command": "mkdir made"}))],
            [Say("Made it.")],
        )
        await site.serve()
        directory = site.project()
        session = await site.session(directory)
        anna, ben = await firefox.person(), await firefox.person()
        await anna.go(f"http://127.0.0.1:{site.port}/")
        await anna.until("document.querySelector('label')?.textContent === 'Token'")
        link = (await ended(await site.longboat("web", "--no-open", cwd=directory))).out.split()[-1]
        await log_in(anna, site, session, link, name="anna")
        await log_in(ben, site, session, link, name="ben")

        await anna.click("textbox", "Prompt")
        await anna.type("say something" + ENTER)
        for window in (anna, ben):
            await window.sees("say something", "First words,")
        gate.open()
        for window in (anna, ben):
            await window.until("document.querySelector('.prose strong')?.textContent === 'last'")

        await anna.click("textbox", "Prompt")
        await anna.type("now do something" + ENTER)
        for window in (anna, ben):
            assert "mkdir made" in await window.until(ASKED)
        assert not (directory / "made").exists()
        await ben.click("button", "Allow once")
        for window in (anna, ben):
            await window.until(NOT_ASKED)
            await window.sees("Made it.")
        assert (directory / "made").is_dir()

        await anna.type("k", with_key=CONTROL)
        await anna.until("document.activeElement === document.querySelector('dialog.palette[open] input')")
        await anna.type("all keys" + ENTER)
        await anna.until("document.querySelector('dialog.key-list[open]')?.textContent.includes('Ctrl+K')")
