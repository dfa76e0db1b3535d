"""The page (F3): its files, its headers, who may see it, and what renders text for it."""

import asyncio
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import psutil
import pytest
from server_harness import TOKEN, checked_client, refusal, serve_in

import longboat
from longboat.server import page, render_process
from longboat.wire.requests import RenderItem, RenderKind

WEB = Path(longboat.__file__).parent / "web"
FILES = sorted(str(path.relative_to(WEB)) for path in WEB.rglob("*") if path.is_file())

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data: blob:",
    "connect-src": "'self'",
    "manifest-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "longboat",
}


@pytest.fixture
async def served(tmp_path):
    async with serve_in(tmp_path) as served:
        yield served


def policy_of(answer: Any) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";"))
    return {name: rest for name, _, rest in parts}


# Who may see it


@pytest.mark.parametrize("path", ["/", "/stats", "/nodes"])
async def test_a_browser_without_the_token_is_asked_for_it(served, path):
    async with checked_client(served) as stranger:
        answer = await stranger.get(path)
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"
        assert "'self'" not in policy_of(answer).get("script-src", "")
        assert policy_of(answer)["default-src"] == "'none'"
        # Firefox asks for /favicon.ico where a page names no icon, and tells that the policy forbids it.
        assert policy_of(answer)["img-src"] == "data:"
        assert '<link rel="icon" href="data:image/svg+xml;base64,' in answer.text
        assert '<form method="post" action="/login">' in answer.text
        assert "script" not in answer.text


async def test_only_the_page_itself_asks_and_nothing_of_it_is_shown_to_strangers(served):
    async with checked_client(served) as stranger:
        for name in FILES:
            assert refusal(await stranger.get(f"/assets/{name}")) == (401, "unauthorized")
        assert refusal(await stranger.post("/")) == (401, "unauthorized")
        assert refusal(await stranger.get("/v1/docs")) == (401, "unauthorized")
        assert refusal(await stranger.post("/v1/render", json={"items": []})) == (401, "unauthorized")


async def test_the_form_logs_a_browser_in_and_keeps_the_token_out_of_the_address(served):
    async with checked_client(served) as browser:
        origin = {"origin": str(served.tcp.base_url).rstrip("/")}
        answer = await browser.post("/login", data={"token": f" {TOKEN} "}, headers=origin)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert TOKEN not in str(answer.headers)
        assert (await browser.get("/")).status_code == 200
        assert (await browser.get("/assets/js/app.js")).status_code == 200


async def test_a_wrong_token_is_asked_for_again_with_the_reason(served):
    async with checked_client(served) as browser:
        for body in ({"token": "wrong"}, {"token": ""}, {}, {"token": '"><script>'}):
            answer = await browser.post("/login", data=body)
            assert answer.status_code == 401
            assert 'role="alert"' in answer.text
            assert "set-cookie" not in answer.headers
            assert "<script" not in answer.text


async def test_what_is_no_login_form_is_refused(served):
    async with checked_client(served) as browser:
        assert (await browser.post("/login", content=b"x" * 5000)).status_code == 413
        assert (await browser.post("/login", content=b"token=\xff\xfe")).status_code == 400
        many = "&".join(f"a{number}=1" for number in range(20))
        assert (await browser.post("/login", content=many.encode())).status_code == 400
        foreign = await browser.post("/login", data={"token": TOKEN}, headers={"origin": "http://evil.example.com"})
        assert refusal(foreign) == (403, "foreign_origin")


async def test_a_form_sends_its_origin_only_if_the_page_says_so(served):
    """With no-referrer browsers send `Origin: null`, which is refused: nobody could log in."""
    async with checked_client(served) as browser:
        assert (await browser.get("/")).headers["referrer-policy"] == "same-origin"
        null = await browser.post("/login", data={"token": TOKEN}, headers={"origin": "null"})
        assert refusal(null) == (403, "foreign_origin")


# Its files


