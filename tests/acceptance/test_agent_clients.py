"""Two people at one agent: the second sees what is pending, answers it, and the first sees who did (A2, F6)."""

import asyncio
import json
from typing import Any

import pytest
from processes import AROUND, open_site
from sessions import check_request, shared, terminal_events

from longboat.testing import CallTool, Say

pytestmark = [pytest.mark.acceptance, pytest.mark.parametrize("door", AROUND)]


def call(name: str, /, **arguments: Any) -> CallTool:
    return CallTool(name, json.dumps(arguments))


async def test_a2_who_comes_later_finds_the_ask_answers_it_and_everybody_hears_who(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        site.model.add([call("write", path="a.txt", content="ahoy\n")], [Say("Written.")], name="work")
        directory = site.project()
        anna = await site.session(directory)
        async with anna.watch("anna") as hers:
            await anna.submit("[[work]]", "r1")
            ask = (await hers.until(lambda event: event.type == "permission_request")).payload
            ben = await site.back_at(anna)
            async with ben.watch("ben") as his:
                snapshot = next(event.payload for event in his.events if event.type == "snapshot")
                assert snapshot.permissions == (ask,)
                assert not (directory / "a.txt").exists()
                url = f"{ben.workspace}/permissions/{ask.id}"
                answers = await asyncio.gather(
                    ben.http.post(url, json={"answer": "once", "client_id": "ben"}),
                    anna.http.post(url, json={"answer": "once", "client_id": "anna"}),
                )
                assert sorted(answer.status_code for answer in answers) == [200, 409]
                won = next(answer.json() for answer in answers if answer.status_code == 200)["answered_by"]
                lost = next(answer.json() for answer in answers if answer.status_code == 409)
                assert (lost["code"], won in lost["message"]) == ("already_answered", True)
                for watch in (hers, his):
                    assert (await watch.complete("r1")).text == "Written."
                    (told,) = (e.payload for e in watch.events if e.type == "permission_notification")
                    assert (told.id, told.answer, told.answered_by) == (ask.id, "once", won)
                    assert len(terminal_events(watch.events)) == 1
                mine, theirs = shared(hers, his)
                assert mine == theirs
        assert (directory / "a.txt").read_text() == "ahoy\n"
        for exchange in site.model.requests:
            check_request(exchange.body)
        assert await anna.check_books() == {"r1": "end_turn"}


async def test_a2_a_question_is_answered_by_the_other_client(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        site.model.add([call("question", text="Which?", choices=["a", "b"])], [Say("b it is.")], name="work")
        anna = await site.session(site.project())
        ben = await site.back_at(anna)
        async with anna.watch("anna") as hers:
            await anna.submit("[[work]]", "r1")
            await hers.until(lambda event: event.type == "question_request")
            (question,) = (await ben.http.get(f"{ben.workspace}/questions")).json()["items"]
            url = f"{ben.workspace}/questions/{question['id']}"
            assert (await ben.http.post(url, json={"answer": ["b"], "client_id": "ben"})).status_code == 200
            assert (await anna.http.post(url, json={"answer": ["a"], "client_id": "anna"})).status_code == 409
            assert (await hers.complete("r1")).text == "b it is."
            (told,) = (e.payload for e in hers.events if e.type == "question_notification")
            assert (told.answer, told.answered_by) == (("b",), "ben")
        assert "b" in check_request(site.model.requests[-1].body)[-1][1]
        await anna.check_books()
