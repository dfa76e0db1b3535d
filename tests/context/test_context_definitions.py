"""Skills, custom commands and sub-agents: files with a head and a body (A5)."""

import os
from pathlib import Path

import pytest

from longboat.context.library import Agent, Command, Library, Skill, expand


class Project:
    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.directory = root / "project"
        self.directory.mkdir()
        self.library = Library(self.directory, environ={}, user_dir=self.home)

    def write(self, name: str, text: str, *, at: Path | None = None) -> Path:
        path = (at or self.directory) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def problems(self) -> tuple[str, ...]:
        return self.library.load().problems

    def skills(self) -> dict[str, str]:
        return {skill.name: skill.description for skill in self.library.load().skills}

    def command(self, text: str) -> Command:
        self.write(".agents/commands/it.md", text)
        (command,) = self.library.load().commands
        return command


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_skill_has_a_name_a_description_and_a_body(project: Project) -> None:
    head = "---\nname: pdf\ndescription: >\n  Fill in forms.\n  Use for PDF files.\nlicense: MIT\n---\n"
    path = project.write(".agents/skills/pdf/SKILL.md", f"{head}\n# How\n\nRun it.\n")
    (skill,) = project.library.load().skills
    assert skill == Skill(
        name="pdf", description="Fill in forms. Use for PDF files.", path=path, body="# How\n\nRun it."
    )
    assert skill.text == f"Skill pdf. Its files are in {path.parent}.\n\n# How\n\nRun it."


def test_skills_come_from_all_their_places_and_the_projects_win(project: Project) -> None:
    project.write(".agents/skills/a/SKILL.md", "---\ndescription: project agents\n---\n")
    project.write(".claude/skills/a/SKILL.md", "---\ndescription: project claude\n---\n")
    project.write(".claude/skills/b/SKILL.md", "---\ndescription: project claude\n---\n")
    project.write(".config/longboat/skills/b/SKILL.md", "---\ndescription: user\n---\n", at=project.home)
    project.write(".config/longboat/skills/c/SKILL.md", "---\ndescription: user\n---\n", at=project.home)
    project.write(".agents/skills/d/SKILL.md", "---\ndescription: user agents\n---\n", at=project.home)
    project.write(".claude/skills/d/SKILL.md", "---\ndescription: user claude\n---\n", at=project.home)
    project.write(".claude/skills/e/SKILL.md", "---\ndescription: user claude\n---\n", at=project.home)
    expected = {"a": "project agents", "b": "project claude", "c": "user", "d": "user agents", "e": "user claude"}
    assert project.skills() == expected
    assert project.problems() == ()


def test_a_workspace_below_its_repository_sees_the_repositorys_skills(project: Project) -> None:
    project.write(".agents/skills/a/SKILL.md", "---\ndescription: the repository's\n---\n")
    (project.directory / ".git").mkdir()
    below = project.directory / "packages" / "web"
    below.mkdir(parents=True)
    library = Library(below, environ={}, user_dir=project.home)
    assert [skill.description for skill in library.load().skills] == ["the repository's"]


def test_one_directory_under_two_names_is_one_skill(project: Project) -> None:
    project.write(".agents/skills/a/SKILL.md", "---\nname: x\ndescription: d\n---\n")
    (project.directory / ".claude").mkdir()
    (project.directory / ".claude" / "skills").symlink_to(project.directory / ".agents" / "skills")
    assert project.skills() == {"x": "d"}


def test_a_projects_skill_that_links_to_the_users_files_is_refused(project: Project) -> None:
    secret = project.write("secret", "---\ndescription: secret\n---\n", at=project.home)
    path = project.directory / ".agents/skills/a/SKILL.md"
    path.parent.mkdir(parents=True)
    path.symlink_to(secret)
    context = project.library.load()
    assert context.skills == ()
    assert context.problems == (
        f"{path}: is a link out of {project.directory} and is not read. Use a copy instead of a link.",
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("# No head", 1, "the skill has no description. Say in the front matter what it is for and when to use it."),
        (
            "---\nname: x\n---\n",
            1,
            "the skill has no description. Say in the front matter what it is for and when to use it.",
        ),
        ("---\nname: x\n", 1, "the front matter that begins here is not closed with a --- line."),
        ("---\n- a\n---\n", 2, "expected `key: value` lines between the --- lines."),
        ("---\nname: x\ndescription:\n  - a\n---\n", 3, "description: expected `str | null`, got `array`."),
        (
            "---\nname: x\n\tdescription: y\n---\n",
            3,
            "not valid YAML: found character '\\t' that cannot start any token.",
        ),
        ("---\n" + "[" * 9_000 + "\n---\n", 2, "not valid YAML between the --- lines."),
        (
            "---\nname: " + "x" * 20_000 + "\n---\n",
            1,
            "the front matter has more than 16000 characters. Move text below it.",
        ),
    ],
)
def test_a_bad_head_is_told_by_file_and_line_and_the_rest_stays(
    project: Project, text: str, line: int, message: str
) -> None:
    path = project.write(".agents/skills/bad/SKILL.md", text)
    project.write(".agents/skills/good/SKILL.md", "---\ndescription: fine\n---\n")
    assert project.skills() == {"good": "fine"}
    assert project.problems() == (f"{path}:{line}: {message}",)


