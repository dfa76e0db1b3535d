"""What a person writes and gets back: files, completion, commands, shell, undo, sub-agents, numbers (F3, A4)."""

import base64
import json
import re
from pathlib import Path

from browser import MARKS, Tab, call, open_tab
from playwright.async_api import Browser, expect
from processes import Site

from longboat.testing import Pause, Say, Use

pytestmark = MARKS
pytest_plugins = ("chromium",)

AT_END = """box => new Promise((done) => {
  const look = () => (box.scrollHeight - box.scrollTop - box.clientHeight < 8 ? done() : requestAnimationFrame(look));
  look();
})"""

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)

# Files reach a page as the browser hands them over: by a drop, or from the clipboard.
HAND_OVER = """([selector, kind, name, type, data]) => {
  const raw = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
  const held = new DataTransfer();
  held.items.add(new File([raw], name, { type }));
  const event = kind === 'drop'
    ? new DragEvent('drop', { dataTransfer: held, bubbles: true, cancelable: true })
    : new ClipboardEvent('paste', { clipboardData: held, bubbles: true, cancelable: true });
  document.querySelector(selector).dispatchEvent(event);
}"""


async def hand_over(tab: Tab, kind: str, name: str, media_type: str, data: bytes) -> None:
    packed = base64.b64encode(data).decode()
    await tab.page.evaluate(HAND_OVER, ["#prompt", kind, name, media_type, packed])


