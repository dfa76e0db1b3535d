"""A plugin: places in which commands run behind the kernel's own walls."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.process.jobs import Jobs


@pytest.fixture
def no_bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server finds none; commands find what is usual."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.fixture
def context(tmp_path: Path) -> OpenToolContext:
    (tmp_path / "work").mkdir()
    return OpenToolContext(tmp_path / "work", environ={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)})


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[Jobs]:
    jobs = Jobs(tmp_path / "scratch")
    yield jobs
    await jobs.aclose()


@pytest.fixture
def outside() -> Iterator[Path]:
    """A directory that can be read behind the walls, with a file."""
    with TemporaryDirectory(dir="/var/tmp") as path:
        (Path(path) / "file").write_text("theirs\n")
        yield Path(path)