def test_a_problem_stays_told_while_the_file_stays_as_it_is(project: Project) -> None:
    path = project.write(".agents/skills/bad/SKILL.md", "no head")
    os.utime(path, (1_000, 1_000))
    assert project.problems() == project.problems() != ()


def test_values_that_are_nearly_yaml_are_taken_as_text(project: Project) -> None:
    """Files written for other agents hold such heads."""
    project.write(".agents/skills/a/SKILL.md", "---\nname: no\ndescription: Use when: asked\nversion: 1.0\n---\n")
    project.write(".agents/skills/b/SKILL.md", "---\ndescription: @someone's `own`\nargument-hint: [a] [b]\n---\n")
    assert project.skills() == {"no": "Use when: asked", "b": "@someone's `own`"}


def test_yaml_that_wants_to_build_objects_is_only_text(project: Project) -> None:
    project.write(".agents/skills/a/SKILL.md", "---\ndescription: !!python/name:os.system x\n---\n")
    project.write(".agents/skills/b/SKILL.md", "---\ndescription: b\nx: &x [*x]\n---\n")
    assert project.skills()["b"] == "b"


def test_a_folder_with_too_many_skills_is_bounded_and_said(project: Project) -> None:
    for number in range(205):
        project.write(f".agents/skills/s{number:03}/SKILL.md", "---\ndescription: d\n---\n")
    folder = project.directory / ".agents" / "skills"
    assert list(project.skills()) == [f"s{number:03}" for number in range(200)]
    assert project.problems() == (f"{folder}: has more than 200 entries; the rest is ignored.",)


def test_a_command_has_a_head_and_a_template(project: Project) -> None:
    text = "---\ndescription: Look it over\nargument-hint: [file]\nmodel: mine/m\nagent: reviewer\n---\nReview $1.\n"
    path = project.write(".agents/commands/review.md", text)
    assert project.library.load().commands == (
        Command(
            name="review",
            description="Look it over",
            argument_hint="[file]",
            model="mine/m",
            agent="reviewer",
            path=path,
            template="Review $1.",
        ),
    )


def test_a_command_needs_no_head(project: Project) -> None:
    command = project.command("# Tidy up\n\nRemove what nobody uses.")
    assert (command.description, command.model) == ("Tidy up", None)


def test_directories_become_part_of_a_commands_name(project: Project) -> None:
    project.write(".agents/commands/git/tidy.md", "tidy")
    project.write(".agents/commands/a/b/c/d.md", "deep")
    project.write(".agents/commands/a/b/c/d/e.md", "too deep")
    project.write(".agents/commands/notes.txt", "no command")
    assert [command.name for command in project.library.load().commands] == ["a:b:c:d", "git:tidy"]


def test_a_projects_command_wins_over_the_users(project: Project) -> None:
    project.write(".agents/commands/x.md", "project")
    project.write(".config/longboat/commands/x.md", "user", at=project.home)
    project.write(".agents/commands/y.md", "user agents", at=project.home)
    commands = {command.name: command.template for command in project.library.load().commands}
    assert commands == {"x": "project", "y": "user agents"}


def test_a_loop_of_links_among_commands_ends(project: Project) -> None:
    project.write(".agents/commands/x.md", "x")
    (project.directory / ".agents/commands/again").symlink_to(project.directory / ".agents/commands")
    assert "x" in {command.name.split(":")[-1] for command in project.library.load().commands}
    assert project.problems() == ()


