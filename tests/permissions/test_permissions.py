"""Permissions (A2): the order of the rules, what they match, what is asked, and what an answer would allow."""

import shlex

import pytest
import shell_attacks
from hypothesis import assume, given
from hypothesis import strategies as st
from rules import parse_rule, parse_rules, rules_for
from shell_attacks import COVERED, EVERYDAY, HARMLESS, NEVER, TRICKS, UNCOVERED
from shell_corpus import ALLOW, ALLOWED, ASKED, DENIED, DENY, DIRECTORY, PIECES

from cases import for_each
from longboat.permissions.shell.script import Word, parse
from longboat.permissions.verdict import (
    Allow,
    Ask,
    Deny,
    Need,
    Offer,
    RuleInvalid,
    Rules,
    Verdict,
    grant_for,
    hidden_by,
    judge,
    named_paths,
)
from work import check_proportion

CORPUS = rules_for(allow=ALLOW, deny=DENY)
NONE = rules_for()


def bash(command: str, rules: Rules = CORPUS, *grants: str, paths: tuple[str, ...] = ()) -> Verdict:
    need = Need(tool="bash", action="run", argument=command, paths=paths)
    return judge(need, rules=rules, grants=parse_rules(grants), directory=DIRECTORY)


def on(tool: str, path: str, rules: Rules = NONE, *grants: str) -> Verdict:
    """The verdict on a file tool, with its path as the tool would give it."""
    absolute = path if path.startswith("/") else f"{DIRECTORY}/{path}"
    need = Need(tool=tool, action="touch", argument=path, paths=(absolute,))
    return judge(need, rules=rules, grants=parse_rules(grants), directory=DIRECTORY)


def web(tool: str, url: str, rules: Rules) -> Verdict:
    return judge(Need(tool=tool, action="get", argument=url), rules=rules, directory=DIRECTORY)


# The corpus.


def test_the_corpus_is_large_enough() -> None:
    assert len({*ALLOWED, *DENIED, *ASKED}) > 500


@for_each("command", ALLOWED)
def test_a_command_is_allowed_a2(command: str) -> None:
    assert bash(command) == Allow()


@for_each("command", DENIED)
def test_a_command_with_a_denied_part_is_denied_a2(command: str) -> None:
    assert isinstance(bash(command), Deny)


@for_each("command", ASKED)
def test_a_command_is_asked_a2(command: str) -> None:
    assert isinstance(bash(command), Ask)


# Everyday commands, and those made to slip past the rules.

BROAD = rules_for(allow=shell_attacks.BROAD_ALLOW, deny=shell_attacks.BROAD_DENY)
WHOLE = rules_for(allow=["bash"], deny=shell_attacks.BROAD_DENY)


def attacked(command: str, rules: Rules) -> Verdict:
    return judge(Need(tool="bash", action="run", argument=command), rules=rules, directory=shell_attacks.DIRECTORY)


@for_each("command", [*EVERYDAY, *HARMLESS])
def test_an_everyday_command_is_not_asked_a2(command: str) -> None:
    assert attacked(command, NONE) == Allow()


@for_each("command", TRICKS)
def test_a_trick_is_asked_without_rules_a2(command: str) -> None:
    assert isinstance(attacked(command, NONE), Ask)


@for_each("command", COVERED)
def test_a_rule_holds_for_what_it_says_a2(command: str) -> None:
    assert attacked(command, BROAD) == Allow()


@for_each("command", UNCOVERED)
def test_a_rule_holds_for_no_more_than_it_says_a2(command: str) -> None:
    assert attacked(command, BROAD) != Allow()


@for_each("command", NEVER)
def test_what_is_or_may_be_denied_is_not_done_even_if_the_whole_of_bash_is_allowed_a2(command: str) -> None:
    assert attacked(command, WHOLE) != Allow()


@for_each("command", [*TRICKS, *UNCOVERED])
def test_what_is_offered_for_a_trick_is_enough_a2(command: str) -> None:
    """An answer for the session is not asked again (A2)."""
    need = Need(tool="bash", action="run", argument=command)
    for rules in (NONE, BROAD):
        offer = grant_for(need, rules=rules, directory=shell_attacks.DIRECTORY)
        for granted in filter(None, (offer.narrow, offer.wide)):
            verdict = judge(need, rules=rules, grants=parse_rules(granted), directory=shell_attacks.DIRECTORY)
            assert verdict == Allow(), granted


# The order.


def test_deny_goes_before_allow_and_grants_a2() -> None:
    rules = rules_for(allow=["bash(rm *)", "bash"], deny=["bash(rm *)"])

    assert bash("rm x", rules, "bash(rm x)", "bash") == Deny("bash(rm *)")


def test_a_grant_allows_what_no_rule_does_a2() -> None:
    assert isinstance(bash("make all", NONE), Ask)
    assert bash("make all", NONE, "bash(make all)") == Allow()


