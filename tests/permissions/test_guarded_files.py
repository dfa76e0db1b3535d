"""Guarded files: no answer offers a rule for one, no grant matches one, and a rule must name it."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
import shell_attacks
import shell_corpus
import shell_reader_attacks
from rules import parse_rules, rules_for

from cases import for_each
from longboat.permissions.guarded_files import GUARDED, is_guarded, mentions_guarded, source_may_be_guarded
from longboat.permissions.verdict import Allow, Ask, Need, Offer, Verdict, grant_for, judge, parts_of
from longboat.tools.process.shell_paths import look_up

DIRECTORY = "/w/p"
FILES = (
    ".agents/commands/x.md",
    ".agents/skills/a/SKILL.md",
    ".claude/settings.json",
    ".config/longboat/longboat.json",
    ".config/longboat/trusted.json",
    ".git",
    ".git/config",
    ".git/hooks/pre-commit",
    ".local/share/longboat/token",
    ".mcp.json",
    "longboat.json",
    "moved/longboat/credentials.json",
    "moved/longboat/trusted.json",
    "sub/.git/config",
    "LONGBOAT.json",
    ".Agents/commands/x.md",
)
COMMANDS = sorted(
    {
        *shell_corpus.ALLOWED,
        *shell_corpus.ASKED,
        *shell_corpus.DENIED,
        *shell_corpus.WHOLE_ALLOWED,
        *shell_corpus.WHOLE_ASKED,
        *shell_attacks.COVERED,
        *shell_attacks.EVERYDAY,
        *shell_attacks.HARMLESS,
        *shell_attacks.NEVER,
        *shell_attacks.TRICKS,
        *shell_attacks.UNCOVERED,
        *shell_reader_attacks.GIT_RUNS_A_PROGRAM,
        *shell_reader_attacks.HEREDOCS_THAT_END_EARLY,
        *shell_reader_attacks.HIDDEN_PUSHES,
        *shell_reader_attacks.NO_PUSHES,
        *shell_reader_attacks.READER_EVERYDAY,
        *shell_reader_attacks.READER_NEVER,
        *shell_reader_attacks.READER_TRICKS,
        *shell_reader_attacks.READER_UNCOVERED,
        *shell_reader_attacks.SETTINGS_FOR_NOTHING,
        *shell_reader_attacks.VALUES_LIKE_OPTIONS,
        *shell_reader_attacks.VALUES_OF_THE_ENVIRONMENT,
        "cd build && rm -rf ./* && git add -A && git commit -m x && git push",
        "echo x > notes.txt",
        "echo x | tee notes.txt",
        "git config user.name x",
        "git checkout -- a.txt",
    }
)
CHANGES = (
    "cp a {path}",
    "echo x > {path}",
    "echo x >> ./{path}",
    "git checkout -- {path}",
    "mv {path} a",
    "rm -rf {path}",
    "sed -i s/a/b/ {path}",
    "tee {path}",
)
EVERYTHING = (
    "cp -r x/. .",
    "git checkout -- .",
    "git checkout .",
    "git clean -fdx",
    "git restore :/",
    "mv . x",
    "rm -rf .",
    "rm -rf ./",
    "rm -rf ../p",
    "rm -rf src/..",
    "rsync -a x/ .",
    "tar xf a.tar",
)


UNSEEN = (
    "cd $X && cp a b",
    "cd .gi* && cp ../a config",
    "cd src; cd ../.git; cp ../a config",
    "cd src; cd ../.git; echo x > config",
    "cp $X *",
    "cp a $X",
    "find . -name '*.json' -exec cp a {} \\;",
    "for f in *.json; do cp a $f; done",
    "ls | xargs rm",
    "make > $X",
    'read x; mv a "$x"',
    "sed -i s/a/b/ $X",
    "X=longboat; cp a $X.json",
)
"""Only the run tells which files these write."""
IMPLIED = (
    "CDPATH=.git cd hooks && cp ../../a x",
    "curl -O https://x.org/longboat.json",
    "curl -sSLO https://x.org/longboat%2Ejson",
    "curl -OJ https://x.org/x",
    "find . -delete",
    "find . -name '*.json' -delete",
    "find . -name '*.pyc' -o -name x -delete",
    "git am a.patch",
    "git apply a.patch",
    "git init --template=x",
    "ln -s . x; cp a x/longboa*",
    "wget -i urls",
    "wget https://x.org/longboat.json",
    "wget -r x.org",
)


def command(text: str, *, paths: tuple[str, ...] = ()) -> Need:
    return Need(tool="bash", action="run", argument=text, paths=paths)


def file_need(tool: str, path: str, directory: str) -> Need:
    absolute = f"{directory}/{path}"
    if tool == "download":
        return Need(tool=tool, action="download", argument="https://x.org/a", paths=(absolute,))
    argument = "a.py" if tool == "rename" else path
    return Need(tool=tool, action="edit", argument=argument, paths=(f"{directory}/{argument}", absolute))


def judged(need: Need, *grants: str, allow: tuple[str, ...] = ()) -> Verdict:
    return judge(need, rules=rules_for(allow=allow), grants=parse_rules(grants), directory=DIRECTORY)


def offered(need: Need) -> Offer:
    return grant_for(need, rules=rules_for(), directory=DIRECTORY)


def edits_in(directory: str) -> list[Need]:
    tools = ("download", "edit", "multiedit", "rename", "write")
    return [
        *(file_need(tool, path, directory) for tool in tools for path in FILES),
        *(command(change.format(path=path)) for change in CHANGES for path in FILES),
        *(command("cp a link", paths=(f"{directory}/{path}",)) for path in FILES),
        *map(command, EVERYTHING),
        *map(command, (*IMPLIED, *UNSEEN)),
        command("git config core.hooksPath x"),
        command("git -C . config --local core.hooksPath x"),
        command("git --no-pager -c a=b config set core.hooksPath x"),
    ]


EDITS = edits_in(DIRECTORY)


@pytest.mark.parametrize("path", FILES)
def test_the_list_has_every_file_that_holds_rules_hooks_or_configuration(path: str) -> None:
    assert is_guarded(path)
    assert is_guarded(f"{DIRECTORY}/{path}")


@pytest.mark.parametrize(
    "path", [".gitignore", ".github/x", "a.git", "agents/x", "longboat.jsonc", "mcp.json", ".", "git"]
)
def test_other_files_are_not_guarded(path: str) -> None:
    assert not is_guarded(path)


@for_each("need", EDITS)
def test_an_edit_of_a_guarded_file_can_only_be_allowed_once(need: Need) -> None:
    assert isinstance(judged(need), Ask)
    assert offered(need) == Offer()


@for_each("need", EDITS)
def test_no_grant_matches_a_guarded_file(need: Need) -> None:
    """Not even one that names it: nobody is offered such a grant, and one in the store counts for nothing."""
    names = tuple(f"edit({path})" for path in FILES)
    for grants in (
        ("edit", "bash(*)"),
        ("edit", "bash"),
        ("edit(*)", "edit(**)", "edit(.*/**)", "edit(.git/**)", *names),
    ):
        assert isinstance(judged(need, *grants, "download", "rename"), Ask)
    if need.tool == "bash":
        text = f"bash(= {need.argument})"
        plain = not set('>$;&(|"') & set(need.argument)
        assert isinstance(judged(need, text, f"bash({need.argument})" if plain else text), Ask)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with every guarded file, and with links to some."""
    place = tmp_path_factory.mktemp("workspace").resolve()
    for name in FILES:
        if name != ".git":
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).touch()
    for name in ("build", "src", "scripts"):
        (place / name).mkdir()
    (place / "src" / "link").symlink_to("../longboat.json")
    (place / "src" / "hooks").symlink_to("../.git/hooks")
    (place / "src" / "top").symlink_to("..")
    (place / "src" / "hard.json").hardlink_to(place / "longboat.json")
    (place / "src" / "hook").hardlink_to(place / ".git" / "hooks" / "pre-commit")
    return place