async def test_every_file_carries_the_headers_that_keep_it_apart(served):
    expected = {
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    for path in ("/", "/stats", "/nodes", "/assets/js/app.js", "/assets/css/base.css", "/assets/icon.svg"):
        answer = await served.tcp.get(path)
        assert answer.status_code == 200
        assert policy_of(answer) == POLICY
        assert {name: answer.headers[name] for name in expected} == expected


async def test_every_file_is_served_with_its_type_and_again_only_if_it_changed(served):
    kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    kinds |= {"png": "image/png", "webmanifest": "application/manifest+json"}
    for name in FILES:
        answer = await served.unix.get(f"/assets/{name}")
        assert answer.content == (WEB / name).read_bytes()
        assert answer.headers["content-type"].partition(";")[0] == kinds[name.rpartition(".")[2]]
        assert answer.headers["cache-control"] == "no-cache"
        etag = answer.headers["etag"]
        for held in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            again = await served.unix.get(f"/assets/{name}", headers={"if-none-match": held})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert (await served.unix.get(f"/assets/{name}", headers={"if-none-match": '"other"'})).status_code == 200


SPELLINGS = [
    "../server/page.py",
    "../../../../etc/passwd",
    "js/../../server/page.py",
    "..%2fserver%2fpage.py",
    "%2e%2e/%2e%2e/server/page.py",
    "..%5cserver%5cpage.py",
    "js/../js/app.js",
    "./js/app.js",
    "/etc/passwd",
    "//etc/passwd",
    "js/app.js%00.css",
    "js",
    "js/",
    "",
    "JS/APP.JS",
    "__init__.py",
    "js/app.js/",
    "%252e%252e/server/page.py",
    "js/app.js?x/../../..",
]


async def test_no_spelling_of_a_path_leads_to_another_file(served):
    own = {found.body for name in FILES if (found := page.asset(name))}
    for path in SPELLINGS:
        raw = await served.raw(f"GET /assets/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        head, _, body = raw.partition(b"\r\n\r\n")
        assert head.split(b" ")[1] in (b"404", b"400") or body in own, raw[:300]


class _Markup(HTMLParser):
    """What a page would run, load or style by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.inline: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        if tag == "style" or (tag == "script" and "src" not in given):
            self.inline.append(tag)
        if tag in ("script", "link", "img"):
            self.loaded.append(given.get("src") or given.get("href") or "")


@pytest.mark.parametrize("name", ["index.html", "stats.html", "nodes.html"])
def test_a_page_has_nothing_inline_and_loads_only_files_that_are_there(name):
    markup = _Markup((WEB / name).read_text())
    assert markup.inline == []
    assert markup.loaded
    assert all(page.asset(path.removeprefix("/assets/")) for path in markup.loaded), markup.loaded


def test_every_module_that_is_imported_is_there_and_is_fetched_early():
    modules = {path.name: path.read_text() for path in (WEB / "js").glob("*.js")}
    imported = {name for text in modules.values() for name in re.findall(r"^.*\bfrom '\./([\w.]+)';$", text, re.M)}
    assert imported | {"app.js", "boot.js", "stats.js", "nodes.js", "pushworker.js"} == modules.keys()
    early = set(re.findall(r'modulepreload" href="/assets/js/([\w.]+)"', (WEB / "index.html").read_text()))
    assert early == imported


def test_markup_is_made_from_text_in_one_module_alone_and_no_text_becomes_code():
    words = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|parseFromString"
        r"|setHTMLUnsafe|\beval\(|new Function|setAttribute\('style'|srcdoc|javascript:"
    )
    found = {path.name for path in (WEB / "js").glob("*.js") if words.search(path.read_text())}
    assert found == {"trusted.js"}


def test_nothing_comes_from_elsewhere():
    for path in WEB.rglob("*.*"):
        if path.suffix == ".png":
            continue
        addresses = set(
            re.findall(r"(?:https?:)?//[\w.-]+\.\w+", re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.M))
        )
        assert addresses <= {"http://www.w3.org"}, path


# Rendering


async def test_text_is_rendered_item_by_item(served):
    items = [
        {"kind": "markdown", "text": "**hi** <b>x</b>"},
        {"kind": "code", "text": "x = 1", "language": "python"},
        {"kind": "diff", "text": "@@ -1 +1 @@\n-a\n+b\n", "path": "x.py"},
    ]
    for _ in range(2):  # the second time the process is there already
        answer = await served.unix.post("/v1/render", json={"items": items})
        assert answer.status_code == 200
        made = [item["html"] for item in answer.json()["items"]]
        assert made[0] == "<p><strong>hi</strong> &lt;b&gt;x&lt;/b&gt;</p>\n"
        assert 'class="hl-mi"' in made[1]
        assert '<tr class="del">' in made[2]


BAD = [
    ({"items": [{"kind": "html", "text": "x"}]}, (400, "bad_input")),
    ({"items": [{"kind": "code"}]}, (400, "bad_input")),
    ({"items": [{"kind": "code", "text": "x", "style": "red"}]}, (400, "bad_input")),
    ({"items": [{"kind": "code", "text": "x"}] * 65}, (400, "bad_input")),
    ({"items": [{"kind": "code", "text": "x" * 400_001}]}, (400, "bad_input")),
    ({"items": [{"kind": "code", "text": "x", "path": "x" * 4_097}]}, (400, "bad_input")),
    ({"items": [{"kind": "code", "text": "x" * 400_000}] * 3}, (413, "body_too_large")),
    ({}, (400, "bad_input")),
]


async def test_what_is_asked_for_is_bounded(served):
    """The harness allows bodies of 1 MB."""
    for body, answer in BAD:
        assert refusal(await served.unix.post("/v1/render", json=body)) == answer


async def test_all_items_together_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("longboat.server.routes.page.MAX_TEXT", 10)
    async with serve_in(tmp_path) as served:
        body = {"items": [{"kind": "code", "text": "x" * 6}] * 2}
        assert refusal(await served.unix.post("/v1/render", json=body)) == (413, "body_too_large")


def markdown(text: str) -> RenderItem:
    return RenderItem(kind=RenderKind.MARKDOWN, text=text)


async def test_headings_of_a_text_stand_below_those_of_the_page():
    """The page itself has h1 and h2: whoever walks through it by headings finds them first."""
    async with render_process.open_renderer() as made:
        (html,) = await made.render([markdown("# a\n\n## b\n\n#### d\n\n###### f\n\ng\n===\n")])
    assert re.findall(r"<(/?h\d)>", html) == [
        *("h3", "/h3", "h4", "/h4", "h6", "/h6", "h6", "/h6", "h3", "/h3"),
    ]


async def test_what_takes_too_long_is_shown_as_it_is_and_the_next_is_rendered(monkeypatch):
    """A parser that never ends is ended: it runs in a process of its own."""
    async with render_process.open_renderer() as made:
        assert await made.render([markdown("*a*")]) == ["<p><em>a</em></p>\n"]
        monkeypatch.setattr(render_process, "ITEM_S", 0.0)
        assert await made.render([markdown("*<b>*")]) == ['<pre class="plain">*&lt;b&gt;*</pre>']
        monkeypatch.undo()
        assert await made.render([markdown("*a*")]) == ["<p><em>a</em></p>\n"]


async def test_a_process_that_died_or_was_let_go_is_replaced():
    async with render_process.open_renderer() as made:
        await made.render([markdown("a")])
        process = made._process
        assert process is not None
        process.kill()
        await process.wait()
        assert await made.render([markdown("*a*")]) == ["<p><em>a</em></p>\n"]
        made._let_go()
        assert await made.render([markdown("*b*")]) == ["<p><em>b</em></p>\n"]


async def test_a_request_that_is_given_up_leaves_no_answer_to_the_next_one():
    async with render_process.open_renderer() as made:
        await made.render([markdown("a")])
        asking = asyncio.create_task(made.render([markdown("*first* " * 20_000)]))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert await made.render([markdown("*second*")]) == ["<p><em>second</em></p>\n"]


async def test_nothing_is_started_before_somebody_looks_and_all_ends_with_the_server(tmp_path):
    async with serve_in(tmp_path) as served:
        assert renderers() == []
        await served.unix.post("/v1/render", json={"items": [{"kind": "code", "text": "x"}]})
        assert len(renderers()) == 1
    assert renderers() == []


def renderers() -> list[psutil.Process]:
    children = psutil.Process().children()
    return [child for child in children if "longboat.server.rendering" in " ".join(child.cmdline())]