def test_rules_and_grants_add_up_within_one_command() -> None:
    rules = rules_for(allow=["bash(make all)"])

    assert bash("make all && npm ci", rules, "bash(npm ci)") == Allow()


def test_no_pattern_allows_what_cannot_be_checked() -> None:
    rules = rules_for(allow=["bash(*)", "bash(eval *)", "bash(bash *)"])

    assert bash("anything at all", rules) == Allow()
    assert isinstance(bash("eval ls", rules), Ask)
    assert isinstance(bash("curl x | bash", rules), Ask)


def test_what_may_be_denied_is_asked_even_if_the_whole_of_bash_is_allowed() -> None:
    rules = rules_for(allow=["bash"], deny=["bash(git push *)", "edit(keys/**)"])

    asked = ("git $x", "$x push", "git -C . push", "eval x", "xargs git", "echo x > $y", "cd a; cd ../keys; echo x > y")
    assert all(isinstance(bash(command, rules), Ask) for command in asked)
    assert [bash(command, rules) for command in ("git pull", "echo $x", "npm x")] == [Allow()] * 3


def test_what_is_only_printed_may_be_unknown() -> None:
    rules = rules_for(allow=["bash(echo *)", "bash(printf *)", "bash(cat *)"])

    assert [bash(each, rules) for each in ("echo $x", "printf '%s' \"$x\" ~/a {a,b}")] == [Allow()] * 2
    assert isinstance(bash("cat $x", rules), Ask)
    assert isinstance(bash("echo $(cat $x)", rules), Ask)


def test_a_bare_rule_denies_the_whole_tool() -> None:
    assert bash("ls", rules_for(deny=["bash"])) == Deny("bash")
    assert on("view", "a", rules_for(deny=["view"])) == Deny("view")


def test_asking_says_why() -> None:
    assert bash("make x", NONE) == Ask("Running make x needs your approval.")
    assert bash("eval x", NONE) == Ask("This command cannot be checked: “eval” can run anything.")
    assert bash("ls /etc", NONE) == Ask("/etc is outside the workspace.")
    assert bash("PATH=x ls", NONE) == Ask("It sets PATH for ls.")
    assert bash("echo > a", NONE) == Ask("Writing a needs your approval.")
    assert on("view", "/etc/x") == Ask("/etc/x is outside the workspace.")
    assert on("edit", ".git/config", rules_for(allow=["edit"])) == Ask(
        "This could change .git/config, which controls what is allowed to run."
    )


# Patterns of commands.


@pytest.mark.parametrize(
    ("rule", "fitting", "others"),
    [
        ("bash(make all)", ["make all", "'make' all"], ["make all x", "make", "make allx", "make all; make x"]),
        ("bash(npm test *)", ["npm test", "npm test a b"], ["npm tests", "npm", "npm run test"]),
        ("bash(npm run test:*)", ["npm run test:a"], ["npm run test", "npm run test:a b", "npm run test:$x"]),
        ("bash(a * c)", ["a b c"], ["a c", "a b b c", "a $x c"]),
        ("bash(a 'b c' *)", ["a 'b c'", "a b\\ c d"], ["a b c"]),
        ("bash(a '*')", ["a '*'"], ["a *", "a b"]),
        ('bash(a "x\\"y")', ["a 'x\"y'"], ["a xy"]),
        ("bash(X=1 a *)", ["X=1 a", "a b", "CI=1 X=1 a"], ["X=2 a", "X=$y a", "Y=1 a", "X=1 Y=1 a"]),
        ("bash(X=* a)", ["X=1 a", "X=$y a"], ["Y=1 a"]),
        ("bash(a build/*)", ["a build/x"], ["a build/../x", "a buildx"]),
        ("bash(./run *)", ["./run x"], ["run x", "/run x", "../run x"]),
        ("bash(a /opt/*)", ["a /opt/x"], ["a /opt/../etc", "a /etc", "a /opt/x /etc"]),
        ("bash(a --to=/opt/*)", ["a --to=/opt/x"], ["a --to=/etc/x"]),
        ("bash(a *)", ["a b", "a https://x.org/y", "a s/x/y/"], ["a $x", "a /etc", "a ..", "a b=../c", "a file:///x"]),
        ("bash(*)", ["a", "a b c"], ["/opt/a", "a /etc", "$a", "a b $c"]),
    ],
)
def test_what_a_pattern_of_a_command_fits(rule: str, fitting: list[str], others: list[str]) -> None:
    rules = rules_for(allow=[rule])

    assert {command: bash(command, rules) for command in fitting} == dict.fromkeys(fitting, Allow())
    assert [command for command in others if bash(command, rules) == Allow()] == []


def test_paths_given_with_a_command_are_asked_outside_the_workspace() -> None:
    """A link can lead out: the caller resolves what `named_paths` lists."""
    rules = rules_for(allow=["bash"])

    assert isinstance(bash("cat link", rules, paths=("/etc/passwd",)), Ask)
    assert bash("cat link", rules, "edit(/etc/passwd)", paths=("/etc/passwd",)) == Allow()


