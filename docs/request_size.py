"""The table in `tools.md` of what every request begins with: the system prompt and each tool, and how long they are."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import msgspec
from markup import table

import longboat.tools
from longboat.context.prompt import build_prompt, build_short_prompt
from longboat.core.tool import ToolSpec
from longboat.models.openai_request import encode_request
from longboat.models.protocol import ModelRequest
from longboat.tools.described import tools_for_small_models
from longboat.tools.protocol import Tool
from longboat.tools.registry import find_tools

TOOLS = Path(__file__).with_name("tools.md")
BEGIN, END = "<!-- sizes -->\n", "<!-- /sizes -->"
PER_TOKEN = 4
"""Characters, as everywhere that we estimate."""
ANYWHERE = "\n\nWorkspace: "
"""What follows differs from workspace to workspace."""


def tools() -> str:
    """The page that is there, with its table of sizes made anew."""
    before, begin, rest = TOOLS.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{sizes()}\n\n{end}{after}"


def sizes() -> str:
    built_in = {tool.spec.name: cast(Tool, tool) for tool in find_tools("longboat.tools", _folder())}
    large = {"system prompt": len(build_prompt(Path("/")).partition(ANYWHERE)[0]), **_sizes_of(built_in)}
    small = {
        "system prompt": len(build_short_prompt(Path("/")).partition(ANYWHERE)[0]),
        **_sizes_of(tools_for_small_models(built_in)),
    }
    names = ["system prompt", *sorted(built_in, key=lambda name: -large[name])]
    rows = [
        [name if name == "system prompt" else f"`{name}`", *_cells(large.get(name)), *_cells(small.get(name))]
        for name in names
    ]
    total = ["**total**", *_cells(sum(large.values())), *_cells(sum(small.values()))]
    return table(["", "characters", "tokens, about", "small window", "tokens, about"], [*rows, total])


def _folder() -> Path:
    return Path(next(iter(longboat.tools.__path__)))


def _sizes_of(tools: Mapping[str, Tool]) -> dict[str, int]:
    return {name: _length([tool.spec]) for name, tool in tools.items()}


def _length(specs: Iterable[ToolSpec]) -> int:
    """As the chat API gets it."""
    body = msgspec.json.decode(encode_request(ModelRequest(system="", messages=(), tools=tuple(specs)), model="m"))
    return sum(len(msgspec.json.encode(tool).decode()) for tool in body["tools"])


def _cells(characters: int | None) -> list[str]:
    return ["", ""] if characters is None else [f"{characters:,}", f"{round(characters / PER_TOKEN):,}"]
