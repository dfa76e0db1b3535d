"""What /v1/openapi.json says is what the server does: schemathesis, with all checks, finds nothing (D15).

By hand, with another seed and for longer:

    SCHEMATHESIS_SEED=7 SCHEMATHESIS_EXAMPLES=100 python -m pytest -s tests/acceptance/test_openapi_is_true.py
"""

import asyncio
import os
import sys
from pathlib import Path

import processes
import pytest
from processes import open_site

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(3_700)]

CONFIG = Path(__file__).with_name("schemathesis.toml")


async def test_schemathesis_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        processes, "TEST_LIMIT_S", 3_600
    )  # half a minute on a quiet machine; by hand as long as one likes
    async with open_site("tcp") as site:
        await site.serve()
        directory = site.project()
        (directory / "main.py").write_text("print(1)\n")
        session = await site.session(directory)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run"),
            *("--seed", os.environ.get("SCHEMATHESIS_SEED", "1")),
            *("--max-examples", os.environ.get("SCHEMATHESIS_EXAMPLES", "5")),
            *("--phases", "examples,coverage,fuzzing,stateful"),
            *("--header", f"Authorization: {site.headers['authorization']}"),
            f"{site.discovery().url}/v1/openapi.json",
            cwd=site.path,
            env=site.environ | {"SCHEMATHESIS_WORKSPACE": session.workspace.rpartition("/")[2]},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        site.processes.append(process)
        told, _ = await process.communicate()
        print(told.decode())
        assert process.returncode == 0
        assert "Traceback" not in site.log.read_text()