def test_the_paths_that_a_command_may_name_are_listed_for_whoever_looks_at_the_disk() -> None:
    named = named_paths("cp link/x d/*.c --f=y /etc/z > w; cat v", directory="/p", start="/p/s")

    assert {(each.path, each.glob, each.looks) for each in named} >= {
        ("/p/s/link/x", False, False),
        ("/p/s/d/*.c", True, False),
        ("/p/s/y", False, False),
        ("/p/s/w", False, False),
        ("/p/s/v", False, True),
    }
    assert not any(each.path == "/etc/z" for each in named)
    assert {each.path for each in named_paths("cd a; cat b", directory="/p")} >= {"/p/b", "/p/a/b"}
    # Of two directories diff compares the files.
    within = {each.path for each in named_paths("diff a '[b]'", directory="/p") if each.glob}
    assert within == {"/p/a/*", "/p/a/.*", "/p/[b]/*", "/p/[b]/.*"}
    assert {each.path for each in named_paths("cat @a/b c,d", directory="/p")} >= {"/p/@a/b", "/p/c,d"}


@pytest.mark.parametrize(
    ("command", "directory", "verdict"),
    [
        ("cat key.pem", "secrets", Ask),
        ("cat ../README.md", "secrets", Allow),
        ("cat ../../x", "secrets", Ask),
        ("cat secrets/key.pem", "src", Allow),
        ("cat < key.pem", "secrets", Deny),
        ("echo x > config", ".git", Ask),
        ("echo gone > 001.sql", "migrations", Deny),
        ("echo gone > ../src/a", "migrations", Allow),
        ("cd sub && echo gone > 001.sql", "migrations", Deny),
        ("git status", "src", Ask),
        ("git status", "", Allow),
        ("ls *", "src", Ask),
        ("make build", "src", Allow),
    ],
)
def test_a_command_is_judged_from_the_directory_that_it_runs_in_a2(
    command: str, directory: str, verdict: type[Verdict]
) -> None:
    rules = rules_for(allow=["edit", "bash(make build)"], deny=["view(secrets/**)", "edit(migrations/**)"])
    need = Need(tool="bash", action="run", argument=command, directory=f"{DIRECTORY}/{directory}" if directory else "")

    assert isinstance(judge(need, rules=rules, directory=DIRECTORY), verdict)


def test_an_argument_that_decides_what_may_run_needs_a_rule_that_names_it_a2() -> None:
    command = "cp c .git/config"

    for allow in (["bash(cp *)", "edit"], ["bash"], ["bash", "edit(**)"]):
        assert isinstance(bash(command, rules_for(allow=allow)), Ask)
    for allow in (["bash(cp *)", "edit(.git/config)"], ["bash(cp c .git/*)"], ["bash(cp c .git/config)"]):
        assert bash(command, rules_for(allow=allow)) == Allow()
        assert isinstance(bash(command, NONE, *allow), Ask), "a grant names no guarded file"
    assert isinstance(bash("cp c .git/config longboat.json", rules_for(allow=["bash(cp c .git/config *)"])), Ask)


def test_a_link_to_what_is_guarded_or_denied_is_asked_a2() -> None:
    hook, key = f"{DIRECTORY}/.git/hooks/pre-commit", f"{DIRECTORY}/secrets/key"
    rules = rules_for(allow=["edit", "bash(cp *)"], deny=["view(secrets/**)"])

    assert isinstance(bash("echo x > hooks/pre-commit", rules, paths=(hook,)), Ask)
    assert isinstance(bash("cp x hooks/pre-commit", rules, paths=(hook,)), Ask)
    assert isinstance(bash("cp x hooks/pre-commit", rules, "edit(.git/hooks/*)", paths=(hook,)), Ask)
    named = rules_for(allow=["edit", "bash(cp *)", "edit(.git/hooks/*)"])
    assert bash("cp x hooks/pre-commit", named, paths=(hook,)) == Allow()
    assert isinstance(bash("echo x > src/link", NONE, "edit(src/**)", paths=(f"{DIRECTORY}/other",)), Ask)
    assert bash("echo x > src/link", NONE, "edit(src/**)", "edit(other)", paths=(f"{DIRECTORY}/other",)) == Allow()
    assert bash("cat link > /dev/null", NONE, paths=(f"{DIRECTORY}/other",)) == Allow()
    assert isinstance(bash("cat link", rules, paths=(key,)), Ask)
    assert isinstance(bash("cat link", rules, "bash", paths=(key,)), Ask)
    assert bash("cat link", rules, paths=(f"{DIRECTORY}/a",)) == Allow()


def test_a_look_at_a_repository_that_may_run_something_is_asked_unless_a_rule_allows_it_a2() -> None:
    need = Need(tool="bash", action="run", argument="git status", doubt=".git/config sets core.fsmonitor")

    assert judge(need, rules=NONE, directory=DIRECTORY) == Ask(
        "git status may do more than read: .git/config sets core.fsmonitor."
    )
    assert judge(need, rules=rules_for(allow=["bash(git status *)"]), directory=DIRECTORY) == Allow()


