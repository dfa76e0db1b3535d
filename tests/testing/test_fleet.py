"""The cluster that is shipped for tests of other programs."""

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from postgres import new_database

from longboat.testing.cutoff import Cutoff
from longboat.testing.fleet import database_target, dsn_via_link

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_an_address_of_a_database_leads_through_a_link() -> None:
    link = Cutoff()
    link.port = 7
    for dsn, target, linked in (
        ("postgresql://me:pw@db:6000/name", ("db", 6000), "postgresql://me:pw@127.0.0.1:7/name?sslmode=disable"),
        ("postgresql://db/name", ("db", 5432), "postgresql://127.0.0.1:7/name?sslmode=disable"),
        (
            "postgresql://me@/name?host=/run/pg",
            "/run/pg/.s.PGSQL.5432",
            "postgresql://me@127.0.0.1:7/name?sslmode=disable",
        ),
    ):
        assert (database_target(dsn), dsn_via_link(dsn, link)) == (target, linked)


async def test_the_program_in_the_documentation_sees_its_session_survive_a_node() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n((?:(?!^```).)*DATABASE_URL.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    async with new_database() as dsn:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", "-c", program),
            env={**os.environ, "DATABASE_URL": dsn},
            stdout=PIPE,
            stderr=PIPE,
        )
        out, err = await process.communicate()
    assert (out.decode(), err.decode()) == ("echo: before\necho: after\n", "")
