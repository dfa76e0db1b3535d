"""Lists of what all nodes have: the same at every node, whoever works on what (G2)."""

import asyncio
import shutil
from typing import Any

import pytest
from cluster import SiteFleet, open_fleet

from longboat.testing import CallTool, Hang, Say

pytestmark = pytest.mark.acceptance

LISTS = (
    *("/v1/workspaces", "/v1/nodes", "/v1/stats", "/v1/search?q=one", "/v1/push"),
    *("/v1/inbox?client_id=ann", "/v1/inbox?client_id=ann&limit=1"),
)
_VARYING = ("seen_at", "answering")
"""Of a node: when it was last heard of may be newer a moment later, and one of them gives the answer."""


async def lists_at(fleet: SiteFleet, name: str) -> dict[str, Any]:
    http = await fleet[name].client()
    answers = {path: (await http.get(path)) for path in LISTS}
    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(LISTS, 200)
    found = {path: answer.json() for path, answer in answers.items()}
    for node in found["/v1/nodes"]["items"]:
        for field in _VARYING:
            del node[field]
    return found


async def test_g2_every_list_is_the_same_at_every_node() -> None:
    """`ready` was what the node itself saw: true of all workspaces that another one worked on."""
    async with open_fleet("a", "b", "dead") as fleet:
        fleet["a"].model.add([Say("one "), Hang()], name="held")
        fleet["a"].model.add([CallTool("question", {"text": "Which one?"})], name="ask")
        broken, gone = fleet["a"].project(), fleet.project()
        unusable = await fleet["a"].session(broken), await fleet["b"].session(gone)
        busy, asking = await fleet["b"].session(fleet.project()), await fleet["a"].session(fleet.project())
        kept, left = [await fleet["dead"].session(fleet["dead"].project()) for _ in range(2)]
        await fleet["dead"].kill()
        await fleet.expire("dead")
        caretaker = await fleet.through("b", kept)
        assert (await caretaker.http.get(kept.workspace)).json()["away"]
        async with busy.watch() as bens, asking.watch("ann") as anns:
            await asyncio.gather(busy.submit("[[held]]", "r1"), asking.submit("[[ask]]", "r2"))
            await bens.text("one ")
            await anns.until(lambda event: event.type == "question_request")
            (broken / "longboat.json").write_text("{")
            await asyncio.to_thread(shutil.rmtree, gone)
            for name in "ab":
                for session in unusable:
                    through = await fleet.through(name, session)
                    assert (await through.http.get(session.workspace)).json()["ready"] is False
            one, other = [await lists_at(fleet, name) for name in "ab"]
            assert one == other
        items = {f"/v1/workspaces/{each['id']}": each for each in one["/v1/workspaces"]["items"]}
        assert [items[each.workspace]["ready"] for each in (*unusable, busy, asking, kept, left)] == [
            *(False, False, True, True, False, False)
        ]
        assert [each for each in items if items[each]["busy"]] == [busy.workspace, asking.workspace]
        assert [each for each in items if items[each]["away"]] == [kept.workspace, left.workspace]
        assert len(one["/v1/inbox?client_id=ann"]["items"]) == 1
