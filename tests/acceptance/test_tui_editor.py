"""ctrl+o in a real terminal: it is lent to the editor, and comes back whatever the editor does (F2)."""

import pytest
from cli_home import Home
from tmux import pane

from parts import how, missing

pytestmark = [pytest.mark.acceptance, pytest.mark.skipif(missing("tmux"), reason=how("tmux"))]

READY = "Type a prompt"


@pytest.fixture
def home(own_home: Home) -> Home:
    return own_home


def use(home: Home, name: str, does: str) -> None:
    """An editor of this name, and the one that the app will use."""
    script = home.path / name
    script.write_text(f"#!/bin/sh\n{does}\n")
    script.chmod(0o755)
    home.environ |= {"EDITOR": str(script)}
    home.environ.pop("VISUAL", None)


def test_the_editor_has_the_terminal_and_the_app_has_it_again(home: Home) -> None:
    use(home, "editor", 'echo "in the editor"; read line; printf "%s, %s" "$(cat "$1")" "$line" > "$1"')
    with pane(home, cwd=home.workspace("here")) as shown:
        shown.until(READY)
        shown.type("a thought")
        shown.until("a thought")
        shown.press("C-o")
        shown.until("in the editor", gone="╭")
        assert shown.told("alternate_on") == "0"
        shown.type("and a line")
        shown.press("Enter")
        shown.until("a thought, and a line", "╭", gone="in the editor")
        assert shown.told("alternate_on") == "1"
        shown.press("Enter")
        shown.until("echo: a thought, and a line", "Idle")


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("exit 3", "The editor failed (3)"),
        ('printf "worse" > "$1"; kill -9 $$', "The editor failed (-9)"),
        (None, "Cannot start the editor"),
    ],
)
def test_the_terminal_comes_back_from_an_editor_that_fails(home: Home, does: str | None, told: str) -> None:
    if does is None:
        home.environ |= {"EDITOR": "/nowhere/editor"}
    else:
        use(home, "editor", does)
    with pane(home, cwd=home.workspace("here")) as shown:
        shown.until(READY)
        shown.type("precious")
        shown.until("precious")
        shown.press("C-o")
        shown.until(told, "precious", "╭")
        shown.type(" still")
        shown.press("Enter")
        shown.until("echo: precious still", "Idle")


def test_ctrl_c_in_the_editor_ends_the_editor_and_not_the_app(home: Home) -> None:
    use(home, "editor", 'echo "in the editor"; sleep 600')
    with pane(home, cwd=home.workspace("here")) as shown:
        shown.until(READY)
        shown.type("precious")
        shown.until("precious")
        shown.press("C-o")
        shown.until("in the editor", gone="╭")
        shown.press("C-c")
        shown.until("The editor failed", "precious", "╭")
        shown.type(" still")
        shown.press("Enter")
        shown.until("echo: precious still", "Idle")