@for_each(
    "command",
    [
        *(
            "grep -r x .",
            "grep -rn x",
            "grep --recursive x secrets",
            "grep -d recurse x .",
            "rg x",
            "rg x .",
            "rg -u x",
        ),
        *(
            "git log -p",
            "git log -L1,2:a",
            "git show",
            "git show HEAD",
            "git show --stat a1b2c3",
            "git diff",
            "git diff x",
        ),
        *("git diff -- .", "git diff -- ':!src'", "git diff -- 's*'", "git cat-file -p HEAD", "git status -v"),
        *("git show a1b2c3 -- src", "git log -p --follow -- src/a", "git cat-file blob a1b2c3"),
        *("cat secrets/ke?", "cat secrets//k*", "cat src/../secrets/ke?", "cat secrets/[^a]ey", "cat secrets/{key,a}"),
        *("rg x secrets/deep", "git show HEAD:secrets/key", "cat secrets/key", "cat s*/key", "cd secrets && cat key"),
    ],
)
def test_what_may_show_a_file_that_nobody_is_to_view_is_asked_a2(command: str) -> None:
    assert isinstance(bash(command, rules_for(deny=["view(secrets/**)"])), Ask)
    assert isinstance(bash(command, rules_for(deny=["view(**/key)"])), Ask)


@for_each(
    "command",
    [
        *(
            "grep -r x src",
            "rg x src",
            "rg --files",
            "grep x a",
            "ls -R src",
            "git status",
            "git log",
            "git log --stat",
        ),
        *("git diff --stat", "git diff -- src", "git log -p -3 -- src", "git show HEAD -- src", "git show --stat HEAD"),
        *("git show HEAD:src/a", "git cat-file -t HEAD", "git blame src/a", "git ls-files", "ls *.py", "cat src/*.py"),
        *("diff a b", "diff -u src/a.py src/b.py"),
    ],
)
def test_what_cannot_show_it_is_not_asked(command: str) -> None:
    assert bash(command, rules_for(deny=["view(secrets/**)", "view(.env)"])) == Allow()


def test_a_denied_view_denies_the_search_of_it_too_a2() -> None:
    rules = rules_for(deny=["view(secrets/**)"])

    assert on("grep", "secrets/key", rules) == on("ls", "secrets", rules) == Deny("view(secrets/**)")
    assert on("grep", ".", rules) == on("ls", ".", rules) == Allow()
    assert on("grep", "a", rules_for(deny=["view"])) == Deny("view")
    assert on("ls", ".", rules_for(deny=["view"])) == Allow()


def test_tools_that_show_many_files_can_leave_out_what_nobody_is_to_view() -> None:
    hidden = hidden_by(rules_for(deny=["view(secrets/**)", "view(/etc/x)", "view"]), directory=DIRECTORY)

    assert [hidden(path) for path in (f"{DIRECTORY}/secrets/a/b", "/etc/x", f"{DIRECTORY}/a")] == [True, True, False]


# Files, the web, other tools.


def test_looking_needs_no_rule_inside_the_workspace_a2() -> None:
    tools = ["view", "ls", "glob", "grep", "diagnostics", "references", "definition", "symbols"]
    others = ["todos", "question", "job_output", "job_list", "longboat_info", "agent"]

    assert [on(tool, "src/a") for tool in tools] == [Allow()] * len(tools)
    assert [judge(Need(tool=tool, action="x"), rules=NONE, directory=DIRECTORY) for tool in others] == [Allow()] * 6
    assert all(isinstance(on(tool, "/etc/passwd", rules_for(allow=[tool])), Ask) for tool in tools)


@pytest.mark.parametrize("path", ["/etc/x", "/home/me", "/home/me/projects/x", "../x", "src/../../x"])
def test_a_path_outside_the_workspace_is_asked_whatever_the_tool_is_allowed_a2(path: str) -> None:
    rules = rules_for(allow=["view", "edit", "view(**)", "edit(**)"])

    assert isinstance(on("view", path, rules), Ask)
    assert isinstance(on("edit", path, rules), Ask)


def test_a_rule_with_an_absolute_path_reaches_outside() -> None:
    rules = rules_for(allow=["view(/opt/data/**)"])

    assert on("view", "/opt/data/a/b", rules) == Allow()
    assert isinstance(on("view", "/opt/other", rules), Ask)
    assert isinstance(on("edit", "/opt/data/a", rules), Ask)
    assert isinstance(on("view", "/opt/data/../x", rules), Ask)