async def test_f3_files_go_along_picked_dropped_and_pasted(chromium: Browser, site: Site, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    directory = site.project("files", context_window=64_000)
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        async with anna.page.expect_file_chooser() as chosen:
            await anna.button("Attach files").click()
        await (await chosen.value).set_files(tmp_path / "notes.txt")
        await hand_over(anna, "drop", "drop.md", "text/markdown", b"# dropped\n")
        await hand_over(anna, "paste", "image.png", "image/png", DOT)
        await hand_over(anna, "drop", "noise.bin", "application/octet-stream", b"\x00\xff\x00")
        chips = anna.page.get_by_role("list", name="Attachments").get_by_role("listitem")
        await expect(chips).to_have_count(3)
        await expect(anna.toasts).to_contain_text("noise.bin is not a text file or an image")
        await expect(chips.locator("img")).to_have_count(1)
        await anna.button("Remove drop.md").click()
        await expect(chips).to_have_count(2)
        await anna.say("look at these")
        for tab in (anna, ben):
            await tab.sees("look at these", "notes.txt")
            picture = tab.transcript.locator("img.picture")
            await expect(picture).to_have_attribute("alt", "image.png")
            assert await picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 1
            await tab.transcript.locator("details.attachment summary").click()
            await tab.sees("remember the milk")
        await anna.idle()
        long = "word " * 3_000
        await anna.page.evaluate(
            """(text) => { const held = new DataTransfer(); held.setData('text/plain', text);
            document.querySelector('#prompt').dispatchEvent(
              new ClipboardEvent('paste', { clipboardData: held, bubbles: true, cancelable: true })); }""",
            long,
        )
        await expect(chips).to_contain_text(["pasted-1.txt"])
    body = json.dumps(site.model.requests[-1].body["messages"][-1])
    assert "remember the milk" in body


async def test_the_prompt_is_as_high_as_its_text_without_inline_styles(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("high"))
    async with open_tab(chromium, site, session) as anna:

        async def height() -> float:
            box = await anna.prompt.bounding_box()
            assert box is not None
            return box["height"]

        low = await height()
        await anna.prompt.fill("one\ntwo\nthree\nfour")
        lines = await height()
        assert lines > 3 * 18
        assert await anna.prompt.evaluate("(field) => field.scrollHeight <= field.clientHeight")
        await anna.prompt.fill("word " * 120)  # the page breaks the lines
        assert await height() > low
        assert await anna.prompt.evaluate("(field) => field.scrollHeight <= field.clientHeight")
        await anna.prompt.fill("line\n" * 200)
        assert await height() <= 0.4 * 800
        assert await anna.prompt.evaluate("(field) => field.scrollHeight > field.clientHeight")
        await anna.prompt.fill("")
        assert await height() == low
        assert await anna.page.locator("body [style]").count() == 0


async def test_f3_commands_of_the_page_are_carried_out_and_unknown_ones_cost_no_turn(
    chromium: Browser, site: Site
) -> None:
    session = await site.session(site.project("commands"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("hello")
        await anna.sees("echo: hello")
        await anna.idle()
        await anna.say("/rename Two lines about the sea")
        await expect(anna.title).to_have_text("Two lines about the sea")
        await anna.say("/nonsense of mine")
        await expect(anna.toasts).to_contain_text("Unknown command /nonsense")
        await expect(anna.prompt).to_have_value("/nonsense of mine")
        async with anna.page.expect_download() as saved:
            await anna.say("/export json")
        assert (await saved.value).suggested_filename == "Two-lines-about-the-sea.json"
        await anna.say("/model nobody")
        await expect(anna.toasts).to_contain_text("Unknown model “nobody”")
        await expect(anna.page.get_by_role("combobox", name="Model")).to_be_focused()
        await anna.say(" /nonsense all the same")
        await anna.sees("echo: /nonsense all the same")
        assert [run["prompt"] for run in await session.ledger()] == ["hello", "/nonsense all the same"]


async def test_f3_long_output_shows_its_end_and_the_list_of_sessions_begins_with_the_last_used(
    chromium: Browser, site: Site
) -> None:
    directory = site.project("long output")
    first = await site.session(directory)
    await site.session(directory)
    async with open_tab(chromium, site, first) as anna:
        await anna.say("!seq 60")
        await anna.idle()
        box = anna.tools.locator("pre.output")
        await expect(box).to_contain_text("60")
        await box.evaluate(AT_END)
        listed = anna.page.locator(".session-list li")
        await expect(listed).to_have_count(2)
        await expect(listed.first).to_have_attribute("data-id", first.session_id)


async def test_f3_files_commands_and_the_shell_from_the_prompt(chromium: Browser, site: Site) -> None:
    directory = site.project("words")
    (directory / "src").mkdir()
    (directory / "src" / "harbour.py").write_text("x = 1\n")
    commands = directory / ".agents" / "commands"
    commands.mkdir(parents=True)
    (commands / "review.md").write_text("---\ndescription: Look it over\n---\nReview this: $ARGUMENTS\n")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna:
        await anna.prompt.press_sequentially("read @harb")
        option = anna.page.get_by_role("listbox", name="Suggestions").get_by_role("option")
        await expect(option).to_have_text(["src/harbour.py"])
        await anna.prompt.press("Tab")
        await expect(anna.prompt).to_have_value("read @src/harbour.py ")
        await anna.prompt.fill("")
        await anna.prompt.press_sequentially("/rev")
        await expect(option.first).to_contain_text("Look it over")
        await anna.prompt.fill("/")
        await expect(option).to_have_count(12)
        left = await option.locator("span:nth-child(2)").evaluate_all(
            "(hints) => hints.map((hint) => hint.getBoundingClientRect().x)"
        )
        assert len(left) == 12
        assert len(set(left)) == 1, "what they do is in one column"
        await anna.prompt.fill("/rev")
        await expect(option).to_have_count(1)
        await anna.picture("page-completion")
        await anna.prompt.press("Enter")
        await anna.prompt.press_sequentially("the hull")
        await anna.prompt.press("Enter")
        await anna.sees("Review this: the hull")
        await anna.idle()
        await anna.say("!echo from-the-shell $((6*7))")
        await anna.sees("from-the-shell 42")
        await anna.idle()
        await anna.prompt.press("ArrowUp")
        await expect(anna.prompt).to_have_value("!echo from-the-shell $((6*7))")
        await anna.prompt.press("ArrowUp")
        await expect(anna.prompt).to_have_value("/review the hull")


async def test_a4_undo_takes_the_turn_and_its_file_back_and_redo_returns_them(chromium: Browser, site: Site) -> None:
    directory = site.project("undo")
    (directory / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    site.model.add(
        [call("view", path="sums.py")],
        [call("edit", path="sums.py", old_text="a - b", new_text="a + b")],
        [Say("Mended.")],
        name="mend",
    )
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.page.get_by_role("checkbox", name="Approve all").click()
        await anna.button("Approve all", within=anna.page.get_by_role("dialog")).click()
        await expect(anna.page.get_by_text("“Approve all” is on")).to_be_visible()
        await anna.say("[[mend]]")
        for tab in (anna, ben):
            await tab.sees("Mended.")
            diff = tab.tools.filter(has_text="edit").locator("table.diff")
            await expect(diff.locator("tr.add")).to_contain_text("return a + b")
            await expect(diff.locator("tr.del")).to_contain_text("return a - b")
            await expect(tab.page.locator(".changes")).to_contain_text("1 file, +1 −1")
        await anna.picture("page-diff")
        await anna.button("Review").click()
        await anna.button("Split").click()
        await expect(anna.page.locator(".review table.diff.split")).to_be_visible()
        await anna.page.keyboard.press("Escape")
        await expect(anna.tools.locator("table.diff.split")).to_be_visible()
        await menu(anna, "Undo the last turn")
        await expect(anna.transcript).to_contain_text("1 turn undone. Restored: sums.py")
        for tab in (anna, ben):
            await expect(tab.transcript).not_to_contain_text("Mended.")
            await expect(tab.page.locator(".changes")).to_contain_text("No changes.")
        assert "a - b" in (directory / "sums.py").read_text()
        await expect(anna.prompt).to_have_value("[[mend]]")
        await anna.prompt.fill("")
        await menu(anna, "Redo")
        for tab in (anna, ben):
            await tab.sees("Mended.")
        assert "a + b" in (directory / "sums.py").read_text()


async def menu(tab: Tab, action: str) -> None:
    await tab.button("Session").click()
    await tab.page.get_by_role("menuitem", name=action).click()


async def test_f3_sub_agents_are_shown_inside_their_calls_and_plan_timeline_and_usage_beside(
    chromium: Browser, site: Site
) -> None:
    gate = site.model.gate("plot")
    plan = [{"text": "Look", "state": "completed"}, {"text": "Tell", "state": "in_progress"}, {"text": "Rest"}]
    site.model.add(
        [call("todos", items=plan)],
        [call("agent", prompt="[[scout]] port"), call("agent", prompt="[[scout2]] starboard")],
        [Say("All seen."), Pause(gate), Use(input_tokens=1200, output_tokens=34)],
        name="send",
    )
    site.model.add([call("ls")], [Say("Port is clear.")], name="scout")
    site.model.add([Say("Rocks to starboard.")], name="scout2")
    session = await site.session(site.project("agents"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[send]]")
        await anna.sees("All seen.")
        await expect(anna.page.locator("#aside-content .todos li")).to_have_text(["✓Look", "◐Tell", "○Rest"])
        gate.open()
        await anna.idle()
        agents = anna.tools.filter(has_text="agent")
        for index, (title, said) in enumerate([("port", "Port is clear."), ("starboard", "Rocks to starboard.")]):
            card = agents.filter(has_text=title).first
            if await card.get_attribute("open") is None:
                await card.locator("summary").first.click()
            await card.get_by_text("Sub-agent transcript").click()
            await expect(card.locator(".nested .message.assistant")).to_have_count(2 - index)
            await expect(card.locator(".nested")).to_contain_text(said)
        timeline = anna.page.get_by_role("img", name="Runs over time")
        await expect(timeline.locator("rect.tool").first).to_be_attached()
        await expect(timeline.locator("circle.end.end_turn")).to_be_attached()
        assert "[[send]]" in (await timeline.locator("desc").text_content() or "")
        await expect(anna.page.locator(".usage")).to_contain_text("1.2")
        await expect(anna.page.get_by_role("img", name="Tokens by run")).to_have_count(
            0
        )  # a chart of one run says nothing
        await anna.picture("page-agents")


async def test_f3_the_page_of_numbers_has_plots_and_the_same_in_words(chromium: Browser, site: Site) -> None:
    site.model.add([call("ls"), Use(input_tokens=500, output_tokens=20)], [Say("Seen.")], name="count")
    session = await site.session(site.project("numbers"))
    await session.outcome(await session.submit("[[count]]", "r-count"))
    async with open_tab(chromium, site, session) as anna:
        await anna.page.get_by_role("link", name="Stats").click()
        for name in ("Tokens by day", "Cost by day", "Runs by outcome and day", "Latency of runs", "Tool calls"):
            plot = anna.page.get_by_role("img", name=name)
            await expect(plot).to_be_visible()
            assert re.search(r"\w+\W+.*\d", await plot.locator("desc").text_content() or ""), "a name and a number"
            assert await plot.locator("rect").count() > 0
            table = anna.page.get_by_role("region", name=f"{name}, table", include_hidden=True).locator("table")
            assert await table.locator("tbody tr").count() > 0
        await anna.page.locator("figure").filter(has_text="Tool calls").get_by_text("Show as table").click()
        await expect(anna.page.get_by_role("rowheader", name="ls", exact=True)).to_be_visible()
        await anna.picture("page-stats")
        await anna.page.get_by_label("Workspace").select_option(label="numbers")
        await expect(anna.page.locator("#figures")).to_contain_text("Runs1")


async def test_f3_sessions_are_found_renamed_forked_exported_and_deleted(chromium: Browser, site: Site) -> None:
    directory = site.project("list")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.say("count the oars")
        await anna.idle()
        await menu(anna, "Rename…")
        field = anna.page.get_by_role("dialog").get_by_label("Title")
        await field.fill("Oars")
        await field.press("Enter")
        for tab in (anna, ben):
            await expect(tab.title).to_have_text("Oars")
        async with anna.page.expect_download() as download:
            await menu(anna, "Export as Markdown")
        saved = await download.value
        assert saved.suggested_filename == "Oars.md"
        assert "count the oars" in (await saved.path()).read_text()
        await menu(anna, "Fork")
        sessions = anna.page.locator(".session-list").get_by_role("listitem")
        await expect(sessions).to_have_count(2)
        await anna.sees("count the oars")
        await anna.page.get_by_role("searchbox").fill("no such title")
        await expect(sessions).to_have_count(0)
        await anna.page.get_by_role("searchbox").fill("oar")
        await expect(sessions).to_have_count(2)
        await menu(ben, "Delete…")
        await ben.button("Delete").click()
        await expect(sessions).to_have_count(1)
        await expect(ben.page.get_by_role("heading", name="What should Longboat do?")).to_be_visible()


async def test_a_session_without_content_has_no_empty_sections_beside_it(chromium: Browser, site: Site) -> None:
    plan = [{"text": "Write it", "state": "in_progress"}]
    wrote = [call("todos", items=plan), call("write", path="new.txt", content="new\n")]
    site.model.add(wrote, [Say("Written."), Use(input_tokens=900, output_tokens=10)], name="sections")
    session = await site.session(site.project("sections", permissions={"allow": ["write"]}))
    async with open_tab(chromium, site, session) as anna:
        sections = anna.page.locator("#aside .panel:visible > h2")
        await expect(sections).to_have_text(["Files", "Connected"])
        await anna.say("[[sections]]")
        await anna.sees("Written.")
        await expect(sections).to_have_text(["Plan", "Changes", "Files", "Timeline", "Usage", "Connected"])
        await anna.button("New session").click()
        await expect(sections).to_have_text(["Files", "Connected"])
