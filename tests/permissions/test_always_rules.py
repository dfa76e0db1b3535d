"""“Always”: a rule is added to the project's file, the rest stays, and only what was written is trusted (A2)."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from longboat.config.edit import replace_file
from longboat.config.load import load_config, review
from longboat.config.rules import add_rules, follow_trust
from longboat.config.trust import TrustState, forget, record, recorded
from longboat.errors import ConfigInvalid


class Project:
    def __init__(self, root: Path) -> None:
        self.directory = root / "project"
        self.directory.mkdir()
        self.file = self.directory / "longboat.json"
        self.home = root / "home"

    def allow(self, *rules: str) -> None:
        add_rules(self.directory, rules, environ={}, user_dir=self.home).write()

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
    assert review(project.directory, environ={}, user_dir=project.home).trust_state is TrustState.TRUSTED


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


def test_the_file_is_trusted_at_every_moment_while_a_rule_is_added(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other calls of the session are judged meanwhile."""
    project.allow("view")
    before, seen = project.file.read_bytes(), []

    def replace_observed(*arguments: Any, **named: Any) -> None:
        seen.append(project.allowed())
        replace_file(*arguments, **named)
        seen.append(project.allowed())

    monkeypatch.setattr("longboat.config.rules.replace_file", replace_observed)
    project.allow("ls")
    assert seen == [("view",), ("ls", "view")]
    project.file.write_bytes(before)
    with pytest.raises(ConfigInvalid, match="has changed since you trusted it"):
        project.allowed()  # what was there before is trusted no longer than the replacement takes


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


class SharedProject:
    """A directory that two machines have, each with a user's record of its own."""

    def __init__(self, root: Path, text: str) -> None:
        self.directory = root / "shared"
        self.directory.mkdir()
        self.file = self.directory / "longboat.json"
        self.file.write_text(text)
        self.homes = {name: root / name for name in ("here", "there")}
        self.steps: list[tuple[str, str]] = []

    def trust(self, name: str) -> None:
        digest = hashlib.sha256(self.file.read_bytes()).hexdigest()
        record(self.record_of(name), self.directory, digest)

    def record_of(self, name: str) -> Path:
        return self.homes[name] / ".config" / "longboat" / "trusted.json"

    def allow(self, name: str, rule: str) -> None:
        added = add_rules(self.directory, [rule], environ={}, user_dir=self.homes[name])
        if added.trust_step is not None:
            self.steps.append(added.trust_step)
        added.write()

    def state(self, name: str) -> TrustState:
        follow_trust(self.directory, self.steps, environ={}, user_dir=self.homes[name])
        return review(self.directory, environ={}, user_dir=self.homes[name]).trust_state


ALLOWS = '{"permissions": {"allow": ["view"]}}'


def test_g7_what_always_made_of_a_trusted_file_on_another_machine_is_trusted(tmp_path: Path) -> None:
    project = SharedProject(tmp_path, ALLOWS)
    project.trust("here")
    project.trust("there")
    project.allow("here", "bash(make)")
    project.allow("here", "bash(ls)")
    assert project.state("there") is TrustState.TRUSTED
    project.allow("there", "bash(git status)")
    assert project.state("here") is TrustState.TRUSTED
    project.file.write_text('{"permissions": {"allow": ["bash"]}}')
    assert (project.state("here"), project.state("there")) == (TrustState.CHANGED, TrustState.CHANGED)


def test_g7_what_always_made_of_a_file_that_needs_no_trust_is_trusted_unless_the_user_has_forgotten_it(
    tmp_path: Path,
) -> None:
    project = SharedProject(tmp_path, "{}")
    project.allow("here", "bash(make)")
    assert project.state("there") is TrustState.TRUSTED
    assert forget(project.record_of("there"), project.directory)
    assert not forget(project.record_of("there"), project.directory), "once is enough"
    assert project.state("there") is TrustState.STRANGER


def test_g7_what_always_made_of_a_file_that_is_not_trusted_here_is_not_trusted(tmp_path: Path) -> None:
    project = SharedProject(tmp_path, ALLOWS)
    project.trust("here")
    project.allow("here", "bash(make)")
    assert project.state("there") is TrustState.STRANGER
    assert project.state("here") is TrustState.TRUSTED
