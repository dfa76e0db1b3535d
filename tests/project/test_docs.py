"""The generated pages are what the code says now, and the drawn error tree is the real one."""

import re
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import click
import pytest

from cases import for_each
from longboat import errors
from longboat.cli.main import cli
from longboat.core.state import TRANSITIONS
from longboat.errors import LongboatError
from longboat.server.errors import STATUS
from longboat.wire.events import EVENTS, UNLOGGED
from longboat.wire.models import Delivery, Outcome, RunState

DOCS = Path(__file__).parents[2] / "docs"


def load() -> ModuleType:
    sys.path.append(str(DOCS))  # its neighbours
    spec = spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load()


@pytest.mark.parametrize("name", generate.PAGES)
def test_the_committed_page_is_fresh(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == generate.PAGES[name](), f"docs/{name} is stale: run python docs/generate.py"


def test_check_is_quiet_on_fresh_pages_and_fails_on_stale_or_missing_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate.main(["--check"], tmp_path) == 1
    assert not list(tmp_path.iterdir()), "--check writes nothing"
    assert generate.main([], tmp_path) == 0
    capsys.readouterr()
    assert generate.main(["--check"], tmp_path) == 0
    assert capsys.readouterr() == ("", "")
    page = tmp_path / "states.md"
    page.write_text(page.read_text(encoding="utf-8") + "by hand\n", encoding="utf-8")
    assert generate.main(["--check"], tmp_path) == 1
    assert "states.md is stale: run python docs/generate.py" in capsys.readouterr().err
    assert generate.main(["--wrong"], tmp_path) == 2


def test_the_diagram_has_an_arrow_for_every_cell_of_the_table_and_no_other() -> None:
    arrows = re.findall(r"^    (\w+) --> (\w+): (.+)$", generate.diagram(), flags=re.MULTILINE)
    drawn = {(state, target, label) for state, target, labels in arrows for label in labels.split(" / ")}
    assert drawn == {
        (state.value, target.value, happening.value)
        for state, cells in TRANSITIONS.items()
        for happening, target in cells.items()
    }


def test_the_protocol_page_names_every_event_and_every_error_code() -> None:
    page = generate.protocol()
    codes = [error.code for error in every_error() if error is not LongboatError]
    assert not [name for name in [*EVENTS, *UNLOGGED, *codes] if f"| `{name}` |" not in page]


@pytest.mark.parametrize("name", ["protocol.md", "states.md", "glossary.md"])
def test_every_link_inside_a_page_has_its_heading(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    headings = {title.lower().replace(" ", "-") for title in re.findall(r"^#+ (.+)$", page, flags=re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= headings


def anchors(page: Path) -> set[str]:
    """Of the headings, as the site makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    plain = [
        re.sub(r"[^\w\s-]", "", title).strip().lower() for title in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    ]
    return {re.sub(r"[-\s]+", "-", title) for title in plain}


@for_each("page", sorted(DOCS.rglob("*.md")))
def test_every_link_to_a_heading_of_a_page_has_it(page: Path) -> None:
    links = re.findall(r"\]\(([\w./-]+\.md)?#([^)]+)\)", page.read_text(encoding="utf-8"))
    assert [(to, name) for to, name in links if name not in anchors(page.parent / to if to else page)] == []


def every_command(group: click.Group = cli, path: str = "longboat") -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None, name
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{path} {name}")


def test_f1_the_page_of_the_commands_has_every_command_and_option() -> None:
    page = generate.commands()
    sections = re.split(r"^#+ (longboat .+)$", page, flags=re.MULTILINE)
    said = dict(zip(sections[1::2], sections[2::2], strict=True))
    for path, command in every_command():
        shown = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        options = [name for option in shown for name in option.opts]
        assert not [name for name in options if name not in said[path]], path


def test_f1_the_help_of_every_command_ends_with_examples() -> None:
    without = [path for path, command in every_command() if not re.search(r"\x08\n+ *\S", command.help or "")]
    assert without == []


def test_every_key_of_the_configuration_has_its_sentence() -> None:
    keys = generate.configuration().partition("<!-- keys -->")[2].partition("<!-- /keys -->")[0]
    rows = re.findall(r"^\| `.+$", keys, flags=re.MULTILINE)
    assert len(rows) > 40
    assert [row for row in rows if not row.rstrip("| ").endswith(".")] == []


def every_error() -> list[type[LongboatError]]:
    return [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, LongboatError)]


def test_the_tree_in_errors_py_draws_every_class_under_its_base_with_its_status() -> None:
    drawn: dict[str, tuple[str, int | None]] = {}
    branch = ["LongboatError"]
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"([│ ]*)[├└]── (\w+)(?:.* (\d{3}))?", line):
            depth = len(found[1]) // 4 + 1
            branch[depth:] = [found[2]]
            drawn[found[2]] = (branch[depth - 1], int(found[3]) if found[3] else None)
    assert drawn == {
        error.__name__: (error.__bases__[0].__name__, STATUS.get(error))
        for error in every_error()
        if error is not LongboatError
    }


def test_every_code_is_used_once() -> None:
    codes = [error.code for error in every_error()]
    assert len(codes) == len(set(codes))


def test_the_glossary_has_each_word_once_and_all_that_the_wire_says_of_runs() -> None:
    page = (DOCS / "glossary.md").read_text(encoding="utf-8")
    words = [word for word in re.findall(r"^\| ([\w ]+) \|", page, flags=re.MULTILINE) if word != "word"]
    assert len(words) == len(set(words))
    assert {"prompt", "run", "seq", "cancel mark", "terminal event"} <= set(words)
    spoken = [*RunState, *Outcome, *Delivery]
    assert not [word for word in spoken if not re.search(rf"\b{word}\b", page)]


def test_the_glossary_has_every_class_that_the_architecture_page_names() -> None:
    glossary, page = ((DOCS / name).read_text(encoding="utf-8") for name in ("glossary.md", "architecture.md"))
    words = set(re.findall(r"^\| ([\w -]+) \|", glossary, flags=re.MULTILINE))
    rooms = [DOCS.parent / "src" / "longboat" / name for name in ("runtime", "server")]
    files = [file.read_text(encoding="utf-8") for room in rooms for file in room.rglob("*.py")]
    classes = {name for text in files for name in re.findall(r"^class (\w+)", text, flags=re.MULTILINE)}
    named = classes & set(re.findall(r"\b[A-Z]\w+", page))
    assert len(named) > 20

    def is_defined(name: str) -> bool:
        spelled = re.sub(r"(?<!^)([A-Z])", r" \1", name).lower()
        last = spelled.split()[-1]
        return (
            bool(words & {spelled, spelled.removesuffix("s"), last, last.removesuffix("s")}) or f"`{name}`" in glossary
        )

    assert sorted(name for name in named if not is_defined(name)) == []


def test_every_rule_that_a_test_or_a_docstring_cites_is_on_the_page_of_rules() -> None:
    known = set(re.findall(r"^\| ([A-Z]\d+) \|", (DOCS / "rules.md").read_text(encoding="utf-8"), flags=re.MULTILINE))
    letters = "".join({rule[0] for rule in known})
    cited = set[str]()
    for folder in ("src", "tests"):
        for file in (DOCS.parent / folder).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            for named in re.findall(r"def test_(\w+)", text):
                cited |= {
                    word.upper() for word in named.split("_") if re.fullmatch(rf"[{letters.lower()}]\d{{1,2}}", word)
                }
            cited |= set(
                re.findall(rf"\b([{letters}]\d{{1,2}})(?=[,:.) ]|; )", "\n".join(re.findall(r'"""(.+?)"""', text)))
            )
    assert len(cited) > 50
    assert sorted(cited - known) == []
