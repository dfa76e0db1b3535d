"""fetch, download, web_search (A1): bounded, with permission, and never to a private address."""

import asyncio
import gzip
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from website import Site, open_site, page, redirect

from longboat.testing.tool_context import Change, OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.files.file_io import MAX_BYTES as MAX_FILE
from longboat.tools.web.download import DownloadTool
from longboat.tools.web.fetch import MAX_BYTES, PART, FetchTool
from longboat.tools.web.http import Web

PUBLIC = ("127.0.0.2/32", "127.0.0.3/32")
"""Allowed, so that a site on loopback can stand for a public one; 127.0.0.1 stays what it is."""


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as site:
        yield site


@pytest.fixture
def context(tmp_path: Path) -> OpenToolContext:
    return OpenToolContext(tmp_path)


@pytest.fixture
def fetch() -> FetchTool:
    return FetchTool(Web(allowed_networks=PUBLIC))


@pytest.fixture
def download() -> DownloadTool:
    return DownloadTool(Web(allowed_networks=PUBLIC))


HTML = """<html><head><title>T</title><style>x{}</style><script>evil()</script></head><body>
<nav><a href="/n">Menu</a></nav><h1>Title</h1><p>See <a href="../other">this</a> <code>x_y</code></p>
<pre><code>a &lt; b</code></pre><table><tr><th>A</th></tr><tr><td>1</td></tr></table>
<img src="data:image/png;base64,AAAA" alt="pic"></body></html>"""


async def test_a_page_comes_as_markdown_with_whole_links(
    site: Site, context: OpenToolContext, fetch: FetchTool
) -> None:
    site.replies["/docs/page"] = page(HTML, kind="text/html; charset=utf-8")
    url = f"{site.url}/docs/page"
    result = await context.use(fetch, url=f"{url}#part")
    assert result.content.startswith(f"[{url}]\n\n# Title\n")
    assert f"[this]({site.url}/other) `x_y`" in result.content
    assert "a < b" in result.content
    for noise in ("evil", "x{}", "base64", "Menu"):
        assert noise not in result.content
    (need,) = context.needs
    assert (need.tool, need.action, need.argument) == ("fetch", "fetch", url)
    assert [(hit.target, hit.headers["host"]) for hit in site.hits] == [("/docs/page", f"127.0.0.2:{site.port}")]


async def test_a_page_comes_as_text_or_as_html_on_request(
    site: Site, context: OpenToolContext, fetch: FetchTool
) -> None:
    site.replies["/"] = page(HTML, kind="text/html")
    assert "See this x_y" in (await context.use(fetch, url=site.url, format="text")).content
    assert HTML in (await context.use(fetch, url=site.url, format="html")).content


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (page('{"a": [1]}', kind="application/json"), '{"a": [1]}'),
        (page("näh".encode("latin-1"), kind="text/plain; charset=iso-8859-1"), "näh"),
        (page(b"<meta charset=cp1251><p>" + "да".encode("cp1251"), kind="text/html"), "да"),
        (page(b"a\xff", kind="text/plain; charset=rot13"), "a�"),
        (page(b"a\xff", kind="text/plain; charset=no-such"), "a�"),
        (page("x: 1", kind="application/vnd.api+yaml"), "x: 1"),
        (page("plain", kind=""), "plain"),
    ],
)
async def test_text_is_decoded_as_its_server_or_its_page_says(
    site: Site, context: OpenToolContext, fetch: FetchTool, reply: bytes, text: str
) -> None:
    site.replies["/"] = reply
    assert (await context.use(fetch, url=site.url)).content.partition("\n\n")[2] == text


@pytest.mark.parametrize(("body", "kind"), [(b"\x89PNG", "image/png"), (b"a\0b", "text/plain")])
async def test_what_is_no_text_is_left_to_download(
    site: Site, context: OpenToolContext, fetch: FetchTool, body: bytes, kind: str
) -> None:
    site.replies["/"] = page(body, kind=kind)
    with pytest.raises(ToolError, match="Use download"):
        await context.use(fetch, url=site.url)


async def test_a_long_page_is_read_in_parts(site: Site, context: OpenToolContext, fetch: FetchTool) -> None:
    whole = "".join(f"{number}\n" for number in range(8_000))
    site.replies["/"] = page(whole)
    parts, start = [], 0
    while start < len(whole):
        head, _, part = (await context.use(fetch, url=site.url, start=start)).content.partition("\n\n")
        end = min(len(whole), start + PART)
        assert f"characters {start}–{end} of {len(whole)}" in head
        assert (f"continue with start={end}" in head) == (end < len(whole))
        parts.append(part)
        start = end
    assert "".join(parts) == whole
    with pytest.raises(ToolError, match="past the end"):
        await context.use(fetch, url=site.url, start=len(whole))