def test_a_link_out_of_an_allowed_directory_is_asked() -> None:
    need = Need(tool="edit", action="edit", argument="src/link", paths=("/home/me/project/lib/real",))

    assert isinstance(judge(need, rules=rules_for(allow=["edit(src/**)"]), directory=DIRECTORY), Ask)


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("src/**", ["src/a", "src/a/b", "src"], ["srcx/a", "a/src/b", "lib/a"]),
        ("src/", ["src/a/b"], ["lib"]),
        ("./src/*", ["src/a"], ["src/a/b"]),
        ("*.py", ["a.py"], ["a/b.py", "a.pyc"]),
        ("**/*.py", ["a.py", "a/b/c.py"], ["a.pyc"]),
        ("a/**/z", ["a/z", "a/b/c/z"], ["z", "a/zz"]),
        ("a?c", ["abc"], ["a/c", "ac"]),
        ("a\\*c", ["a*c"], ["abc"]),
        ("a[b]", ["a[b]"], ["ab"]),
        ("/home/me/project/lib/**", ["lib/a"], ["src/a"]),
    ],
)
def test_what_a_pattern_of_paths_fits(pattern: str, fitting: list[str], others: list[str]) -> None:
    rules = rules_for(allow=[f"edit({pattern})"])

    assert [path for path in fitting if on("edit", path, rules) != Allow()] == []
    assert [path for path in others if on("edit", path, rules) == Allow()] == []


def test_a_rule_for_one_tool_that_changes_files_counts_for_all_of_them() -> None:
    tools = ("edit", "write", "multiedit")

    for named in tools:
        for tool in tools:
            assert on(tool, "src/a", rules_for(allow=[f"{named}(src/**)"])) == Allow()
            assert on(tool, "src/a", rules_for(allow=[tool], deny=[f"{named}(src/**)"])) == Deny(f"{named}(src/**)")


def test_a_rename_or_a_download_is_held_against_the_rules_for_files() -> None:
    rules = rules_for(allow=["rename", "download(https://x.org/*)"], deny=["edit(keys/**)"])
    rename = Need(tool="rename", action="rename", argument="a", paths=(f"{DIRECTORY}/a", f"{DIRECTORY}/keys/b"))
    fetched = Need(tool="download", action="get", argument="https://x.org/a", paths=(f"{DIRECTORY}/keys/b",))
    hook = Need(tool="download", action="get", argument="https://x.org/a", paths=(f"{DIRECTORY}/.git/hooks/x",))

    assert judge(rename, rules=rules, directory=DIRECTORY) == Deny("edit(keys/**)")
    assert judge(fetched, rules=rules, directory=DIRECTORY) == Deny("edit(keys/**)")
    assert isinstance(judge(hook, rules=rules, directory=DIRECTORY), Ask)


@pytest.mark.parametrize("path", [".git/config", "sub/.git/hooks/x", ".GIT/config", "longboat.json", "a/LONGBOAT.json"])
def test_what_decides_what_may_run_is_written_only_by_a_rule_that_names_it(path: str) -> None:
    """Else an allowed edit could allow everything else."""
    assert isinstance(on("edit", path, rules_for(allow=["edit", "write(**)", "edit(sub/**)"])), Ask)
    assert on("edit", path, rules_for(allow=[f"edit({path})"])) == Allow()
    assert on("view", path) == Allow()


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        (
            "https://docs.python.org/*",
            ["https://docs.python.org/3/a?b#c", "https://DOCS.python.org/", "https://docs.python.org"],
            [
                "http://docs.python.org/",
                "https://docs.python.org.evil.com/",
                "https://docs.python.org@evil.com/",
                "https://docs.python.org\\@evil.com/",
                "https://docs.python.org:8080/",
                "https://evil.com/https://docs.python.org/",
            ],
        ),
        (
            "https://*.python.org/*",
            ["https://docs.python.org/x"],
            ["https://python.org/", "https://evil.com/.python.org/"],
        ),
        (
            "https://x.org/a/*",
            ["https://x.org/a/b"],
            ["https://x.org/a/../b", "https://x.org/a/%2E%2e/b", "https://x.org/b"],
        ),
        ("https://x.org/a", ["https://x.org/a"], ["https://x.org/a/b", "https://x.org/a?b"]),
    ],
)
def test_what_a_pattern_of_addresses_fits(pattern: str, fitting: list[str], others: list[str]) -> None:
    rules = rules_for(allow=[f"fetch({pattern})"])

    assert [url for url in fitting if web("fetch", url, rules) != Allow()] == []
    assert [url for url in others if web("fetch", url, rules) == Allow()] == []
    assert isinstance(web("download", fitting[0], rules), Ask)


def test_a_star_in_the_name_of_an_mcp_tool() -> None:
    rules = rules_for(allow=["mcp__github__*"], deny=["mcp__github__delete_*"])

    assert web("mcp__github__list", "", rules) == Allow()
    assert web("mcp__github__delete_repo", "", rules) == Deny("mcp__github__delete_*")
    assert isinstance(web("mcp__gitlab__list", "", rules), Ask)


