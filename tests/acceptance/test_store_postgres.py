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


@pytest.mark.parametrize("by_option", [True, False])
async def test_g1_commands_for_sqlite_do_not_use_the_old_file_of_a_server_in_postgresql(
    by_option: bool,
) -> None:
    async with open_site() as site:
        await site.serve()
        await stop(site)
        copy, old = site.path / "copy.db", site.data / "longboat.db"
        made = await ended(await site.longboat("store", "backup", str(copy), cwd=site.path))
        assert made.code == 0, made.err
        dsn = database_of(site.data)
        if by_option:
            site.arguments += ["--store", dsn]
        else:
            site.environ["LONGBOAT_STORE"] = dsn
        await site.serve()
        found = await ended(await site.longboat("doctor", cwd=site.path))
        assert re.search(r"^ok +database +the sessions are in PostgreSQL, postgresql://", found.out, re.MULTILINE)
        assert f"{old} is not used" in found.out
        await stop(site)
        for words in (("backup", "new.db"), ("check",), ("restore", str(copy))):
            for place in ((), ("--data-dir", str(site.data))):
                done = await ended(await site.longboat("store", *words, *place, cwd=site.path))
                assert done.code == 1
                assert done.err.startswith("longboat: The sessions of this server are in PostgreSQL (postgresql://")
                assert done.err.endswith("): use pg_dump and pg_restore.\n")
        assert not (site.path / "new.db").exists()
        for file in (copy, old):
            done = await ended(await site.longboat("store", "check", str(file), cwd=site.path))
            assert done.code == 0, "a file that is named is checked"


async def test_g1_a_server_that_is_back_on_sqlite_can_be_backed_up() -> None:
    async with open_site() as site:
        for store in (database_of(site.data), ""):
            await site.serve(environ={"LONGBOAT_STORE": store})
            await stop(site)
        done = await ended(await site.longboat("store", "backup", "new.db", cwd=site.path))
        assert done.code == 0, done.err


async def test_g1_doctor_tells_that_the_database_cannot_be_reached_and_keeps_its_password_secret() -> None:
    async with open_site() as site:
        site.environ["LONGBOAT_STORE"] = f"postgresql://anna:hidden-word@127.0.0.1:9{site.path}"
        found = await ended(await site.longboat("doctor", cwd=site.path))
        assert found.code == 1
        assert re.search(r"^error +database +.* cannot be used: ", found.out, re.MULTILINE)
        assert "hidden-word" not in found.out + found.err


async def test_a_second_server_on_the_database_is_refused_and_told_why() -> None:
    async with open_site("postgres") as site, open_site() as other:
        await site.serve()
        process = await other.launch(environ={"LONGBOAT_STORE": site.environ["LONGBOAT_STORE"]})
        assert await process.wait() == 1
        said = other.log.read_text()
        assert "Another Longboat server uses the store postgresql://postgres@" in said
        assert "Stop it first, or name another database with --store." in said


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--store", "mysql://x", "must begin with postgresql://"),
        ("--node", "boat 1", "may have letters, digits, dots, dashes and underscores"),
        ("--advertise", "boat-1:8911", "must be like http://boat-1.internal:8911, without a path"),
        ("--advertise", "http://boat-1/longboat", "must be like http://boat-1.internal:8911, without a path"),
        ("--advertise", "http://boat-1:89110", "must be like http://boat-1.internal:8911, without a path"),
        ("--advertise", "http://boat-1:http", "must be like http://boat-1.internal:8911, without a path"),
        ("--advertise", "http://anna:word@boat-1:8911", "without a path, user or password"),
    ],
)
async def test_a_name_or_an_address_that_cannot_work_is_refused(option: str, value: str, said: str) -> None:
    async with open_site() as site:
        site.environ |= {"LONGBOAT_STORE": "postgresql://db.example/boat", "LONGBOAT_CLUSTER_SECRET": "s" * 16}
        done = await ended(await site.longboat("serve", option, value, cwd=site.path))
        assert done.code == 2
        assert said in " ".join(done.err.split())


STORE = ("--store", "postgresql://db.example/boat")


@pytest.mark.parametrize(
    ("words", "secret", "said"),
    [
        (("--node", "boat-1"), "", "--node is only for clusters and needs --store (or LONGBOAT_STORE)."),
        (("--advertise", "http://boat-1"), "", "--advertise is only for clusters and needs --store"),
        ((*STORE, "--node", "boat-1"), "", "set LONGBOAT_CLUSTER_SECRET on every node. Make one with `openssl rand"),
        (STORE, "s" * 15, "is shorter than 16 characters. Make one with `openssl rand -hex 32`."),
    ],
)
async def test_g13_half_a_cluster_is_told_what_is_missing(words: tuple[str, ...], secret: str, said: str) -> None:
    async with open_site() as site:
        site.environ["LONGBOAT_CLUSTER_SECRET"] = secret
        done = await ended(await site.longboat("serve", *words, cwd=site.path))
        assert done.code == 2
        assert said in " ".join(done.err.split())


async def test_a_name_in_the_environment_alone_makes_no_cluster() -> None:
    async with open_site() as site:
        await site.serve(environ={"LONGBOAT_NODE": "boat-1"})
        await stop(site)
        await site.serve(environ={"LONGBOAT_NODE": "boat-1", "LONGBOAT_STORE": database_of(site.data)})
        await stop(site)


async def test_what_was_copied_is_told_to_programs() -> None:
    async with open_site() as site:
        await site.serve()
        await site.session(site.project())
        await stop(site)
        words = ("store", "copy", database_of(site.data), "--data-dir", str(site.data), "--format", "json")
        done = await ended(await site.longboat(*words, cwd=site.path))
        assert json.loads(done.out)["rows"]["sessions"] == 1