async def test_an_error_of_the_server_is_an_error_with_what_it_said(
    site: Site, context: OpenToolContext, fetch: FetchTool
) -> None:
    result = await context.use(fetch, url=f"{site.url}/none")
    assert result.is_error
    assert result.content == f"{site.url}/none answered 404 Not Found.\n\nnot here"


async def test_an_endless_answer_is_cut_off(site: Site, context: OpenToolContext, fetch: FetchTool) -> None:
    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    site.replies["/"] = endless
    result = await context.use(fetch, url=site.url)
    assert "only the first 5 MB were fetched" in result.content
    assert f"of {MAX_BYTES};" in result.content


async def test_a_packed_answer_is_unpacked_no_further_than_the_bound(
    site: Site, context: OpenToolContext, fetch: FetchTool
) -> None:
    site.replies["/small"] = page(gzip.compress(b"hello"), content_encoding="gzip")
    site.replies["/bomb"] = page(gzip.compress(bytes(b" " * 200_000_000)), content_encoding="gzip")
    site.replies["/odd"] = page(b"?", content_encoding="br")
    site.replies["/broken"] = page(b"no gzip", content_encoding="gzip")
    assert (await context.use(fetch, url=f"{site.url}/small")).content.endswith("\n\nhello")
    assert "only the first 5 MB" in (await context.use(fetch, url=f"{site.url}/bomb")).content
    with pytest.raises(ToolError, match="encoding 'br'"):
        await context.use(fetch, url=f"{site.url}/odd")
    with pytest.raises(ToolError, match="could not be fetched"):
        await context.use(fetch, url=f"{site.url}/broken")


async def test_a_server_that_does_not_answer_is_not_waited_for(site: Site, context: OpenToolContext) -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    site.replies["/"] = silent
    fetch = FetchTool(Web(allowed_networks=PUBLIC, timeout_s=0.2))
    with pytest.raises(ToolError, match=r"did not answer within 0.2 s"):
        await context.use(fetch, url=site.url)


async def test_a_canceled_fetch_hangs_up(site: Site, context: OpenToolContext, fetch: FetchTool) -> None:
    asked, hung_up = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nonce upon")
        asked.set()
        await reader.read()
        hung_up.set()

    site.replies["/"] = slow
    fetching = asyncio.create_task(context.use(fetch, url=site.url))
    await asked.wait()
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    async with asyncio.timeout(20):
        await hung_up.wait()


async def test_nothing_is_asked_of_the_net_before_the_permission(site: Site, tmp_path: Path, fetch: FetchTool) -> None:
    context = OpenToolContext(tmp_path, refuse=lambda _: True)
    with pytest.raises(ToolError, match="Not allowed"):
        await context.use(fetch, url=site.url)
    assert site.hits == []


SPELLINGS = [
    "127.0.0.1", "localhost", "LOCALHOST.", "2130706433", "0177.0.0.1", "0x7f000001", "0x7f.1", "127.1", "0", "0.0.0.0",
    "127.255.255.254", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
    "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fe80::1]", "[fec0::1]",
    "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]", "169.254.169.254", "100.100.100.200", "168.63.129.16",
    "192.0.0.192", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "198.18.0.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "127。0。0。1", "①②⑦.⓪.⓪.①",
]  # fmt: skip


@pytest.mark.parametrize("host", SPELLINGS)
async def test_a_private_address_is_refused_however_it_is_spelled(
    host: str, context: OpenToolContext, fetch: FetchTool
) -> None:
    async with open_site("127.0.0.1") as own:
        with pytest.raises(ToolError, match=r"private or local address|was not found|is not a URL"):
            await context.use(fetch, url=f"http://{host}:{own.port}/")
        assert own.hits == []


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "ftp://127.0.0.2/", "data:text/plain,x", "javascript:1", "gopher://127.0.0.2/", "/etc",
        "http:///x", "http://", "", "http://127.0.0.2:port/", "http://me:secret@127.0.0.2/", "http://a\x00b/",
        "http://example.com\\@127.0.0.2/", "http://[::1/", "http://\ud800/",
    ],
)  # fmt: skip
async def test_only_plain_http_urls_are_fetched(url: str, context: OpenToolContext, fetch: FetchTool) -> None:
    with pytest.raises(ToolError, match=r"is not a URL|not an http or https URL|user name or password|was not found"):
        await context.use(fetch, url=url)


