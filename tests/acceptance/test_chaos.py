"""Short storms of `make chaos`: servers ended in every way, under clients at work, and every promise held."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos.storm import Settings, storm

pytestmark = pytest.mark.acceptance

SEED = 2258
"""Its killer ends servers in all four ways within five kills."""
NODES_SEED = 7


@pytest.fixture
def home() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="lb-", dir="/tmp"))  # pytest's own paths are too long for a socket
    yield path
    shutil.rmtree(path)


@pytest.mark.timeout(240)
async def test_a_server_that_is_killed_under_load_keeps_every_promise(home: Path) -> None:
    """B5, B6, E1, L6, A2: `python -m chaos` for more of it."""
    result = await storm(Settings(seed=SEED, kills=5, seconds=0, clients=10), home)
    assert result.violations == []
    assert result.ends == {"kill -9": 2, "kill -9 after TERM": 1, "TERM": 1, "killed while it started": 1}
    assert any(workspace.effects for workspace in result.evidence.workspaces), "no command ran"


@pytest.mark.timeout(240)
async def test_nodes_that_are_killed_stopped_and_cut_off_keep_every_promise(home: Path) -> None:
    """G2-G10: `python -m chaos --nodes 3` for more of it."""
    result = await storm(Settings(seed=NODES_SEED, kills=5, seconds=0, nodes=2, clients=8), home)
    assert result.violations == []
    assert result.ends.total() >= 5
    assert any(workspace.effects for workspace in result.evidence.workspaces), "no command ran"