@pytest.mark.parametrize(
    ("template", "arguments", "prompt"),
    [
        ("Fix $ARGUMENTS now", " the bug ", "Fix the bug now"),
        ("$1 then $2 then [$3]", "a 'b c'", "a then b c then []"),
        ("${1}st of ${ARGUMENTS}", "x y", "xst of x y"),
        ("It costs \\$1 and $$1", "2", "It costs $1 and $2"),
        ("$1", "$2 other", "$2"),
        ("$ARGUMENTS", "don't", "don't"),
        ("$2", "don't stop", "stop"),
        ("Explain.", "this file", "Explain.\n\nthis file"),
        ("Explain.", "", "Explain."),
        ("Explain $ARGUMENTS", "", "Explain "),
        ("$10 $100 $ARGUMENTSX", "1 2 3 4 5 6 7 8 9 ten", "ten $100 $ARGUMENTSX"),
    ],
)
def test_arguments_go_to_their_places(project: Project, template: str, arguments: str, prompt: str) -> None:
    assert expand(project.command(template), arguments) == prompt


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("---\ndescription: x\n---\n\n", 1, "the command is empty. Write its prompt below the front matter."),
        (
            "---\nmodel: sonnet\n---\nx",
            2,
            "model: 'sonnet' is not a model. Expected provider/model, large, small or inherit.",
        ),
        (
            "---\nmodel: local//clone/model.gguf\n---\nx",
            2,
            "model: only your prompt and longboat.json can name a model by its file. Give it a name there.",
        ),
    ],
)
def test_a_bad_command_is_told(project: Project, text: str, line: int, message: str) -> None:
    path = project.write(".agents/commands/x.md", text)
    assert project.problems() == (f"{path}:{line}: {message}",)


def test_a_sub_agent_has_tools_a_model_and_a_prompt(project: Project) -> None:
    head = "---\nname: reviewer\ndescription: Reviews code\ntools: [view, grep]\nmodel: small\nread-only: false\n---\n"
    path = project.write(".agents/agents/reviewer.md", f"{head}Review.")
    assert project.library.load().agents == (
        Agent(
            name="reviewer",
            description="Reviews code",
            tools=("view", "grep"),
            model="small",
            read_only=False,
            path=path,
            prompt="Review.",
        ),
    )


def test_a_sub_agent_is_read_only_and_takes_the_sessions_model_unless_told(project: Project) -> None:
    """A1: read-only by default."""
    project.write("agents/helper.md", "---\ndescription: Helps\nmodel: inherit\ntools: view, grep ,\n---\nHelp.")
    (agent,) = project.library.load().agents
    assert (agent.name, agent.read_only, agent.model, agent.tools) == ("helper", True, None, ("view", "grep"))


def test_sub_agents_come_from_all_their_places_and_the_nearest_win(project: Project) -> None:
    for name, at in (
        (".agents/agents", project.directory),
        ("agents", project.directory),
        (".config/longboat/agents", project.home),
        (".agents/agents", project.home),
    ):
        project.write(f"{name}/same.md", f"---\ndescription: {at.name}/{name}\n---\nx", at=at)
        project.write(f"{name}/{at.name}{name.count('.')}.md", "---\ndescription: y\n---\nx", at=at)
    agents = {agent.name: agent.description for agent in project.library.load().agents}
    assert agents["same"] == "project/.agents/agents"
    assert len(agents) == 4


def test_pages_without_a_head_in_a_directory_named_agents_are_none_of_ours(project: Project) -> None:
    project.write("agents/README.md", "# Our sales agents")
    context = project.library.load()
    assert (context.agents, context.problems) == ((), ())


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "---\nname: x\n---\nx",
            1,
            "the agent has no description. Say in the front matter what it is for and when to use it.",
        ),
        ("---\ndescription: x\n---\n", 1, "the agent has no prompt. Write it below the front matter."),
        (
            "---\ndescription: x\nname: a b\n---\nx",
            3,
            "name: 'a b' is not a valid name. Use at most 64 letters, digits, _ and -.",
        ),
        ("---\ndescription: x\nread_only: maybe\n---\nx", 3, "read_only: expected `bool`, got `str`."),
    ],
)
def test_a_bad_sub_agent_is_told(project: Project, text: str, line: int, message: str) -> None:
    path = project.write(".agents/agents/x.md", text)
    assert project.problems() == (f"{path}:{line}: {message}",)
