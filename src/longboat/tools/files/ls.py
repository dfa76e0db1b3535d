"""`ls`: a directory as a tree, upper levels first, as much as fits."""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, parse
from longboat.tools.files.paths import Target, directory_of, printable, resolve
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.tools.search.tree import Tree
from longboat.wire.tools import Draw, Effect, Lists, SubAgents, ToolTraits

MAX_ENTRIES = 500
MAX_LOOKED_AT = 10_000
"""Entries of one directory."""


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The directory, absolute or relative to the workspace.")] = "."
    depth: Annotated[int, Meta(ge=1, le=20, description="Maximum number of levels.")] = 20
    all: Annotated[bool, Meta(description="Include hidden and git-ignored files.")] = False


class LsTool:
    spec = spec_of(
        "ls",
        Input,
        ToolTraits(
            effect=Effect.READS,
            path="path",
            heading=("path",),
            lists=Lists.NAMES,
            sub_agents=SubAgents.ALL,
            side_by_side=True,
            quick=True,
            draw=Draw.QUIET,
        ),
        brief="List the files here.",
        brief_fields=("path",),
        cues=r"list|ls|what files|which files|director(?:y|ies)|folders?",
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("ls", call.arguments, Input)
        target = await asyncio.to_thread(resolve, context.directory, wanted.path)
        title = f"List {target.shown}"
        await context.permit(
            Need(tool="ls", action="read", argument=target.shown, paths=(str(target.path),), title=title)
        )
        return ToolResult(content=await asyncio.to_thread(_listing, target, wanted, context.hidden()))


@dataclass(slots=True)
class _Node:
    label: str
    children: "list[_Node]" = field(default_factory=list)


def _listing(target: Target, wanted: Input, hidden: Callable[[str], bool]) -> str:
    tree = Tree(root=str(directory_of(target)), hidden=wanted.all, ignored=wanted.all)
    root = _Node(f"{target.shown.rstrip('/')}/")
    complete = _grow(root, tree, wanted.depth, hidden)
    if not root.children:
        unseen = "" if wanted.all else ", apart from hidden and ignored files (set all to see them)"
        return f"{root.label} is empty{unseen}."
    lines = _lines(root, 0)
    if not complete:
        lines += ["", f"(Only {MAX_ENTRIES} entries are shown. List a directory marked with … to see its content.)"]
    return "\n".join(lines)


def _grow(root: _Node, tree: Tree, depth: int, hidden: Callable[[str], bool]) -> bool:
    """Hang on what is in the tree, level by level. False if not all of it found room."""
    waiting = deque([(root, tree.root, tree.rules(), 1)])
    room, complete = MAX_ENTRIES, True
    while waiting:
        node, directory, rules, level = waiting.popleft()
        entries = tree.entries(directory, rules, most=MAX_LOOKED_AT) if room else []
        entries = [entry for entry in entries if not hidden(entry.path)]
        if not room or len(entries) > room:
            node.label += f" … ({len(entries):,} entries)" if entries else " …"
            complete = False
        for entry in entries[:room]:
            child = _Node(_label(entry))
            node.children.append(child)
            if entry.is_dir(follow_symlinks=False) and level < depth:
                below = rules.below(entry.path) if rules is not None else None
                waiting.append((child, entry.path, below, level + 1))
        room = max(room - len(entries), 0)
    return complete


def _label(entry: os.DirEntry[str]) -> str:
    name = printable(entry.name)
    if entry.is_symlink():
        with suppress(OSError):
            return f"{name} -> {printable(os.readlink(entry.path))}"
    return f"{name}/" if entry.is_dir(follow_symlinks=False) else name


def _lines(node: _Node, level: int) -> list[str]:
    lines = [f"{'  ' * level}{node.label}"]
    for child in node.children:
        lines += _lines(child, level + 1)
    return lines