async def test_a_redirect_is_followed_and_every_other_host_is_asked_for(
    site: Site, context: OpenToolContext, fetch: FetchTool
) -> None:
    async with open_site("127.0.0.3") as other:
        other.replies["/end"] = page("arrived")
        site.replies["/a"] = redirect("b?x=1")
        site.replies["/b"] = redirect(f"{other.url}/end")
        result = await context.use(fetch, url=f"{site.url}/a")
        assert result.content == f"[{other.url}/end]\n\narrived"
        assert [need.argument for need in context.needs] == [f"{site.url}/a", f"{other.url}/end"]


@pytest.mark.parametrize("location", ["http://127.0.0.1:{port}/", "//localhost:{port}/", "file:///etc/passwd"])
async def test_a_redirect_leads_to_no_private_address_and_no_other_scheme(
    site: Site, context: OpenToolContext, fetch: FetchTool, location: str
) -> None:
    async with open_site("127.0.0.1") as own:
        site.replies["/"] = redirect(location.format(port=own.port))
        with pytest.raises(ToolError, match=r"private or local address|not an http or https URL"):
            await context.use(fetch, url=site.url)
        assert own.hits == []


async def test_redirects_in_a_circle_come_to_an_end(site: Site, context: OpenToolContext, fetch: FetchTool) -> None:
    site.replies["/"] = redirect("/")
    with pytest.raises(ToolError, match="more than 10 times"):
        await context.use(fetch, url=site.url)
    assert len(site.hits) == 10
    assert len(context.needs) == 1


async def test_a_name_that_resolves_differently_later_changes_nothing(
    site: Site, context: OpenToolContext, fetch: FetchTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the address that was checked is the one that is connected to."""
    loop = asyncio.get_running_loop()
    real, asked = loop.getaddrinfo, []

    async def turning(host: Any, port: Any, **options: Any) -> Any:
        if host != "rebind.test":
            return await real(host, port, **options)
        asked.append(host)
        return await real("127.0.0.2" if len(asked) == 1 else "127.0.0.1", port, **options)

    monkeypatch.setattr(loop, "getaddrinfo", turning)
    site.replies["/"] = page("public")
    async with open_site("127.0.0.1") as own:
        result = await context.use(fetch, url=f"http://rebind.test:{site.port}/")
        assert result.content.endswith("\n\npublic")
        assert own.hits == []
    assert asked == ["rebind.test"]
    assert site.hits[0].headers["host"] == f"rebind.test:{site.port}"


async def test_a_post_connects_to_the_address_that_was_checked_for_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding of a push service: each name is resolved once for each message."""
    loop = asyncio.get_running_loop()
    answers = ["127.0.0.2", "127.0.0.1", "93.184.216.34", "127.0.0.2"]

    async def turning(host: Any, port: Any, **options: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers.pop(0), port))]

    monkeypatch.setattr(loop, "getaddrinfo", turning)
    web, url = Web(allowed_networks=PUBLIC), f"http://rebind.test:{site.port}/"
    site.replies["/"] = page("", status="201 Created")
    async with open_site("127.0.0.1") as own:
        assert await web.post(url, body=b"x", headers={}) == 201
        with pytest.raises(ToolError, match="private or local"):
            await web.post(url, body=b"x", headers={})
        with pytest.raises(ToolError, match="must use https"):
            await web.post(url, body=b"x", headers={})
        assert own.hits == []
    assert answers == ["127.0.0.2"]
    assert len(site.hits) == 1


async def test_a_post_follows_no_redirect(site: Site) -> None:
    site.replies["/moved"] = redirect(f"{site.url}/elsewhere")
    assert await Web(allowed_networks=PUBLIC).post(f"{site.url}/moved", body=b"x", headers={}) == 302
    assert [hit.target for hit in site.hits] == ["/moved"]


async def test_an_endless_answer_to_a_post_is_not_read(site: Site) -> None:
    hung_up = asyncio.Event()

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 1000000000000\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 65_536)
                await writer.drain()
        finally:
            hung_up.set()

    site.replies["/"] = endless
    assert await Web(allowed_networks=PUBLIC).post(f"{site.url}/", body=b"x", headers={}) == 201
    await hung_up.wait()


