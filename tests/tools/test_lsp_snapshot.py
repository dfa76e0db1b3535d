"""What changed on disk since a server was last told."""

import os
from pathlib import Path

from longboat.tools.lsp.client.snapshot import Kind, Snapshot


def look_at(root: Path) -> Snapshot:
    return Snapshot(root, frozenset((".py",)), ("pyproject.toml",))


def test_files_that_come_change_and_go_are_told(tmp_path: Path) -> None:
    for name in ("kept.py", "changed.py", "gone.py", "notes.txt"):
        (tmp_path / name).write_text("1\n")
    snapshot = look_at(tmp_path)
    assert set(snapshot.refresh()) == {tmp_path / name for name in ("kept.py", "changed.py", "gone.py")}
    (tmp_path / "changed.py").write_text("22\n")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "notes.txt").write_text("22\n")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/new.py").touch()
    assert snapshot.refresh() == {
        tmp_path / "changed.py": Kind.CHANGED,
        tmp_path / "gone.py": Kind.DELETED,
        tmp_path / "pyproject.toml": Kind.CREATED,
        tmp_path / "sub/new.py": Kind.CREATED,
    }
    assert snapshot.refresh() == {}


def test_what_git_ignores_is_looked_at_only_if_asked_for(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "build").mkdir()
    generated = tmp_path / "build/generated.py"
    generated.touch()
    snapshot = look_at(tmp_path)
    assert snapshot.refresh() == {}
    assert snapshot.refresh([generated]) == {generated: Kind.CREATED}
    assert snapshot.refresh() == {}, "it is still there"
    generated.unlink()
    assert snapshot.refresh([generated]) == {}


def test_those_that_changed_last_come_first(tmp_path: Path) -> None:
    for age, name in enumerate(("new.py", "older.py", "oldest.py")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    snapshot = look_at(tmp_path)
    snapshot.refresh()
    assert [path.name for path in snapshot.newest()] == ["new.py", "older.py", "oldest.py"]