@pytest.fixture(scope="module")
def edits(workspace: Path) -> list[Need]:
    looked_up = [look_up(command(each), workspace, workspace) for each in LED]
    return [*looked_up, command("git config a b"), *edits_in(str(workspace))[::53]]


LED = (
    "cp -r build/. src/top/",
    "cp a src/hard.json",
    "cp a src/l*",
    "cp a src/link",
    "echo x > src/hard.json",
    "echo x > src/hook",
    "echo x > src/hooks/x",
    "rm -rf * .a*",
    "sed -i s/a/b/ src/*.json",
    "tar xf a.tar -C src/top",
    "touch *.json",
)
"""What these change is on the disk alone: through patterns, symbolic links and hard links."""


@pytest.mark.parametrize("text", LED)
def test_no_grant_matches_a_guarded_file_under_any_of_its_names(text: str, workspace: Path) -> None:
    need = look_up(command(text), workspace, workspace)
    for grants in (("bash",), ("bash(*)", "edit", "edit(**)", "edit(*.json)"), (f"bash(= {text})",)):
        assert isinstance(judge(need, rules=rules_for(), grants=parse_rules(grants), directory=str(workspace)), Ask)
    assert grant_for(need, rules=rules_for(), directory=str(workspace)) == Offer()


@pytest.mark.parametrize(
    "text", ["find . -name '*.pyc' -delete", "git apply --check a.patch", "make $TARGET", "cd src && cp a b"]
)
def test_a_command_that_can_reach_no_guarded_file_is_still_offered_a_rule(text: str) -> None:
    offer = offered(command(text))
    assert offer.narrow
    assert judged(command(text), *offer.narrow) == Allow()


