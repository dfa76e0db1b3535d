"""The generated pages are what the code says now, and the drawn error tree is the real one."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from longboat import errors
from longboat.core.state import TRANSITIONS
from longboat.errors import LongboatError
from longboat.server.errors import STATUS
from longboat.wire.events import EVENTS, UNLOGGED
from longboat.wire.models import Delivery, Outcome, RunState

DOCS = Path(__file__).parents[2] / "docs"


def load() -> ModuleType:
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
    used = {"workspace", "session", "prompt", "run", "turn", "step", "seq", "cancel mark", "terminal event"}
    assert used <= set(words)
    spoken = [*RunState, *Outcome, *Delivery]
    assert not [word for word in spoken if not re.search(rf"\b{word}\b", page)]
