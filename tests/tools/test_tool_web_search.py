"""web_search (A1): SearXNG and Brave, as their servers answer."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from website import Site, open_site, page

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.web.web_search import SearchProvider, WebSearchTool


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site("127.0.0.1") as site:
        yield site


@pytest.fixture
def context(tmp_path: Path) -> OpenToolContext:
    return OpenToolContext(tmp_path)


async def test_searxng_is_asked_for_json(site: Site, context: OpenToolContext) -> None:
    found = [
        {"url": f"https://e.org/{n}", "title": f"T{n}", "content": f"about\n {n}", "engine": "x"} for n in (1, 2, 3)
    ]
    site.replies["/search"] = page(json.dumps({"query": "q", "results": found}), kind="application/json")
    tool = WebSearchTool(SearchProvider(kind="searxng", endpoint=f"{site.url}/search"))
    result = await context.use(tool, query="long boats & more", count=2)
    assert result.content == "1. T1\n   https://e.org/1\n   about 1\n\n2. T2\n   https://e.org/2\n   about 2"
    assert [hit.target for hit in site.hits] == ["/search?q=long+boats+%26+more&format=json"]
    assert "authorization" not in site.hits[0].headers
    (need,) = context.needs
    assert (need.tool, need.action, need.argument) == ("web_search", "search", "long boats & more")


async def test_brave_is_asked_with_its_token(site: Site, context: OpenToolContext) -> None:
    found = [{"url": "https://e.org/", "title": "T", "description": "about"}]
    site.replies["/web"] = page(json.dumps({"type": "search", "web": {"results": found}}), kind="application/json")
    tool = WebSearchTool(SearchProvider(kind="brave", endpoint=f"{site.url}/web", key="k"))
    result = await context.use(tool, query="boats")
    assert result.content == "1. T\n   https://e.org/\n   about"
    assert site.hits[0].target == "/web?q=boats&count=10"
    assert site.hits[0].headers["x-subscription-token"] == "k"


async def test_nothing_found_is_said(site: Site, context: OpenToolContext) -> None:
    site.replies["/"] = page('{"results": []}')
    tool = WebSearchTool(SearchProvider(kind="searxng", endpoint=f"{site.url}/"))
    assert "Nothing was found" in (await context.use(tool, query="boats")).content


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (page("no", status="403 Forbidden"), "answered 403"),
        (page("<html>", kind="text/html"), "JSON format enabled"),
        (page("[]"), "cannot be read"),
        (b"nonsense\r\n\r\n", "did not answer"),
    ],
)
async def test_a_provider_that_fails_is_a_clear_error_without_its_key(
    site: Site, context: OpenToolContext, reply: bytes, said: str
) -> None:
    site.replies["/"] = reply
    tool = WebSearchTool(SearchProvider(kind="searxng", endpoint=f"{site.url}/", key="hush"))
    with pytest.raises(ToolError, match=said) as raised:
        await context.use(tool, query="boats")
    assert "hush" not in str(raised.value)


async def test_a_refused_search_asks_nobody(site: Site, tmp_path: Path) -> None:
    context = OpenToolContext(tmp_path, refuse=lambda _: True)
    tool = WebSearchTool(SearchProvider(kind="searxng", endpoint=f"{site.url}/"))
    with pytest.raises(ToolError, match="Not allowed"):
        await context.use(tool, query="boats")
    assert site.hits == []
