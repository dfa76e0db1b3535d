"""No table of tool names: what is to be known of a tool, the tool says itself (`ToolTraits`)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import longboat
from longboat.tools.mcp.resource import ResourceTool
from longboat.tools.registry import built_in_traits

SOURCE = Path(longboat.__file__).parent
TOOLS = frozenset({*built_in_traits(), ResourceTool.spec.name})
PROGRAMS = frozenset({"bash", "grep", "ls"})
"""Tools that are named like a program: what knows programs may name these."""
OTHER_NAMES = {
    "permissions/shell": PROGRAMS,
    "tools/lsp/client/initialize.py": frozenset({"definition", "diagnostics", "references", "rename"}),
}
"""Where some of these words are not the names of tools: programs, and the capabilities of a language server."""
_JS_LIST = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}")
_JS_TEXT = re.compile(r"""(?<![\w.])['"](\w+)['"]|(?<=[{,])\s*(\w+)(?=:)""")
_JS_COMPARED = re.compile(r"""\b(?:name|tool)\s*[!=]==?\s*['"](\w+)['"]""")


def words_of(path: Path) -> frozenset[str]:
    place = path.relative_to(SOURCE).as_posix()
    return TOOLS.difference(*(names for start, names in OTHER_NAMES.items() if place.startswith(start)))


def in_python(source: str, tools: frozenset[str]) -> Iterator[str]:
    """Collections with two tools or more, long lists in one text, and comparisons with a tool's name."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Set(elts=items) | ast.List(elts=items) | ast.Tuple(elts=items):
                found = tools & {each.value for each in items if isinstance(each, ast.Constant)}
            case ast.Dict(keys=items):
                found = tools & {each.value for each in items if isinstance(each, ast.Constant)}
            case ast.Call(args=[ast.Constant(value=str(text))]) if len(tools & set(text.split())) > 2:
                found = tools & set(text.split())
            case ast.Compare(left=left, comparators=items):
                found = tools & {each.value for each in (left, *items) if isinstance(each, ast.Constant)}
                if found:
                    yield f"line {node.lineno}: compared with {', '.join(sorted(found))}"
                continue
            case ast.MatchValue(value=ast.Constant(value=str(text))) if text in tools:
                yield f"line {node.lineno}: compared with {text}"
                continue
            case _:
                continue
        if len(found) > 1:
            yield f"line {node.lineno}: {', '.join(sorted(found))}"


def in_javascript(source: str, tools: frozenset[str]) -> Iterator[str]:
    for listed in _JS_LIST.findall(source):
        found = tools & {name for names in _JS_TEXT.findall(listed) for name in names}
        if len(found) > 1:
            yield ", ".join(sorted(found))
    yield from (f"compared with {name}" for name in _JS_COMPARED.findall(source) if name in tools)


def test_no_table_of_tool_names_stands_in_the_source() -> None:
    found = {
        str(path.relative_to(SOURCE)): tables
        for path in sorted(SOURCE.rglob("*.py"))
        if (tables := list(in_python(path.read_text(), words_of(path))))
    }
    assert found == {}


def test_no_table_of_tool_names_stands_in_the_page() -> None:
    found = {
        path.name: tables
        for path in sorted((SOURCE / "web").rglob("*.js"))
        if (tables := list(in_javascript(path.read_text(), TOOLS)))
    }
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        'QUIET = frozenset({"view", "ls"})',
        'WORDS = {"view": "Read a file.", "bash": "Run."}',
        'LOOKING = names("""agent glob grep ls""")',
        'if call.name == "bash": pass',
        'if "bash" not in tools: pass',
        'match name:\n  case "edit":\n    pass',
    ],
)
def test_a_table_in_python_would_be_found(source: str) -> None:
    assert list(in_python(source, TOOLS))


@pytest.mark.parametrize(
    "source",
    [
        "const EDITS = new Set(['edit', 'write']);",
        "const WORDS = { view: 1, ls: 2 };",
        "if (part.name === 'agent') {}",
    ],
)
def test_a_table_in_javascript_would_be_found(source: str) -> None:
    assert list(in_javascript(source, TOOLS))