@pytest.mark.parametrize("endless", [b"X-A: b\r\n", b"x" * 1_000])
async def test_an_endless_head_of_an_answer_is_refused(site: Site, endless: bytes) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 201 Created\r\n")
        while True:
            writer.write(endless * 100)
            await writer.drain()

    site.replies["/"] = serve
    with pytest.raises(ToolError, match="could not be reached"):
        await Web(allowed_networks=PUBLIC).post(f"{site.url}/", body=b"x", headers={})


async def test_of_several_addresses_the_private_are_passed_over_and_a_dead_one_is_survived(
    site: Site, context: OpenToolContext, fetch: FetchTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    real = loop.getaddrinfo

    async def several(host: Any, port: Any, **options: Any) -> Any:
        if host != "many.test":
            return await real(host, port, **options)
        addresses = ("127.0.0.1", "127.0.0.3", "127.0.0.2")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(loop, "getaddrinfo", several)
    site.replies["/"] = page("found")
    assert (await context.use(fetch, url=f"http://many.test:{site.port}/")).content.endswith("found")


async def test_the_certificate_must_be_the_hosts(
    tmp_path: Path, context: OpenToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    names = ["-subj", "/CN=safe.test", "-addext", "subjectAltName=DNS:safe.test"]
    await asyncio.to_thread(
        subprocess.run, [*command, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    loop = asyncio.get_running_loop()
    real = loop.getaddrinfo

    async def local(host: Any, port: Any, **options: Any) -> Any:
        return await real("127.0.0.2" if str(host).endswith(".test") else host, port, **options)

    monkeypatch.setattr(loop, "getaddrinfo", local)
    fetch = FetchTool(Web(allowed_networks=PUBLIC, verify=ssl.create_default_context(cafile=str(certificate))))
    async with open_site(tls=tls) as site:
        site.replies["/"] = page("secret")
        assert (await context.use(fetch, url=f"https://safe.test:{site.port}/")).content.endswith("secret")
        for other in (f"https://else.test:{site.port}/", f"https://127.0.0.2:{site.port}/"):
            with pytest.raises(ToolError, match=r"could not be fetched.*certificate"):
                await context.use(fetch, url=other)


async def test_a_download_becomes_a_file_and_a_recorded_change(
    site: Site, context: OpenToolContext, download: DownloadTool
) -> None:
    """A4: undo knows of it."""
    site.replies["/a.bin"] = page(b"\0\1", kind="application/octet-stream")
    path = context.directory / "new" / "a.bin"
    result = await context.use(download, url=f"{site.url}/a.bin", path="new/a.bin")
    assert result.content == f"Wrote new/a.bin (2 bytes, application/octet-stream) from {site.url}/a.bin."
    assert path.read_bytes() == b"\0\1"
    assert context.changes == [Change(path=path, before=None, after=b"\0\1")]
    (need,) = context.needs
    assert (need.tool, need.action, need.argument, need.paths) == (
        "download",
        "download",
        f"{site.url}/a.bin",
        (str(path),),
    )


async def test_a_download_replaces_only_a_file_that_was_read(
    site: Site, context: OpenToolContext, download: DownloadTool
) -> None:
    """A3."""
    site.replies["/"] = page("new")
    path = context.directory / "f"
    path.write_text("old")
    with pytest.raises(ToolError, match="has not been read"):
        await context.use(download, url=site.url, path="f")
    assert site.hits == []
    await context.note_read(path, b"old")
    await context.use(download, url=site.url, path="f")
    assert context.changes == [Change(path=path, before=b"old", after=b"new")]


async def test_a_download_outside_the_workspace_names_where_it_leads(
    site: Site, tmp_path: Path, download: DownloadTool
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path)
    context = OpenToolContext(tmp_path / "work", refuse=lambda need: need.paths != ())
    with pytest.raises(ToolError, match="Not allowed"):
        await context.use(download, url=site.url, path="link/x")
    assert context.needs[0].paths == (str(tmp_path / "x"),)
    assert site.hits == []


async def test_a_download_that_fails_or_is_too_large_writes_nothing(
    site: Site, context: OpenToolContext, download: DownloadTool
) -> None:
    site.replies["/large"] = page(b"x" * (MAX_FILE + 1))
    site.replies["/cut"] = page("half").replace(b"length: 4", b"length: 8")
    for name, said in (("large", "larger than 20 MB"), ("none", "answered 404"), ("cut", "could not be fetched")):
        with pytest.raises(ToolError, match=said):
            await context.use(download, url=f"{site.url}/{name}", path="f")
    assert list(context.directory.iterdir()) == []
    assert context.changes == []
