"""Several servers on the page (G12): which of them run, what they work on, and which directories are away."""

import re

from audit import Auditor
from browser import MARKS, Tab, open_tab
from cluster import SiteFleet, open_fleet
from playwright.async_api import Browser, Locator, expect
from processes import Site
from sessions import SessionClient

from longboat.testing import Hang, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)

PHONE = (390, 844)


def node(tab: Tab, name: str) -> Locator:
    return tab.page.get_by_role("region", name=f"Node {name}")


async def lose(fleet: SiteFleet, name: str) -> None:
    await fleet[name].kill()
    await fleet.expire(name)


async def worked_on(fleet: SiteFleet) -> SessionClient:
    """A session at boat-1 with an active and a queued run; another workspace is shared."""
    home = fleet["boat-1"]
    home.model.add([Say("one "), Hang()], name="held")
    directory = home.project("shop")
    fleet["boat-2"].trust(directory)  # in these tests, it sees the disk of the other
    session = await home.session(directory)
    await fleet["boat-2"].session(fleet.project())
    async with session.watch("ben") as bens:
        await session.submit("[[held]]", "r1")
        await bens.text("one ")
        await session.submit("later", "r2", delivery="queue")
        await bens.state("r2", "queued")
    return session


async def test_g12_the_page_shows_every_node_its_load_and_where_workspaces_are(chromium: Browser) -> None:
    async with open_fleet("boat-1", "boat-2", "boat-3") as fleet:
        await worked_on(fleet)
        await lose(fleet, "boat-3")
        for size in ((1280, 800), PHONE):
            async with open_tab(chromium, fleet["boat-2"], size=size) as anna:
                await anna.go(path="/nodes")
                await expect(node(anna, "boat-1")).to_contain_text(re.compile(r"running.*1 active, 1 queued", re.S))
                await expect(node(anna, "boat-2")).to_contain_text("You are connected to this node.")
                await expect(node(anna, "boat-3")).to_contain_text(re.compile(r"down.*Last heard of", re.S))
                rows = anna.page.get_by_role("region", name="Workspaces").get_by_role("row")
                await expect(rows.filter(has_text="shop")).to_contain_text(re.compile(r"working.*boat-1.*boat-1"))
                await expect(rows.filter(has_text="project")).to_contain_text(re.compile(r"idle.*boat-2.*all nodes"))
                auditor = Auditor(tab=anna, found=[])
                await auditor.look("nodes")
                assert auditor.found == []
                wide = await anna.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                assert wide, "nothing sticks out"
        async with open_tab(chromium, fleet["boat-2"]) as anna:
            await anna.go(path="/nodes")
            await expect(node(anna, "boat-1")).to_contain_text("running")
            await lose(fleet, "boat-1")
            await expect(node(anna, "boat-1")).to_contain_text("down")
            await expect(anna.page.get_by_role("row").filter(has_text="shop")).to_contain_text(
                "boat-1 has been down since"
            )


async def test_g7_the_session_says_that_its_node_is_down_and_takes_it_back(chromium: Browser) -> None:
    async with open_fleet("boat-1", "boat-2") as fleet:
        session = await worked_on(fleet)
        for size in ((1280, 800), PHONE):
            async with open_tab(chromium, fleet["boat-2"], session, size=size) as anna:
                notice = anna.page.locator(".away-notice")
                await anna.sees("one")
                await expect(notice).to_be_hidden()
                await lose(fleet, "boat-1")
                await expect(notice).to_contain_text(
                    re.compile(r"Node boat-1, which has this directory, has been down since \d")
                )
                await expect(notice).to_contain_text("Prompts are queued until it is back.")
                auditor = Auditor(tab=anna, found=[])
                await auditor.look("away")
                assert auditor.found == []
                assert await anna.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                await anna.page.reload()
                await expect(notice).to_be_visible()  # also who comes later is told
                await anna.go(path="/#/")
                await expect(anna.page.get_by_role("link", name=re.compile("shop"))).to_contain_text(
                    "boat-1 has been down since"
                )
                await auditor.look("away-list")
                await anna.go(session)
                await fleet["boat-1"].serve()
                await expect(notice).to_be_hidden()


async def test_g12_only_several_nodes_have_a_way_to_them(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("alone"))
    async with open_tab(chromium, site, session) as anna:
        async with anna.page.expect_response("**/v1/nodes"):
            await anna.page.reload()
        await anna.live()
        await expect(anna.page.locator("#nodes")).to_be_hidden()
        await anna.go(path="/nodes")
        await expect(anna.page.get_by_role("status")).to_have_text("This is the only server on its database.")
        await expect(anna.page.get_by_role("region", name=re.compile("Node "))).to_have_count(1)
    async with open_fleet("boat-1", "boat-2") as fleet:
        session = await fleet["boat-1"].session(fleet["boat-1"].project())
        async with open_tab(chromium, fleet["boat-2"], session) as anna:
            await anna.page.get_by_role("link", name="Nodes").click()
            await expect(node(anna, "boat-1")).to_be_visible()
