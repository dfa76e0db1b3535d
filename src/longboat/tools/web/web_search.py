"""`web_search`: available if a search provider is configured.

The user chose the provider, so the address restrictions for web pages do not apply: it may be on this machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, ToolError, parse
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.tools.services import ToolServices
from longboat.wire.tools import SubAgents, ToolTraits

TIMEOUT_S = 20.0
_EXCERPT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProvider:
    """`endpoint` is the URL of the search API: `https://searx.example/search`, or Brave's
    `https://api.search.brave.com/res/v1/web/search`. The key is sent to Brave as its token, to others as a bearer."""

    kind: Literal["searxng", "brave"]
    endpoint: str
    key: str = ""


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(min_length=1, max_length=400, description="What to search for.")]
    count: Annotated[int, Meta(ge=1, le=20, description="Number of results.")] = 10


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    title: str = ""
    content: str | None = None
    description: str | None = None


class _Results(msgspec.Struct, frozen=True, kw_only=True):
    results: list[_Found] = []


class _Answer(_Results, frozen=True, kw_only=True):
    """SearXNG gives `results`, Brave `web.results`."""

    web: _Results | None = None


class WebSearchTool:
    spec = spec_of("web_search", Input, ToolTraits(heading=("query",), sub_agents=SubAgents.ALL, side_by_side=True))

    def __init__(self, provider: SearchProvider) -> None:
        self._provider = provider

    @classmethod
    def build(cls, services: ToolServices) -> Self | None:
        return None if services.search is None else cls(services.search)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        asked = parse("web_search", call.arguments, Input)
        title = f"Search the web for {asked.query}"
        await context.permit(Need(tool="web_search", action="search", argument=asked.query, title=title))
        answer = await self._ask(asked)
        found = (answer.web or answer).results[: asked.count]
        lines = [_entry(number, result) for number, result in enumerate(found, 1)]
        return ToolResult(content="\n\n".join(lines) or "Nothing was found. Try other words.")

    async def _ask(self, asked: Input) -> _Answer:
        import httpx2

        parameters, headers = self._request(asked)
        try:
            async with httpx2.AsyncClient(timeout=TIMEOUT_S) as client:
                response = await client.get(self._provider.endpoint, params=parameters, headers=headers)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise ToolError(f"The search provider did not answer: {reason}. Tell the user, or use fetch.") from None
        if response.status_code != 200:
            raise ToolError(f"The search provider answered {response.status_code}; its settings may be wrong.")
        try:
            return msgspec.json.decode(response.content, type=_Answer)
        except msgspec.MsgspecError as error:
            hint = " A SearXNG server must have the JSON format enabled." if self._provider.kind == "searxng" else ""
            raise ToolError(f"The search provider's answer cannot be read: {error}.{hint}") from None

    def _request(self, asked: Input) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        key = self._provider.key
        match self._provider.kind:
            case "brave":
                return {"q": asked.query, "count": asked.count}, {"X-Subscription-Token": key}
            case "searxng":
                return {"q": asked.query, "format": "json"}, {"Authorization": f"Bearer {key}"} if key else {}


def _entry(number: int, result: _Found) -> str:
    excerpt = " ".join((result.content or result.description or "").split())[:_EXCERPT]
    return f"{number}. {result.title or result.url}\n   {result.url}\n   {excerpt}".rstrip()
