"""“Always”: a rule is added to the project's file, the rest stays, and only what was written is trusted (A2)."""

import hashlib
import json
from pathlib import Path

import pytest

from longboat.config.load import load_config, review
from longboat.config.rules import remember
from longboat.config.trust import Standing, recorded
from longboat.errors import ConfigInvalid


class Project:
    def __init__(self, root: Path) -> None:
        self.directory = root / "project"
        self.directory.mkdir()
        self.file = self.directory / "longboat.json"
        self.home = root / "home"

    def allow(self, *rules: str) -> None:
        remember(self.directory, rules, environ={}, user_dir=self.home)

    def allowed(self) -> tuple[str, ...]:
        return load_config(self.directory, environ={}, user_dir=self.home).permissions.allow


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        (None, ("view",)),
        ("{}", ("view",)),
        ('{\n  // mine\n  "titles": false,\n}\n', ("view",)),
        ('{"titles": false, "permissions": {}}', ("view",)),
        ('{\n  // mine: "permissions": {"allow": [\n  "titles": false\n}\n', ("view",)),
        ('{"permissions": {/* "allow": [ */ "deny": ["bash"]}}', ("view",)),
        ('\ufeff{"titles": false}', ("view",)),
    ],
)
def test_a_rule_is_added_and_the_file_stays_trusted(
    project: Project, text: str | None, allowed: tuple[str, ...]
) -> None:
    if text is not None:
        project.file.write_text(text)
    project.allow("view")
    assert project.allowed() == allowed
    assert ("// mine" in project.file.read_text()) == ("// mine" in (text or ""))
    project.allow("bash(git status)", "view")
    assert set(project.allowed()) == {"view", "bash(git status)"}
    assert review(project.directory, environ={}, user_dir=project.home).standing is Standing.TRUSTED


def test_what_is_trusted_is_what_was_written(project: Project) -> None:
    """Not what somebody else puts there a moment later."""
    project.allow("view")
    written = project.file.read_bytes()
    trusted = recorded(project.home / ".config" / "longboat" / "trusted.json")
    assert trusted[str(project.directory)] == hashlib.sha256(written).hexdigest()
    project.file.write_text(json.dumps({"permissions": {"allow": ["bash"]}}))
    with pytest.raises(ConfigInvalid, match="has changed since you trusted it"):
        project.allowed()


def test_a_file_that_is_changed_between_two_looks_is_left_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.file.write_text("{}")
    stale = review(project.directory, environ={}, user_dir=project.home)
    monkeypatch.setattr("longboat.config.rules.review", lambda *_, **__: stale)
    other = json.dumps({"permissions": {"allow": ["bash"]}})
    project.file.write_text(other)
    with pytest.raises(ConfigInvalid, match="is being changed right now"):
        project.allow("view")
    assert project.file.read_text() == other


def test_a_rule_is_not_written_to_where_a_project_links_its_file(project: Project) -> None:
    """The link comes with the repository, and may lead to the user's own file."""
    own = project.directory.parent / "own.json"
    own.write_text("{}")
    project.file.symlink_to(own)
    project.allow("view")
    assert (own.read_text(), project.allowed()) == ("{}", ("view",))


@pytest.mark.parametrize("rule", ["bash(echo \ud800)", "bash(a\x1bb)", "bash(= a\u202eb)"])
def test_a_rule_that_no_file_can_hold_is_refused(project: Project, rule: str) -> None:
    with pytest.raises(ConfigInvalid, match="Add it by hand"):
        project.allow(rule)
    assert not project.file.exists()


def test_a_rule_of_several_lines_is_kept(project: Project) -> None:
    """A2: always ends the asking for a command with a heredoc too."""
    project.allow("bash(= cat <<E | $X\na\tb\nE)")
    assert json.loads(project.file.read_text())["permissions"] == {"allow": ["bash(= cat <<E | $X\na\tb\nE)"]}


@pytest.mark.parametrize(
    "text", [None, "{}", '{"titles": false}', '{"permissions": {}}', '{"permissions": {"allow": []}}']
)
def test_the_text_is_json_for_everybody_else(project: Project, text: str | None) -> None:
    if text is not None:
        project.file.write_text(text)
    project.allow('bash(echo "ü")')
    project.allow("view")
    assert json.loads(project.file.read_text())["permissions"] == {"allow": ["view", 'bash(echo "ü")']}
