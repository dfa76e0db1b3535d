"""What was read from the disk is kept while nothing that was looked at has changed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from old_files import LaterClock, changed

from longboat.context import stamps
from longboat.context.git_head import Head, read_head
from longboat.context.library import Library
from longboat.context.stamps import Kept, Stamps


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "time", LaterClock)


class Reading:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.kept = Kept(self._read)

    def _read(self, seen: Stamps) -> list[str]:
        self.count += 1
        seen.look_at(self.path)
        seen.look_at(self.path / "a")
        seen.look_at(self.path / "missing")
        return sorted(os.listdir(self.path))


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    (tmp_path / "a").write_text("a")
    return Reading(tmp_path)


@pytest.mark.usefixtures("long_ago")
def test_nothing_is_read_again_while_nothing_has_changed(reading: Reading) -> None:
    assert [reading.kept.get() for _ in range(3)] == [["a"]] * 3
    assert reading.count == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda path: (path / "a").write_text("longer"),
        lambda path: changed(path / "a"),
        lambda path: (path / "a").unlink(),
        lambda path: (path / "missing").mkdir(),
        lambda path: ((path / "b").touch(), changed(path)),
        lambda path: os.replace(path / "a", path / "b"),
    ],
)
@pytest.mark.usefixtures("long_ago")
def test_a_change_of_anything_that_was_looked_at_is_seen(reading: Reading, change: Callable[[Path], object]) -> None:
    reading.kept.get()
    change(reading.path)
    assert reading.kept.get() == sorted(os.listdir(reading.path))
    assert reading.count == 2


def test_what_was_changed_just_now_is_read_again(reading: Reading) -> None:
    """It may change once more without a new stamp."""
    reading.kept.get()
    reading.kept.get()
    assert reading.count == 2


@pytest.mark.usefixtures("long_ago")
def test_the_library_sees_what_changed_since_it_was_loaded(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    library = Library(project, environ={}, user_dir=home)
    empty = library.load()
    assert library.load() is empty
    (project / "AGENTS.md").write_text("Be brief.")
    changed(project)
    (told,) = library.load().instructions
    assert told.text == "Be brief."
    skill = home / ".agents/skills/pdf/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: forms\n---\n")
    assert [each.description for each in library.load().skills] == ["forms"]
    skill.write_text("---\ndescription: all forms\n---\n")
    assert [each.description for each in library.load().skills] == ["all forms"]
    (project / ".git").mkdir()
    command = project / ".agents/commands/git/tidy.md"
    command.parent.mkdir(parents=True)
    command.write_text("Tidy up.")
    changed(project)
    assert [each.name for each in library.load().commands] == ["git:tidy"]


@pytest.mark.usefixtures("long_ago")
def test_another_branch_is_seen(tmp_path: Path) -> None:
    head = Kept(lambda seen: read_head(tmp_path, seen))
    assert head.get() is None
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    assert head.get() == Head(name="main", is_branch=True)
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/another\n")
    assert head.get() == Head(name="another", is_branch=True)