@for_each(
    ("rule", "part"),
    [
        ("", "it is not a tool name"),
        ("Bash(ls)", "it is not a tool name"),
        ("bash(ls", "it is not a tool name"),
        ("bash ls", "it is not a tool name"),
        ("bash()", "it is not a tool name"),
        ("*", "it is not a tool name"),
        ("bash( )", "the pattern is empty"),
        ("mcp__x__*(y)", "a tool name with * cannot have a pattern"),
        ("bash(ls; rm)", "';' is not allowed in"),
        ("bash(ls | cat)", "'|' is not allowed in"),
        ("bash(ls\nrm)", "is not allowed in"),
        ("bash(ls > x)", "'>' is not allowed in"),
        ("bash(ls $(x))", "'$' is not allowed in"),
        ('bash(ls "$x")', "is not allowed in"),
        ("bash(ls 'x)", "is not allowed in"),
        ("bash(rm:*)", "write a space and *"),
        ("bash(A=1)", "it does not name a command"),
        ("edit(~/x)", "write the absolute path"),
        ("edit(../x)", "“..” is not allowed"),
        ("fetch(docs.python.org)", "it is not a URL"),
        ("fetch(ftp://x.org/)", "it is not a URL"),
        ("fetch(https://x.org*)", "needs a / after it"),
        (7, "it is not a tool name"),
    ],
)
def test_a_malformed_rule_is_refused_with_what_is_wrong(rule: str, part: str) -> None:
    with pytest.raises(RuleInvalid) as caught:
        parse_rule(rule)

    assert isinstance(caught.value, ValueError)
    assert repr(rule) in str(caught.value)
    assert part in str(caught.value)


# What an answer would allow.


def offered(need: Need, rules: Rules = NONE) -> Offer:
    return grant_for(need, rules=rules, directory=DIRECTORY)


@for_each(
    ("command", "narrow", "wide"),
    [
        ("make all", ["bash(make all)"], ["bash(make all *)"]),
        ("pytest -q", ["bash(pytest -q)"], ["bash(pytest *)"]),
        ("git commit -m 'a; b'", ["bash(git commit -m 'a; b')"], ["bash(git commit *)"]),
        ("npm run build -- x", ["bash(npm run build -- x)"], ["bash(npm run build *)"]),
        ("npm run", ["bash(npm run)"], []),
        ("git -C x push", ["bash(git -C x push)"], []),
        ("rm -rf x", ["bash(rm -rf x)"], []),
        ("python -c 'x'", ["bash(python -c x)"], []),
        ("python a.py b", ["bash(python a.py b)"], ["bash(python a.py *)"]),
        ("make $x", ["bash(= make $x)"], []),
        ("pytest $x", ["bash(= pytest $x)"], []),
        ("pytest tests/*.py", ["bash(= pytest tests/*.py)"], ["bash(pytest *)"]),
        ("pytest a*; make a", ["bash(= pytest a*; make a)"], ["bash(pytest *)", "bash(make a *)"]),
        ("A=1 make all", ["bash(A=1 make all)"], []),
        ("timeout 9 make all | head", ["bash(make all)"], ["bash(make all *)"]),
        ("make a && make b", ["bash(make a)", "bash(make b)"], ["bash(make a *)", "bash(make b *)"]),
        ("make a > out", ["write(out)", "bash(make a)"], ["write(*)", "bash(make a *)"]),
        ("make a > /etc/x", ["write(/etc/x)", "bash(make a)"], ["write(/etc/x)", "bash(make a *)"]),
        ("make /etc/x", ["bash(make /etc/x)"], []),
        ("cp a .git/config", [], []),
        ("make longboat.json", [], []),
        ("cd .git && make all", [], []),
        ("busybox vi x", ["bash(busybox vi x)"], []),
        ("flock l make all", ["bash(flock l make all)"], []),
        ("strace make", ["bash(strace make)"], []),
        ("script out", ["bash(script out)"], []),
        ("gdb a", ["bash(gdb a)"], []),
        ("ionice make", ["bash(ionice make)"], []),
        ("java -jar a", ["bash(java -jar a)"], []),
        ("uv run pytest -q", ["bash(uv run pytest -q)"], ["bash(uv run pytest *)"]),
        ("uv run python -c x", ["bash(uv run python -c x)"], []),
        ("uv tool run x", ["bash(uv tool run x)"], []),
        ("npx sh x", ["bash(npx sh x)"], []),
        ("poetry run nice x", ["bash(poetry run nice x)"], []),
        ("docker run ubuntu x", ["bash(docker run ubuntu x)"], ["bash(docker run ubuntu *)"]),
        ("git rm x", ["bash(git rm x)"], ["bash(git rm *)"]),
        ("eval ls", ["bash(= eval ls)"], []),
        ("make a; $x", ["bash(= make a; $x)"], []),
        ("export PATH=x; make a", ["bash(= export PATH=x; make a)"], []),
        ("ls", [], []),
    ],
)
def test_what_is_offered_for_a_command(command: str, narrow: list[str], wide: list[str]) -> None:
    offer = offered(Need(tool="bash", action="run", argument=command))

    assert offer == Offer(narrow=tuple(narrow), wide=tuple(wide))


