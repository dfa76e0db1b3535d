"""What somebody has allowed outlives the server: for the session with the session, for always with the project (A2)."""

import json
from pathlib import Path
from typing import Any

import pytest
from processes import Site, open_site
from sessions import SessionClient

from longboat.testing import CallTool, Say

pytestmark = pytest.mark.acceptance


def touch(name: str) -> CallTool:
    return CallTool("bash", json.dumps({"command": f"touch {name}"}))


async def asked_and_answered(session: SessionClient, prompt: str, run_id: str, answer: str) -> dict[str, Any]:
    """A run that asks once, and gets this answer."""
    async with session.watch() as watch:
        await session.submit(prompt, run_id)
        ask = (await watch.until(lambda event: event.type == "permission_request")).payload
        reply = await session.http.post(
            f"{session.workspace}/permissions/{ask.id}", json={"answer": answer, "client_id": "ann"}
        )
        assert reply.status_code == 200, reply.text
        await watch.complete(run_id)
    assert await session.outcome(run_id) == "end_turn"
    return dict(reply.json())


async def not_asked(session: SessionClient, prompt: str, run_id: str) -> None:
    async with session.watch() as watch:
        await session.submit(prompt, run_id)
        complete = await watch.complete(run_id)
        assert complete.text == "touched"
        assert "permission_request" not in watch.types


async def still_asked(session: SessionClient, prompt: str, run_id: str) -> None:
    async with session.watch() as watch:
        await session.submit(prompt, run_id)
        await watch.until(lambda event: event.type == "permission_request")
        await session.cancel_run(run_id)
        await watch.complete(run_id)


async def begun(site: Site) -> tuple[Path, SessionClient]:
    site.model.add([touch("made")], [Say("touched")], name="made", repeat=True)
    site.model.add([touch("other")], [Say("touched")], name="other", repeat=True)
    await site.serve()
    directory = site.project()
    return directory, await site.session(directory)


async def stopped(site: Site, how: str) -> None:
    if how == "killed":
        await site.kill()
    else:
        site.server.terminate()
        assert await site.server.wait() == 0
    await site.serve()


@pytest.mark.parametrize("how", ["killed", "stopped"])
async def test_a_grant_for_the_session_outlives_the_server_and_stays_in_its_session(how: str) -> None:
    """A2: the same command is not asked again after a restart, another one is, and so is it in another session."""
    async with open_site() as site:
        directory, session = await begun(site)
        before = (directory / "longboat.json").read_bytes()
        await asked_and_answered(session, "[[made]]", "r1", "session")
        (directory / "made").unlink()
        await stopped(site, how)
        session = await site.back_at(session)
        await not_asked(session, "[[made]]", "r2")
        assert (directory / "made").exists()
        await still_asked(session, "[[other]]", "r3")
        assert not (directory / "other").exists()
        elsewhere = await SessionClient.create(session.http, session.workspace)
        await still_asked(elsewhere, "[[made]]", "r4")
        assert (directory / "longboat.json").read_bytes() == before, "what is for the session is in no file"
        await session.check_books()


@pytest.mark.parametrize("how", ["killed", "stopped"])
async def test_a_rule_for_always_outlives_the_server_and_holds_in_every_session(how: str) -> None:
    """A2: it is in the project's file, which stays trusted; another command is asked as before."""
    async with open_site() as site:
        directory, session = await begun(site)
        answered = await asked_and_answered(session, "[[made]]", "r1", "always")
        rules = json.loads((directory / "longboat.json").read_text())["permissions"]["allow"]
        assert set(answered["granted"]) <= set(rules)
        (directory / "made").unlink()
        await stopped(site, how)
        session = await site.back_at(session)
        await not_asked(session, "[[made]]", "r2")
        assert (directory / "made").exists()
        elsewhere = await SessionClient.create(session.http, session.workspace)
        await not_asked(elsewhere, "[[made]]", "r3")
        await still_asked(elsewhere, "[[other]]", "r4")
        await session.check_books()
