"""The names of MCP tools for models: `mcp__SERVER__TOOL`, valid for every provider. Pure."""

import hashlib
import re
from collections.abc import Iterable

LIMIT = 64
"""What the strictest provider takes."""
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


def tool_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Each tool's full name. Tools whose own name fits as it is have the first claim to it, so that a tool with an odd
    name that appears later takes no other's."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    for tool in sorted(tools, key=lambda tool: bool(_UNFIT.search(tool))):
        name = f"mcp__{server}__{_UNFIT.sub('_', tool)}"
        if name in taken or len(name) > LIMIT or not tool:
            digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            name = f"{name[: LIMIT - 9]}_{digest}"
        given[tool] = name
        taken.add(name)
    return given