def test_what_is_offered_for_other_tools() -> None:
    edit = Need(tool="edit", action="edit", argument="src/a", paths=(f"{DIRECTORY}/src/a",))
    view = Need(tool="view", action="read", argument="/etc/x", paths=("/etc/x",))
    fetch = Need(tool="fetch", action="get", argument="https://x.org/a?b=c")
    mcp = Need(tool="mcp__x__y", action="call", argument="{}")

    assert offered(edit) == Offer(narrow=("edit(src/a)",), wide=("edit(src/**)",))
    assert offered(view) == Offer(narrow=("view(/etc/x)",))
    assert offered(fetch) == Offer(narrow=("fetch(https://x.org/a?b=c)",), wide=("fetch(https://x.org/*)",))
    assert offered(mcp) == Offer(narrow=("mcp__x__y",))
    starred = Need(tool="fetch", action="get", argument="https://x.org/*")
    assert offered(starred) == Offer(wide=("fetch(https://x.org/*)",))


def test_only_what_no_rule_allows_yet_is_offered() -> None:
    rules = rules_for(allow=["bash(make a)"], deny=["bash(rm *)"])

    assert offered(Need(tool="bash", action="run", argument="make a; make b"), rules).narrow == ("bash(make b)",)
    assert offered(Need(tool="bash", action="run", argument="make b; rm x"), rules) == Offer()


@for_each("command", [*ASKED, *DENIED])
def test_what_is_offered_is_enough_and_for_the_opaque_it_is_the_very_text(command: str) -> None:
    need = Need(tool="bash", action="run", argument=command)
    offer = offered(need)

    for rules in filter(None, (offer.narrow, offer.wide)):
        assert judge(need, rules=NONE, grants=parse_rules(rules), directory=DIRECTORY) == Allow()
    if parse(command).opaque:
        assert offer in (Offer(), Offer(narrow=(f"bash(= {command.strip()})",)))


@given(words=st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=8), min_size=1, max_size=5))
def test_the_narrow_offer_is_for_exactly_those_words(words: list[str]) -> None:
    command = shlex.join(["frob", *words])
    assume(not parse(command).opaque)
    (rule,) = offered(Need(tool="bash", action="run", argument=command)).narrow
    rules = rules_for(allow=[rule])

    assert bash(command, rules) == Allow()
    assert isinstance(bash(command + " more", rules), Ask)
    assert isinstance(bash(command + "x", rules), Ask)


# Properties.

HARMLESS = st.sampled_from(["git status", "npm test -- a", "ls -la", "echo 'a b'", "cat < a", "true", "make build"])
REFUSED = st.sampled_from(["rm x", "rm -rf 'a b'", "\\rm x", "/bin/rm $y", "git push", "git 'push' -f", "curl x"])
JOINTS = st.sampled_from([";", " ; ", "\n", " & ", " && ", " || ", " | ", " |& ", ";\n\n", " # x\n", " \\\n && "])
WRAPPERS = st.sampled_from(
    [
        *(
            "{0}",
            "timeout 5 {0}",
            "env A=B {0}",
            "nice nohup {0}",
            "command -p {0}",
            "exec {0}",
            "sudo {0}",
            "xargs {0}",
        ),
        *("find . -exec {0} {{}} +", "A=B {0}", "> src/o {0}", "sudo -u x env -i timeout -k 1 5 {0}", "2>&1 {0} <a"),
    ]
)
HIDINGS = st.sampled_from(
    [
        *(
            "( {0} )",
            "{{ {0}; }}",
            "x=$({0})",
            "echo $({0})",
            'echo "a $({0}) b"',
            "`{0}`",
            "[[ -f $({0}) ]]",
            "ls & {0}",
        ),
        *("cat <({0})", "true >({0})", "echo ${{x:-$({0})}}", "cat <<E\n$({0})\nE\n", "cat <<E\nx\nE\n{0}"),
        *("cat <<< $({0})", "if {0}; then ls; fi", "if ls; then {0}; fi", "for i in a; do {0}; done", "A=$({0}) ls"),
        *(
            "while {0}; do ls; done",
            "case a in a) {0};; esac",
            "f() {{ {0}; }}; f",
            "echo $(( 1 + $({0}) ))",
            "ls | {0}",
        ),
    ]
)


@given(
    around=st.tuples(HARMLESS, JOINTS, HARMLESS),
    wrapper=WRAPPERS,
    refused=REFUSED,
    hidings=st.lists(HIDINGS, max_size=3),
)
def test_a_denied_command_is_never_allowed_wherever_it_stands(
    around: tuple[str, str, str], wrapper: str, refused: str, hidings: list[str]
) -> None:
    before, joint, after = around
    hidden = wrapper.format(refused)
    for hiding in hidings:
        hidden = hiding.format(hidden)
    command = f"{before}{joint}{hidden}\n{after}"

    assert bash(command) != Allow()
    assert bash(command, rules_for(allow=["bash"], deny=DENY)) != Allow()


