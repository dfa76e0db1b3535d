"""What the agent asks, answered in one browser, seen in the other, with the name of who did (A2, F3, F6)."""

import json
from typing import Any

from browser import MARKS, Tab, open_tab
from browser import call as tool
from playwright.async_api import Browser, expect
from processes import Site, ended

from longboat.testing import Pause, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)


def sent_back(site: Site) -> str:
    """The result of the last tool call, as the model got it."""
    result: str = site.model.requests[-1].body["messages"][-1]["content"]
    return result


async def test_a2_a_permission_answered_in_one_page_leaves_the_other_and_says_who(
    chromium: Browser, site: Site
) -> None:
    command = "mkdir made && ls"
    gate = site.model.gate("allow")  # what is said at the end would replace what is said of the answer
    site.model.add([tool("bash", command=command)], [Pause(gate), Say("Made.")], name="allow")
    directory = site.project("allow")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.say("[[allow]]")
        for tab in (anna, ben):
            await expect(tab.asks).to_have_count(1)
            await expect(tab.asks).to_contain_text(command)
            await expect(tab.page.get_by_role("alert").filter(has_text="Approval needed")).to_be_attached()
        await expect(anna.tools).to_have_attribute("data-status", "asked")
        await expect(anna.tools.locator("pre.output:visible")).to_have_count(0)
        await anna.picture("page-permission")
        assert not (directory / "made").exists()
        await ben.button("Allow once").click()
        await expect(ben.asks).to_have_count(0)
        await expect(anna.asks).to_have_count(0)
        await expect(anna.page.locator("article.ask.leaving")).to_contain_text("allowed once by ben")
        await expect(anna.page.locator("#polite")).to_contain_text("ben")
        gate.open()
        for tab in (anna, ben):
            await tab.sees("Made.")
            await tab.idle()
            await expect(tab.tools).to_have_attribute("data-status", "done")
    assert (directory / "made").exists()


