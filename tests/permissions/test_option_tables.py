"""The options of commands that only look (A2, D3): how their values are read, and what the programs say themselves."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from program_help import UNKNOWN, help_of, installed, options_in, run, takes_no_value

from cases import for_each
from longboat.permissions.shell.harmless import FIND_BARE, FIND_VALUED, harmless_paths
from longboat.permissions.shell.option_tables import COREUTILS, DATE, GIT, GREP, LS, OTHER_READERS, RG, TREE
from longboat.permissions.shell.options import Options, read_command_line
from longboat.permissions.shell.script import WRAPPERS, Command, Word

TABLES: dict[str, Options] = {
    **COREUTILS,
    **OTHER_READERS,
    "ls": LS,
    "grep": GREP,
    "egrep": GREP,
    "fgrep": GREP,
    "rg": RG,
    "tree": TREE,
    "date": DATE,
    **{f"git {subcommand}": options for subcommand, options in GIT.items()},
}
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.@"

UNDOCUMENTED = {("grep", "-y"), ("egrep", "-y"), ("fgrep", "-y")}
"""Known to the program, although its help does not say so."""
NEWER = {("rg", "-d")}
"""Known to later versions: ripgrep 14 has `-d` for `--max-depth`."""
WITHOUT_HELP = {"type", "which"}
NOT_ALONE = {
    *((command, "--follow") for command in ("git log", "git show")),
    ("git show", "--graph"),
}
"""They need a path, or another option beside them, before the program looks at the rest."""


def line(command: str, *words: str) -> bool:
    """Whether the command with these words counts as one that only looks."""
    return harmless_paths(Command(tuple(map(Word, (*command.split(), *words))))) is not None


def dashed(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name}"


def without_value(options: Options) -> Iterator[str]:
    yield from options.flags
    yield from sorted(options.longs)


def with_value(options: Options) -> Iterator[str]:
    yield from options.valued
    yield from sorted(options.longs_valued)


def with_optional_value(options: Options) -> Iterator[str]:
    yield from options.optional
    yield from sorted(options.longs_optional)


def every(kind: str) -> list[tuple[str, str]]:
    of = {"no": without_value, "yes": with_value, "maybe": with_optional_value}[kind]
    return [(command, name) for command, options in TABLES.items() for name in of(options)]


# How values are read.


@for_each(("command", "name"), every("yes"))
def test_the_value_of_an_option_is_no_end_of_options_d3(command: str, name: str) -> None:
    option = dashed(name)
    bundle = f"-{TABLES[command].flags[:1]}{name}" if len(name) == 1 else option

    for words in ([option], [option, "--", UNKNOWN], [option, UNKNOWN], [bundle, "--", UNKNOWN], [bundle]):
        assert not line(command, *words), words
        assert not line(command, "x", *words), words
    attached = f"{option}=1" if len(name) > 1 else f"{option}1"
    assert not line(command, attached, UNKNOWN)
    assert not line(command, option, "1", UNKNOWN)
    assert not line(command, option, "1", "-%")
    assert read_command_line(TABLES[command], [Word(option), Word("1"), Word("x")]) == read_command_line(
        TABLES[command], [Word("x"), Word(option), Word("1")]
    )


@for_each(("command", "name"), every("yes"))
def test_an_option_with_its_value_is_known(command: str, name: str) -> None:
    option = dashed(name)

    assert line(command, option, "1")
    assert line(command, f"{option}=1" if len(name) > 1 else f"{option}1")


@for_each(("command", "name"), every("no"))
def test_an_option_without_a_value_takes_none_d3(command: str, name: str) -> None:
    option = dashed(name)

    assert line(command, option)
    assert not line(command, option, UNKNOWN)
    assert not line(command, f"{option}=x" if len(name) > 1 else f"{option}%")
    assert line(command, option, "--") or TABLES[command].max_operands == 0


@for_each(("command", "name"), every("maybe"))
def test_an_optional_value_is_never_the_next_word_d3(command: str, name: str) -> None:
    option = dashed(name)

    assert line(command, option)
    assert line(command, f"{option}=1" if len(name) > 1 else f"{option}1")
    assert not line(command, option, UNKNOWN)
    found = read_command_line(TABLES[command], [Word(option), Word("--")])
    assert found is not None
    assert found.operands == ()


@for_each("command", TABLES)
def test_a_beginning_of_a_long_option_is_asked_d3(command: str) -> None:
    """Programs take `--outp` for `--output`; what it stands for depends on their version."""
    options = TABLES[command]
    known = options.longs | options.longs_valued | options.longs_optional
    shortened = {name[:end] for name in known for end in range(1, len(name))} - known

    assert [each for each in shortened if line(command, f"--{each}") or line(command, f"--{each}=1")] == []


@for_each("command", TABLES)
def test_a_letter_that_is_not_listed_is_asked_wherever_it_stands_d3(command: str) -> None:
    options = TABLES[command]
    unlisted = set(LETTERS) - set(options.flags + options.valued + options.optional)
    unlisted -= set("0123456789") if options.numbers else set()
    own = set("ILP") if command == "tree" else set()

    for letter in sorted(unlisted - own):
        assert not line(command, f"-{letter}"), letter
        assert not options.flags or not line(command, f"-{options.flags[-1]}{letter}"), letter


def test_paths_in_the_values_of_options_are_judged_d3() -> None:
    def paths(text: str) -> list[str]:
        return [word.text for word in harmless_paths(Command(tuple(map(Word, text.split())))) or ()]

    assert paths("grep -f /etc/x y") == ["y", "/etc/x"]
    assert paths("grep -vf/etc/x y") == ["y", "/etc/x"]
    assert paths("grep --exclude-from=/etc/x y z") == ["z", "/etc/x"]
    assert paths("realpath --relative-to=/etc x") == ["x", "/etc"]
    assert paths("git log -n /etc") == ["/etc"]
    assert paths("git log -S /api -- src") == ["src"]
    assert paths("cut -d / -f 1 a") == ["a"]
    assert paths("rg -e /api -- /etc") == ["/etc"]
    assert paths("rg -- -x /etc") == ["/etc"]


# What the programs say.


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("repository")
    (place / "1").write_text("1\n")
    git = [installed("git"), "-c", "user.name=x", "-c", "user.email=x@y"]
    for words in (["init", "-q"], ["add", "1"], ["commit", "-qm", "1"]):
        run([*git, *words], place)
    return place


WITH_HELP = sorted(set(TABLES) - WITHOUT_HELP - {"tree", "git reflog", "git rev-parse"})
"""Those whose help lists their options one by one."""


@pytest.mark.parametrize("command", WITH_HELP)
def test_every_option_that_a_program_names_is_known_or_asked(command: str, repository: Path) -> None:
    """And where its help shows whether an option takes a value, the table agrees."""
    options = TABLES[command]
    named = options_in(help_of(command.split(), repository))
    assert len(named) > (1 if command != "git merge-base" else 0), "the help was not understood"
    flags, valued, optional = (set(of(options)) for of in (without_value, with_value, with_optional_value))
    wrong = []
    for option, takes in named.items():
        name = option.lstrip("-")
        known = name in flags | valued | optional
        if not known and any(line(command, *words) for words in ([option], [option, "1"], [f"{option}=1"])):
            wrong.append(f"{option} is not in the table, and not asked")
        if (name in flags and takes == "yes" and not _shown_with_another(command, option)) or (
            name in valued and takes == "no" and command != "git rev-list"
        ):
            wrong.append(f"{option} takes a value: {takes}")

    assert wrong == []


def _shown_with_another(command: str, option: str) -> bool:
    """Of `-p, --indicator-style=slash` the value says what the letter stands for."""
    return (command, option) in {("ls", "-p"), ("sort", "-c"), ("sort", "-C"), ("diff", "-u")}


@pytest.mark.parametrize("command", [each for each in WITH_HELP if not each.startswith("git ")])
def test_every_option_of_a_table_is_one_of_the_program(command: str, repository: Path) -> None:
    """Else it would be a beginning of another one, of which nothing is known."""
    named = set(options_in(help_of(command.split(), repository)))
    options = TABLES[command]
    known = {dashed(name) for of in (without_value, with_value, with_optional_value) for name in of(options)}
    spared = {option for of, option in UNDOCUMENTED | NEWER if of == command}

    assert known - named - spared == set()


@pytest.mark.parametrize("command", sorted(set(TABLES) - {"type", "which", "egrep", "fgrep", "git rev-parse"}))
def test_a_program_takes_no_value_where_the_table_has_none_d3(command: str, repository: Path) -> None:
    """Asked of the program itself: behind an option without a value, it reads the next word as an option."""
    options = TABLES[command]
    installed(command.split(maxsplit=1)[0])
    ending = {"h", "help", "v" if command in ("cmp", "file") else "V", "V", "version", "pcre2-version"}
    names = [*without_value(options), *with_optional_value(options)]
    argv = [*command.split(), *(["HEAD"] if command in ("git diff", "git rev-list") else [])]
    wrong = [
        dashed(name)
        for name in names
        if name not in ending
        and (command, dashed(name)) not in NEWER | NOT_ALONE
        and not takes_no_value([*argv, dashed(name)], repository)
    ]

    assert wrong == []


@pytest.mark.parametrize("command", sorted({*WITH_HELP, "find"} - {f"git {each}" for each in GIT} - {"rg"}))
def test_a_program_takes_a_value_where_the_table_has_one_d3(command: str, repository: Path) -> None:
    """But git and ripgrep, which refuse some values that look like options; their help is compared."""
    installed(command)
    if command == "find":
        valued = sorted(FIND_VALUED)
    else:
        valued = [dashed(name) for name in with_value(TABLES[command]) if (command, dashed(name)) not in NEWER]

    assert [option for option in valued if takes_no_value([command, option], repository)] == []


def test_every_predicate_of_find_is_known_or_asked(repository: Path) -> None:
    words = help_of(["find"], repository).replace("[", " [").split()
    following = dict(itertools.pairwise(words))
    named = {word for word in words if word.startswith("-") and word[1:2].isalpha()} - {"-Olevel", "-D"}
    assert {"-delete", "-exec", "-fprintf", "-newer", "-quit"} <= named

    asked = {each for each in named if not line("find", ".", each) and not line("find", ".", each, "1")}
    assert asked | FIND_BARE | FIND_VALUED >= named
    assert asked >= {"-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls"}
    assert asked >= {"-files0-from", "-follow"}
    for each in named & FIND_BARE:
        assert not line("find", ".", each, "1"), each
        assert not following[each].isupper() or len(following[each]) == 1 or "EXPR" in following[each], each
    for each in named & FIND_VALUED:
        assert not line("find", ".", each), each
        assert not following[each].startswith("-"), each


@pytest.mark.parametrize("command", ["sed", "tar", "awk", "mawk", "gawk", "xargs", "env", "tee", "dd", "cp"])
def test_no_option_of_a_program_that_can_write_or_run_is_known(command: str, repository: Path) -> None:
    """Of sed one form is: `sed -n 10,20p FILE`."""
    named = options_in(help_of([command], repository))

    for option in named:
        assert not line(command, option), option
        assert not line(command, option, "1"), option
        assert not line(command, f"{option}=1"), option
        assert command != "sed" or not line(command, "-n", "1p", option), option


@pytest.mark.parametrize("command", sorted(set(WRAPPERS) - {"builtin", "command", "exec", "time"}))
def test_a_wrapper_takes_values_as_the_table_says_d3(command: str, repository: Path) -> None:
    """What is looked through begins where the program takes it to begin."""
    installed(command)
    wrapper = WRAPPERS[command]

    assert [flag for flag in wrapper.flags - {"-"} if not takes_no_value([command, flag], repository)] == []
    assert [option for option in wrapper.valued if takes_no_value([command, option], repository)] == []
