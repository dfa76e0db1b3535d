"""The table of rooms in `architecture.md`: what each package holds, in its own words, and what it imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

from markup import table

import longboat

SOURCE = Path(longboat.__file__).parent
ARCHITECTURE = Path(__file__).with_name("architecture.md")
BEGIN, END = "<!-- rooms -->\n", "<!-- /rooms -->"
COMMON = ("errors", "regular_files")
"""Modules that any room may import: not worth a word in each row."""


def architecture() -> str:
    """The page that is there, with its table of rooms generated again."""
    before, begin, rest = ARCHITECTURE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{rooms()}\n\n{end}{after}"


def rooms() -> str:
    rows = [[f"`{name}`", purpose_of(SOURCE / name), imports_of(SOURCE / name)] for name in _rooms()]
    return table(["room", "holds", "imports"], rows)


def _rooms() -> Iterator[str]:
    """Packages and their packages; of folders without Python, `web/`."""
    for folder in sorted(path for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"):
        yield f"{folder.name}/"
        for inner in sorted(folder.rglob("__init__.py")):
            if inner.parent != folder:
                yield f"{inner.parent.relative_to(SOURCE)}/"


def purpose_of(folder: Path) -> str:
    if not (folder / "__init__.py").exists():
        return "The browser page: JavaScript modules, styles and pictures, served as they are."
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return " ".join(said.split("\n\n")[0].split())


def imports_of(folder: Path) -> str:
    """The other rooms that its modules name. Of a room within a room: nothing, its own room's row has it."""
    if folder.parent != SOURCE:
        return ""
    found = {name for file in folder.rglob("*.py") for name in _imported(file)} - {folder.name, *COMMON}
    return ", ".join(sorted(name for name in found if (SOURCE / name).is_dir()))


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module=str(module)) if module.startswith("longboat."):
                yield module.split(".")[1]
            case ast.ImportFrom(module="longboat"):
                yield from (each.name for each in node.names)
            case ast.Import():
                yield from (each.name.split(".")[1] for each in node.names if each.name.startswith("longboat."))
