"""A server whose sessions are in PostgreSQL: started, refused, and moved there from SQLite (G1)."""

import json
import re

import pytest
from postgres import database_of
from processes import Site, ended, open_site

from longboat.testing import Say

pytestmark = pytest.mark.acceptance


async def stop(site: Site) -> None:
    site.server.terminate()
    assert await site.server.wait() == 0


async def test_a_past_in_sqlite_is_copied_and_goes_on_in_postgresql() -> None:
    async with open_site() as site:
        await site.serve()
        site.model.add([Say("from the first store")], name="one")
        site.model.add([Say("from the second store")], name="two")
        directory = site.project()
        session = await site.session(directory)
        await session.outcome(await session.submit("[[one]]", "r-one"))
        before = await session.messages()
        await stop(site)
        dsn = database_of(site.data)
        copied = await ended(await site.longboat("store", "copy", dsn, "--data-dir", str(site.data), cwd=directory))
        assert copied.code == 0, copied.err
        assert "Every row was compared with its copy." in copied.out
        assert re.search(r"^  runs +1$", copied.out, re.MULTILINE)
        again = await ended(await site.longboat("store", "copy", dsn, "--data-dir", str(site.data), cwd=directory))
        assert again.code == 1
        assert "holds a store already" in again.err
        await site.serve(environ={"LONGBOAT_STORE": dsn})
        assert await session.messages() == before
        await session.outcome(await session.submit("[[two]]", "r-two"))
        assert [message["role"] for message in await session.messages()] == ["user", "assistant"] * 2
        page = await session.http.get("/v1/search", params={"q": "first store"})
        assert [hit["snippet"]["text"] for hit in page.json()["items"]] == ["from the first store"]
        assert (await session.http.get("/v1/health")).json()["status"] == "ok"


async def test_a_second_server_on_the_database_is_refused_and_told_why() -> None:
    async with open_site("postgres") as site, open_site() as other:
        await site.serve()
        process = await other.launch(environ={"LONGBOAT_STORE": site.environ["LONGBOAT_STORE"]})
        assert await process.wait() == 1
        said = other.log.read_text()
        assert "Another Longboat server uses the store postgresql://postgres@" in said
        assert "Stop it first, or name another database with --store." in said


async def test_an_address_of_another_kind_is_refused() -> None:
    async with open_site() as site:
        done = await ended(await site.longboat("serve", "--store", "mysql://x", cwd=site.path))
        assert done.code == 2
        assert "must begin with postgresql://" in done.err


async def test_what_was_copied_is_told_to_programs() -> None:
    async with open_site() as site:
        await site.serve()
        await site.session(site.project())
        await stop(site)
        words = ("store", "copy", database_of(site.data), "--data-dir", str(site.data), "--format", "json")
        done = await ended(await site.longboat(*words, cwd=site.path))
        assert json.loads(done.out)["rows"]["sessions"] == 1