@pytest.mark.parametrize(
    "arguments", ['{"path":"longboat.json"}', '{"to":["/w/p/.git/config"]}', '{"command":"cp a ./longboat.json"}']
)
def test_no_rule_for_a_foreign_tool_matches_a_call_that_mentions_a_guarded_file(arguments: str) -> None:
    need = Need(tool="mcp__files__write", action="call", argument=arguments)

    assert isinstance(judged(need, "mcp__files__write", allow=("mcp__files__*",)), Ask)
    assert offered(need) == Offer()
    assert isinstance(judged(need, "mcp__files__write", f"mcp__files__write({arguments})"), Ask)
    rules = ("mcp__files__write(*longboat.json*)", "mcp__files__write(*.git/config*)")
    assert judged(need, allow=rules) == Allow()


def test_a_foreign_tool_may_be_given_a_text_about_guarded_files() -> None:
    need = Need(tool="mcp__files__write", action="call", argument='{"path":"a.md","text":"Edit\\nlongboat.json"}')

    assert judged(need, "mcp__files__write") == Allow()


RULES = (rules_for(), rules_for(allow=shell_corpus.ALLOW), rules_for(allow=["bash"]))


@pytest.fixture(scope="module")
def allowed_edits(workspace: Path, edits: list[Need]) -> Callable[[tuple[str, ...]], list[Need]]:
    """What these rules would allow, granted or configured. Many commands are offered the same ones."""

    @functools.cache
    def allowed(rules: tuple[str, ...]) -> list[Need]:
        ways = ({"rules": rules_for(), "grants": parse_rules(rules)}, {"rules": rules_for(allow=rules)})
        return [edit for edit in edits for way in ways if judge(edit, directory=str(workspace), **way) == Allow()]

    return allowed


@for_each("text", COMMANDS)
def test_no_offer_for_a_command_allows_an_edit_of_a_guarded_file(
    text: str, workspace: Path, allowed_edits: Callable[[tuple[str, ...]], list[Need]]
) -> None:
    need = look_up(command(text), workspace, workspace)
    for rules in RULES:
        offer = grant_for(need, rules=rules, directory=str(workspace))
        if granted := (*offer.narrow, *offer.wide):
            assert allowed_edits(granted) == [], granted


@for_each("need", EDITS)
def test_a_rule_that_names_no_guarded_file_matches_none(need: Need) -> None:
    allow = ("edit", "edit(*)", "edit(**)", "edit(.*)", "edit(.*/**)", "edit(*.json)", "edit(sub/**)", "edit(?git/**)")
    assert isinstance(judged(need, allow=(*allow, "download", "rename", "bash(*)")), Ask)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("longboat.json", "edit(longboat.json)"),
        (".agents/commands/x.md", "edit(.agents/**)"),
        (".agents/commands/x.md", "edit(.agents/commands/x.md)"),
        (".git/hooks/pre-commit", "edit(.git/hooks/*)"),
        (".mcp.json", "edit(.mcp.json)"),
        ("/etc/.git/config", "edit(/etc/.git/config)"),
    ],
)
def test_a_rule_in_the_configuration_that_names_it_matches(path: str, rule: str) -> None:
    absolute = path if path.startswith("/") else f"{DIRECTORY}/{path}"
    need = Need(tool="write", action="edit", argument=path, paths=(absolute,))

    assert judged(need, allow=(rule,)) == Allow()
    assert judged(command(f"cp a {path}"), allow=("bash", rule)) == Allow()
    assert isinstance(judged(need, rule), Ask)


