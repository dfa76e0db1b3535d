"""What all generated pages are made of: tables, lines, and the sentences that stand under the fields of a class."""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Sequence

GENERATED = "<!-- Made by docs/generate.py from the code: edit the code, then run it again. -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table without the columns that have nothing to say."""
    rows = list(rows)
    used = [place for place in range(len(head)) if any(row[place] for row in rows)]
    lines = [[line[place] for place in used] for line in [head, ["---"] * len(head), *rows]]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def page(*blocks: str) -> str:
    return "\n\n".join([GENERATED, *blocks]) + "\n"


def sentences(shape: type) -> dict[str, str]:
    """The string under each field of a class: Python keeps it in the source only."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(shape))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for before, after in zip(tree.body, tree.body[1:], strict=False):
        match before, after:
            case (
                (ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)])),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = one_line(text)
    return found