async def test_a2_the_parts_of_a_command_are_shown_once_with_those_that_are_the_reason(
    chromium: Browser, site: Site
) -> None:
    site.model.add([tool("bash", command="ls; touch a > /dev/null")], [tool("bash", command="touch b")], name="parts")
    session = await site.session(site.project("parts"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[parts]]")
        await expect(anna.asks.locator("h2")).to_have_text("Allow this command?")
        await expect(anna.asks.locator(".command")).to_have_text("ls; touch a > /dev/null")
        await expect(anna.asks.locator(".command mark")).to_have_text(["touch a"])
        assert (await anna.asks.inner_text()).count("touch a >") == 1
        await anna.asks.get_by_text("Why each part needs approval").click()
        await expect(anna.asks.locator(".parts li")).to_have_text(
            ["✓ ls needs no approval", "? touch a needs approval", "✓ > /dev/null needs no approval"]
        )
        await expect(anna.asks.locator(".parts .asked")).to_have_count(1)
        await anna.button("Allow once").click()
        await expect(anna.asks.locator(".command")).to_have_text("touch b")
        await expect(anna.asks.locator(".command mark")).to_have_count(0)
        await expect(anna.asks.locator(".parts")).to_have_count(0)


async def test_the_sentence_of_an_approval_does_not_repeat_the_command(chromium: Browser, site: Site) -> None:
    site.model.add([tool("bash", command="touch made")], [tool("bash", command="touch ../made")], name="once-told")
    session = await site.session(site.project("once-told"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[once-told]]")
        await expect(anna.asks).to_contain_text("Allow this command?")
        await expect(anna.asks.locator("pre")).to_have_text("touch made")
        sentences = await anna.asks.locator("h2, p:not(.rules)").all_inner_texts()
        assert sentences == ["Allow this command?"]
        await anna.button("Allow once").click()
        await expect(anna.asks).to_contain_text("outside the workspace")  # a reason of its own is told


async def test_a2_for_the_session_it_is_not_asked_again_and_the_command_line_may_answer(
    chromium: Browser, site: Site
) -> None:
    site.model.add([tool("bash", command="touch a")], [tool("bash", command="touch a")], [Say("One.")], name="grant")
    site.model.add([tool("write", path="b", content="b\n")], [Say("Two.")], name="shell")
    directory = site.project("grant")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[grant]]")
        await anna.button("Allow for this session").click()
        await anna.sees("One.")
        await anna.say("[[shell]]")
        await expect(anna.asks.locator(".diff-view")).to_contain_text("b")
        ask = (await session.http.get(f"{session.workspace}/permissions")).json()["items"][0]["id"]
        assert (await ended(await site.longboat("permissions", "answer", ask, "once", cwd=directory))).code == 0
        await anna.sees("Two.")
        await expect(anna.asks).to_have_count(0)
    assert (directory / "b").read_text() == "b\n"


async def test_a2_a_denial_carries_its_reason_to_the_model(chromium: Browser, site: Site) -> None:
    site.model.add([tool("write", path="x.txt", content="x\n")], [Say("Understood.")], name="deny")
    directory = site.project("deny")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.say("[[deny]]")
        await anna.button("Deny").click()
        reason = anna.asks.get_by_label("What should the agent do instead?")
        await expect(reason).to_be_focused()
        await reason.press("Escape")
        await expect(anna.button("Deny")).to_be_focused()
        await anna.button("Deny").click()
        await reason.fill("Not in this directory.")
        await reason.press("Enter")
        await expect(ben.page.locator("article.ask.leaving")).to_contain_text("denied by anna")
        for tab in (anna, ben):
            await tab.sees("Understood.")
            await expect(tab.tools).to_have_attribute("data-status", "failed")
    assert "Not in this directory." in sent_back(site)
    assert not (directory / "x.txt").exists()


async def test_a_limit_is_a_question_to_both_pages_and_stop_is_the_reason_of_the_end(
    chromium: Browser, site: Site
) -> None:
    site.model.add(*[[tool("ls", path=".", depth=depth)] for depth in (1, 2, 3)], name="limit")
    session = await site.session(site.project("limit", limits={"steps": 1}))
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.say("[[limit]]")
        first = ben.asks.filter(has_text="The agent reached a limit: 1 step. Continue?")
        await first.get_by_role("radio", name="Continue").check()
        await ben.button("Answer", within=first).click()
        second = anna.asks.filter(has_text="The agent reached a limit: 2 steps. Continue?")
        await second.get_by_role("radio", name="Stop").check()
        await anna.button("Answer", within=second).click()
        for tab in (anna, ben):
            await expect(tab.page.locator(".finish[data-reason='limit']")).to_contain_text(
                "Stopped at a limit: anna stopped it. Send a prompt to continue."
            )
            await tab.idle()


async def test_a2_questions_are_answered_by_choice_by_several_and_in_own_words(chromium: Browser, site: Site) -> None:
    site.model.add(
        [tool("question", text="Which colour?", choices=["red", "green"], descriptions=["", "like <b>grass</b>"])],
        [tool("question", text="Which sizes?", choices=["S", "M", "L"], multiple=True)],
        [tool("question", text="What name?")],
        [Say("Thanks.")],
        name="ask",
    )
    session = await site.session(site.project("ask"))
    answers: list[Any] = []
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.say("[[ask]]")
        card = ben.asks.filter(has_text="Which colour?")
        await expect(card.locator(".choice").nth(0)).to_have_text("1red")
        await expect(card.locator(".choice").nth(1).locator("small")).to_have_text("like <b>grass</b>")
        await card.get_by_role("radio", name="green").check()
        await anna.picture("page-question")
        await ben.button("Answer", within=card).click()
        await expect(anna.page.locator("article.ask.leaving")).to_contain_text("Answered by ben: “green”")
        card = anna.asks.filter(has_text="Which sizes?")
        await expect(card).to_be_visible()
        answers.append(sent_back(site))
        for name in ("S", "L"):
            await card.get_by_role("checkbox", name=name).check()
        await anna.button("Answer", within=card).click()
        card = ben.asks.filter(has_text="What name?")
        await card.get_by_label("Your answer").fill("Vera")
        answers.append(sent_back(site))
        await card.get_by_label("Your answer").press("Enter")
        for tab in (anna, ben):
            await tab.sees("Thanks.")
            await expect(tab.asks).to_have_count(0)
        answers.append(sent_back(site))
    assert answers == ["green", "S\nL", "Vera"]


async def test_f6_who_opens_the_session_later_sees_who_allowed_denied_and_answered_as_those_who_were_there(
    chromium: Browser, site: Site
) -> None:
    steps = [[tool("bash", command="touch a")], [tool("bash", command="touch b")], [tool("question", text="What?")]]
    site.model.add(*steps, [Say("All asked.")], name="who")
    session = await site.session(site.project("who"))
    told = ["denied by {ben}", "allowed (session) by {anna}", "answered by {ben}: “That.”"]

    async def sees(tab: Tab) -> None:
        names = {"anna": "anna", "ben": "ben"} | {tab.name: "you"}
        await expect(tab.tools.locator(".tool-said")).to_have_text([words.format(**names) for words in told])

    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.say("[[who]]")
        await ben.button("Deny").click()
        await ben.button("Deny").click()
        await anna.button("Allow for this session").click()
        await ben.asks.get_by_label("Your answer").fill("That.")
        await ben.button("Answer").click()
        for tab in (anna, ben):
            await tab.sees("All asked.")
            await sees(tab)
        await anna.page.reload()
        await anna.live()
        await sees(anna)
        async with open_tab(chromium, site, session, name="vera") as vera:
            await sees(vera)
            await vera.picture("page-who-answered")


async def test_f6_who_opens_the_page_later_finds_the_ask_and_a_canceled_run_takes_it_away(
    chromium: Browser, site: Site
) -> None:
    site.model.add([tool("question", text="Still there?"), Pause(site.model.gate("open"))], name="late", repeat=True)
    site.model.gate("open").open()
    directory = site.project("late")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[late]]")
        await expect(anna.asks).to_contain_text("Still there?")
        async with open_tab(chromium, site, session, name="ben") as ben:
            await expect(ben.asks).to_contain_text("Still there?")
            await expect(ben.page.get_by_label("needs an answer").first).to_be_visible()
            await ben.button("Stop").click()
            for tab in (anna, ben):
                await expect(tab.asks).to_have_count(0)
                await tab.idle()
    (run,) = await session.ledger()
    assert run["outcome"] == "canceled", json.dumps(run)
