"""How high the dialog of an edit is: as what it shows, up to the screen, its answers always on it (F2, A2)."""

import pytest
from tui_stage import Stage, a_permission, an_edit, picture

from longboat.tui.dialogs.permission import PermissionDialog

SMALL = "--- a/boat.py\n+++ b/boat.py\n@@ -1,2 +1,2 @@\n-crew = 5\n+crew = 6\n keel = True\n"


@pytest.mark.parametrize("size", [(60, 30), (80, 30), (120, 40), (120, 36)])
async def test_a_small_edit_has_a_small_dialog(size: tuple[int, int]) -> None:
    """As high as what it shows: four rows of the difference, and no empty ones below them."""
    app = Stage()
    async with app.run_test(size=size) as pilot:
        await app.open(pilot, PermissionDialog(a_permission(detail=SMALL, argument="boat.py"), grace_s=0))
        assert app.screen.query_one("#diff").outer_size.height == 4
        box = app.screen.query_one(".box").region
        assert box.height == sum(child.outer_size.height for child in app.screen.query_one(".box").children) + 2
        assert box.height < size[1] - 8
        assert "keel = True" in picture(app)


@pytest.mark.parametrize("size", [(60, 20), (80, 30), (120, 40)])
async def test_a_small_edit_with_much_to_say_has_no_empty_rows(size: tuple[int, int]) -> None:
    rules = tuple(f"edit(src/part{number}.py)" for number in range(30))
    app = Stage()
    async with app.run_test(size=size) as pilot:
        await app.open(pilot, PermissionDialog(a_permission(detail=SMALL, argument="boat.py", grant=rules), grace_s=0))
        box = app.screen.query_one(".box")
        assert box.region.height == sum(child.outer_size.height for child in box.children) + 2
        assert "keel = True" in picture(app)


async def test_a_wide_line_does_not_hide_the_last_one_of_a_small_edit() -> None:
    """The bar to scroll sideways takes a row."""
    app = Stage()
    async with app.run_test(size=(80, 30)) as pilot:
        wide = SMALL.replace("crew = 6", f"crew = {'6' * 200}")
        await app.open(pilot, PermissionDialog(a_permission(detail=wide, argument="boat.py"), grace_s=0))
        assert "keel = True" in picture(app)
        assert app.screen.query_one("#diff").outer_size.height == 5


@pytest.mark.parametrize("size", [(80, 12), (80, 10), (80, 8), (40, 8)])
@pytest.mark.parametrize("detail", [SMALL * 40, "touch x && " * 40 + "rm -rf y"], ids=["edit", "command"])
async def test_on_a_screen_of_a_few_rows_every_answer_can_be_seen(size: tuple[int, int], detail: str) -> None:
    """A split of a terminal: enter must not allow what nobody could see how to deny."""
    app = Stage()
    async with app.run_test(size=size) as pilot:
        await app.open(pilot, PermissionDialog(a_permission(detail=detail, argument="boat.py"), grace_s=0))
        await app.settled(pilot)
        assert "Allow once" in picture(app)
        answers = app.screen.query_one("#answers")
        await pilot.press(*["down"] * (answers.option_count - 1))
        await app.settled(pilot)
        assert "Deny" in picture(app)
        assert app.screen.query_one(".box").region.bottom <= size[1]


@pytest.mark.parametrize("size", [(40, 15), (50, 20), (60, 20), (80, 24), (120, 40)])
async def test_a_big_edit_leaves_its_answers_on_the_screen_in_every_state(size: tuple[int, int]) -> None:
    rows = "".join(f"+a line that is longer than many terminals are wide, number {n}\n" for n in range(200))
    big = f"--- a/boat.py\n+++ b/boat.py\n@@ -0,0 +1,200 @@\n{rows}"
    app = Stage()
    async with app.run_test(size=size) as pilot:
        await app.open(pilot, PermissionDialog(a_permission(detail=big, argument="boat.py"), grace_s=0))
        for keys, last in (((), "#answers"), (("w",), "#answers"), (("d",), "#reason"), (("escape",), "#answers")):
            await pilot.press(*keys)
            await app.settled(pilot)
            assert app.screen.query_one(".box").region.bottom <= size[1]
            assert app.screen.query_one(".keys").region.bottom < size[1]
            assert "1 + a line that" in picture(app)
            answer = app.screen.query_one(last).region
            assert answer.height >= 3
            assert answer.bottom <= app.screen.query_one(".keys").region.y


@pytest.mark.parametrize("size", [(40, 15), (60, 20), (80, 24)])
@pytest.mark.parametrize(("key", "rule"), [("pagedown", "edit(src/boat.py)"), ("w", "edit(src/**)")])
async def test_the_rules_that_an_answer_would_add_can_be_seen(size: tuple[int, int], key: str, rule: str) -> None:
    app = Stage()
    async with app.run_test(size=size) as pilot:
        await app.open(pilot, PermissionDialog(an_edit(), grace_s=0))
        keys = [key] * (8 if key == "pagedown" else 1)
        while rule not in picture(app):
            await pilot.press(keys.pop())
            await app.settled(pilot)
        await pilot.press(*["pageup"] * 12)
        await app.settled(pilot)
        assert "Edit src/boat.py" in picture(app)