@pytest.mark.parametrize(
    "text", ["cp a longboat.json", "echo x > .git/config", "rm long{boat,x}.json", "cp a {.git,b}/c"]
)
def test_the_whole_of_bash_names_no_guarded_file(text: str) -> None:
    assert isinstance(judged(command(text), allow=("bash",)), Ask)
    assert isinstance(judged(command(text), "bash"), Ask)


def test_what_only_looks_may_read_guarded_files() -> None:
    link = Need(
        tool="bash",
        action="run",
        argument="cat .claude/a.md",
        paths=(f"{DIRECTORY}/.agents/a.md",),
        only_read=(f"{DIRECTORY}/.agents/a.md",),
    )

    assert judged(link) == Allow()
    for text in ("cat longboat.json .git/HEAD", "ls .agents", "grep -rn x .claude", "rg x .agents"):
        assert judged(command(text)) == Allow()


def test_the_reason_shown_is_the_riskiest_one() -> None:
    """It said that longboat.json decides what may run here, for an `rm` inside build/."""
    cleaning = command("cd build && npm ci && rm -rf ./* && make")

    assert judged(cleaning) == Ask("Running rm -rf './*' needs your approval.")
    assert judged(command("make; cp a longboat.json; cat /etc/x")) == Ask("/etc/x is outside the workspace.")
    assert judged(command("make; cp a longboat.json")) == Ask(
        "This could change longboat.json, which controls what is allowed to run."
    )
    assert judged(command("make; rm -rf .")) == Ask(
        "This could change anything in the workspace, including the files that control what is allowed to run."
    )


def test_the_parts_of_a_command_say_which_of_them_is_about_a_guarded_file() -> None:
    parts, _ = parts_of(command("make && cp a longboat.json"), rules=rules_for(), directory=DIRECTORY)

    assert [part.why for part in parts] == ["needs approval", "could change what is allowed to run"]


@pytest.mark.parametrize("text", ["eval 'rm longboat.json'", "x=longboat.json; rm $x", 'sh -c "$X .git/config"'])
def test_no_rule_for_a_text_is_offered_where_it_mentions_one(text: str) -> None:
    assert offered(command(text)) == Offer()
    assert isinstance(judged(command(text), f"bash(= {text})"), Ask)


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ('eval "rm longboat.json"', True),
        ("eval 'rm long'boat.json", True),
        ("x .git", True),
        ("x .gitignore", False),
        ("x a.git", False),
        *((name, True) for name in GUARDED),
    ],
)
def test_a_text_that_cannot_be_read_is_searched_for_their_names(text: str, mentioned: bool) -> None:
    assert mentions_guarded(text) == mentioned


@pytest.mark.parametrize(
    ("source", "may_be"),
    [
        ("long{boat,x}.json", True),
        ("{a,{b,long}boat.json}", True),
        ("longboat.jso{m..o}", True),
        ("{a,b}/.g'it'/config", True),
        ("$X/longboat.json", True),
        ("{dist,build}", False),
        ("{1..9}.txt", False),
        ("{a,b,c,d,e,f}" * 6, True),
        ("{…}", False),
    ],
)
def test_what_braces_may_become_is_looked_at(source: str, may_be: bool) -> None:
    assert source_may_be_guarded(source) == may_be


@pytest.mark.parametrize("command", ["git apply a.patch", "git apply --directory=. a.patch", "git am a.patch"])
def test_no_rule_is_offered_for_any_patch(command: str) -> None:
    """The next one could change longboat.json."""
    need = Need(tool="bash", action="run", argument=command)
    offer = grant_for(need, rules=rules_for(), directory=DIRECTORY)
    assert not any(rule.endswith("*)") for rule in (*offer.narrow, *offer.wide))