@given(wrapper=WRAPPERS, refused=REFUSED, hidings=st.lists(HIDINGS, max_size=3))
def test_a_denied_command_that_can_be_read_is_denied(wrapper: str, refused: str, hidings: list[str]) -> None:
    command = wrapper.format(refused)
    for hiding in hidings:
        command = hiding.format(command)
    assume(not parse(command).opaque)

    assert isinstance(bash(command), Deny)


NOISE = st.lists(st.sampled_from([*PIECES, " rm x ", "rm", "evil"]) | st.text(max_size=3), max_size=5).map("".join)


@given(command=HARMLESS, place=st.integers(0, 20), noise=NOISE)
def test_text_put_into_an_allowed_command_is_allowed_only_if_every_part_of_it_is(
    command: str, place: int, noise: str
) -> None:
    """No unparsed part is ever allowed (A2): what is allowed was read to its end, each command an allowed one."""
    text = command[:place] + noise + command[place:]
    if bash(text) != Allow():
        return
    script = parse(text)
    names = {command.words[0] for command in script.commands}

    assert script.opaque == ""
    assert names <= {Word(name) for name in ("git", "npm", "ls", "echo", "cat", "true", "make", "tr", "test")}
    assert all(each.target.text == "a" or not each.writes for each in script.redirections)


@given(text=st.text(max_size=100) | NOISE)
def test_judging_never_raises(text: str) -> None:
    assert isinstance(bash(text), Allow | Deny | Ask)
    assert isinstance(offered(Need(tool="bash", action="run", argument=text)), Offer)


@given(text=st.text(max_size=40) | st.builds("{}({})".format, st.sampled_from(["bash", "edit", "fetch"]), NOISE))
def test_a_rule_is_read_or_refused(text: str) -> None:
    try:
        rule = parse_rule(text)
    except RuleInvalid:
        return
    assert rule.text == text.strip()


@pytest.mark.parametrize(
    ("allow", "deny", "command", "asked"),
    [
        ("bash(cat *)", "view(.env)", "cat .env", True),
        ("bash", "view(.env)", "cat ./.env", True),
        ("bash", "view(.env)", "cat README.md", False),
        ("bash", "edit(mig/**)", "cp calc.py mig/c.py", True),
        ("bash", "edit(mig/**)", "tee mig/b.sql < calc.py", True),
        ("bash", "edit(mig/**)", "cat mig/b.sql", False),
        ("bash", "edit(mig/**)", "cp calc.py other/c.py", False),
        ("bash", "view", "ls src", False),
    ],
)
def test_a_command_that_names_a_denied_file_is_asked_whatever_is_allowed(
    allow: str, deny: str, command: str, asked: bool
) -> None:
    """A2: rules over files bind the shell too, as far as its words can be read."""
    need = Need(tool="bash", action="run", argument=command)
    verdict = judge(need, rules=rules_for(allow=[allow], deny=[deny]), directory="/work")
    assert isinstance(verdict, Ask if asked else Allow), verdict


@pytest.mark.parametrize(
    "command",
    [
        "bash - -c ls",
        "sh - -c ls",
        "sh -c x+=/run",
        "grep -v -- -zzz /etc/passwd",
        "grep -v - /etc/passwd",
        "rg -v -- -zzz /etc/passwd",
        "uniq l*.json",
        "tree -Lo 1 longboat.json",
        "cat https://../../../etc/passwd",
    ],
)
def test_what_only_seems_to_look_is_asked(command: str) -> None:
    """A2: each of these was once taken for harmless."""
    verdict = judge(Need(tool="bash", action="run", argument=command), rules=rules_for(), directory="/work")
    assert isinstance(verdict, Ask), verdict


@pytest.mark.parametrize(
    ("start", "piece", "times"),
    [
        ("cat ", "*a" * 30 + " ", 50),
        ("cat ", "a*/" * 1_000 + "x ", 2),
        ("cat ", "a,", 300),
        ("cat -", "a", 1_000),
        ("git log ", "'s*' ", 50),
        ("diff ", "a ", 30),
    ],
)
def test_a_long_command_is_judged_in_steps_in_proportion(start: str, piece: str, times: int) -> None:
    rules = rules_for(allow=["bash(cat *)"], deny=["view(**/a*b*a/**/secrets/**)", "view(.env)", "edit(mig/**)"])

    def judge_repeated(times: int) -> None:
        bash(start + piece * times, rules)
        named_paths(start + piece * times, directory=DIRECTORY)

    check_proportion(judge_repeated, times)


def test_a_name_that_ends_with_the_status_is_looked_up_as_a_pattern() -> None:
    """`link0` may lead out of the workspace."""
    named = named_paths("true; cat link$?", directory=DIRECTORY)

    assert [(each.path, each.glob) for each in named if "link" in each.path] == [(f"{DIRECTORY}/link*", True)]
