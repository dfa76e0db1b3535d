"""The shell reader (A2): what it finds, what it refuses, and that bash runs nothing that it did not find."""

import contextlib
import functools
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from benchmarks.texts import SHELL_PIECES, repeated
from hypothesis import given
from hypothesis import strategies as st
from shell_corpus import ALLOWED, ASKED, DENIED, FRAMES, PIECES
from shell_reader_attacks import HEREDOCS_THAT_END_EARLY

from cases import for_each
from longboat.permissions.shell.script import Command, Kind, Word, parse
from work import check_proportion, steps

FOUND = [
    ("git status", ["git status"]),
    ("git status; ls -l", ["git status", "ls -l"]),
    ("a && b || c & d | e |& f\ng", ["a", "b", "c", "d", "e", "f", "g"]),
    ("( a ); { b; }; ! c; time -p d; time -- e", ["a", "b", "c", "d", "e"]),
    ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
    ("for i in $(a); do b $i; done", ["a", "b <$i>"]),
    ("while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]),
    ("case $(a) in x|y) b;; (z) c;& *) d; esac", ["a", "b", "c", "d"]),
    ('a "$(b "$(c)")" `d` <(e) >(f)', ["c", 'b <"$(c)">', "d", "e", "f", 'a <"$(b "$(c)")"> <`d`> <<(e)> <>(f)>']),
    ("a ${x:-$(b)} <<< $(c)", ["b", "c", "a <${x:-$(b)}>"]),
    ("a <<E\n$(b) `c` \\$(no)\nE\nd", ["a", "b", "c", "d"]),
    ("a <<'E'\n$(no)\nE\nd", ["a", "d"]),
    ("a <<E <<'F' | d\n$(b)\nE\n$(no)\nF\ne", ["a", "d", "b", "e"]),
    ("[[ -f $(a) ]] && b", ["a", "b"]),
    ("a 'b c' \"d\"e\\ f $'g' h#i # j", ["a b c de f g h#i"]),
    ("env -i A=B timeout -k 1 5 nice -n 3 a b", ["a b"]),
    ("nohup command -p exec a; builtin b", ["a", "b"]),
    ("sudo -u root a", ["sudo -u root a"]),
    ("xargs -n 1 a b", ["a b <{…}>"]),
    ("xargs -I% a -%- b", ["a <{…}> b <{…}>"]),
    ("find . -exec a {} + -o -exec b x{} \\;", ["find . -exec a {} + -o -exec b x{} ;", "a <{…}>", "b <{…}>"]),
    ("bash -c 'a; b \"$1\"' x y", ["a", 'b <"$1">']),
    ("sh -c \"bash -c 'a | b'\"", ["a", "b"]),
    ("a 2>&1 >x", ["a"]),
    # What is known of the variable of a loop, just there.
    ('for i in a b; do c $i "$i x" ${i}; done; d $i', ["c a a x a", "c b b x b", "d <$i>"]),
    ("for i in a b; do for j in c; do d $i$j; done; done", ["d ac", "d bc"]),
    ("for i in 'a b' '*'; do c $i; d \"$i\"; done", ["c <$i>", "d a b", "c <$i>", "d *"]),
    ('for i in x/*; do c $i; d "$i"; done', ["c <$i>", "d <x/*>"]),
    ("for i in a; do c ${i%x} ${i:-d} ${#i}; done", ["c <${i%x}> <${i:-d}> <${#i}>"]),
    ("for i in a $x; do c $i; done", ["c <$i>"]),
    ("for i in a; do i=b; c $i; done", ["c <$i>"]),
    ("for i in a; do i=b d; c $i; done", ["d", "c <$i>"]),
    ("for i in a; do : ${i:=b}; c $i; done", [": <${i:=b}>", "c <$i>"]),
    ("for i in a; do export i=b; c $i; done", ["c <$i>"]),
    ("for i in a; do command export i=b; c $i; done", ["c <$i>"]),
    ("for i in a; do for i in b; do c; done; d $i; done", ["c", "d <$i>"]),
    ("for i in a; do bash -c 'c $i'; done", ["c <$i>"]),
    ("for i; do c $i; done", ["c <$i>"]),
    ("select i in a; do c $i; done", ["c <$i>"]),
    ("for i in a b; do c <<E\n$i $(d $i)\nE\ndone", ["c", "d a", "c", "d b"]),
    ("for i in a; do c <<E; done\n$(d $i)\nE\n", ["c", "d <$i>"]),
    # Any word with a sign of equality is a setting for these.
    ("env 1=2 a.b=c d e", ["d e"]),
    (">x a <y b", ["a b"]),
]


def shown(command: Command) -> str:
    return " ".join(word.text if word.literal else f"<{word.text}>" for word in command.words)


@for_each(("text", "commands"), FOUND)
def test_every_simple_command_is_found_a2(text: str, commands: list[str]) -> None:
    script = parse(text)

    assert ([shown(command) for command in script.commands], script.opaque) == (commands, "")


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("a > x", [("x", True)]),
        ("a >> x 2> y < z", [("x", True), ("y", True), ("z", False)]),
        ("a &> x; b &>> y; c >| z; d <> w", [("x", True), ("y", True), ("z", True), ("w", True)]),
        ("a >& x", [("x", True)]),
        ("a 2>&1 >&2 <&- >&-", []),
        ("{ a; } > x; ( b ) < y; for i in c; do d; done > z", [("x", True), ("y", False), ("z", True)]),
        ("> 'x y'", [("x y", True)]),
        ("exec 3<> x", [("x", True)]),
        ("bash -c 'a > x'", [("x", True)]),
        ("a $(b > x) <<E\n$(c > y)\nE\n", [("x", True), ("y", True)]),
    ],
)
def test_every_redirected_file_is_found_a2(text: str, targets: list[tuple[str, bool]]) -> None:
    script = parse(text)

    assert ([(each.target.text, each.writes) for each in script.redirections], script.opaque) == (targets, "")


def test_what_a_command_sets_is_found() -> None:
    script = parse("A=1 B=$x c; d=2; export E=3; for f in g; do h; done; : ${i:=j}; env K=4 l")

    assert [[each.name for each in command.assignments] for command in script.commands] == [["A", "B"], [], [], ["K"]]
    assert (script.variables, script.exported) == (("d", "f", "i"), ("E",))


@for_each(
    ("text", "kind"),
    [
        ("'*'", Kind.LITERAL),
        ('"$"', Kind.LITERAL),
        ("stash@{0}", Kind.LITERAL),
        ("{}", Kind.LITERAL),
        ("*.py", Kind.GLOB),
        ("a?", Kind.GLOB),
        ("[ab]", Kind.GLOB),
        ("x$?", Kind.STATUS),
        ("$?*", Kind.DYNAMIC),
        ("~", Kind.DYNAMIC),
        ("a=~/x", Kind.DYNAMIC),
        ("{a,b}", Kind.DYNAMIC),
        ("{1..3}", Kind.DYNAMIC),
        ('"$x"', Kind.DYNAMIC),
        ("$'\\n'", Kind.LITERAL),
        ("$'\\x6b\\153\\u006b'", Kind.LITERAL),
        ("$'\\xe9'", Kind.DYNAMIC),
        ("$'\\0'", Kind.DYNAMIC),
        ("$'\\ca'", Kind.DYNAMIC),
        ("$((1+1))", Kind.DYNAMIC),
    ],
)
def test_what_is_known_of_a_word_before_it_runs(text: str, kind: Kind) -> None:
    (command,) = parse(f"a {text}").commands

    assert command.words[1].kind is kind


def test_values_that_are_read_as_input_are_found() -> None:
    script = parse("a <<< \"$x y\"; b <<E\n${z} $(c) \\$w\nE\nd <<'E'\n$v\nE\ne $u")

    assert script.fed == ("$x", "${z}")


@pytest.mark.parametrize(
    ("text", "decisive"),
    [
        ("[[ $a == b && -n ${c%d} ]]", ["$a", "${c%d}"]),
        ("case $a in b|$c) d;; esac", ["$a", "$c"]),
        ("for i in a $b; do c; done", ["$b"]),
        ("a=${b:?c}", ["$b"]),
        ("[[ -f $a ]]", ["$a", "$a"]),
        ("a=1; [[ $a == 1 ]]; b=$a$(c); case ${b#x} in d) e;; esac", []),
        ("for i in a b; do case $i in a) [[ ${i%x} == b ]];; esac; done", []),
        ("while a=$(b); do [[ -n $a ]]; done; [[ -n $a ]]", []),
        ("a=1; { b=2; }; [[ $a$b == 3 ]]", []),
        ("a && b=1 && [[ $b == 1 ]]", []),
        ("a && b=1; [[ $b == 1 ]]", ["$b"]),
        ("(a=1); b | c=1; d=1 & [[ $a$c$d == 1 ]]", ["$a", "$c", "$d"]),
        ("a=1; while b; do [[ $a == 2 ]]; c=$d; a=$c; done", ["$a"]),
        ("a=1; a+=2; b+=1; [[ $a$b == 1 ]]", ["$b"]),
        ("[[ $HOME$?$#$PWD == a ]]", []),
        ("bash -c '[[ $1 == a ]]' b c", ["$1"]),
    ],
)
def test_variables_that_decide_what_is_done_are_found_d14(text: str, decisive: list[str]) -> None:
    script = parse(text)

    assert (list(script.decisive), script.opaque) == (decisive, "")


def test_many_variables_are_followed_in_proportion() -> None:
    check_proportion(lambda size: parse("".join(f"a{n}=;b+=$a{n};" for n in range(size)) + "[[ $b ]]"), 100)
    check_proportion(lambda size: parse(("(a=1;" * 20 + "x=$a;" + ")" * 20) * size), 10)


def test_what_is_set_for_a_shell_that_runs_nothing_is_a_command_of_its_own_d1() -> None:
    texts = ("A=1 bash -c ''", "env A=1 timeout 5 sh -c 'b=2'", "A=1 bash -c 'bash -c #'", "A=1 bash -c '[[ -n x ]]'")

    for text in texts:
        (command,) = parse(text).commands
        assert [each.name for each in command.assignments] == ["A"], text
    assert parse("bash -c ''").commands == ()


def test_a_login_shell_is_a_command_of_its_own_d1() -> None:
    assert [shown(each) for each in parse("bash -lc 'a; b'").commands] == ["bash -l", "a", "b"]
    assert [shown(each) for each in parse("A=1 sh -euo pipefail -l -c a").commands] == ["sh -l", "a"]


def test_taking_variables_away_from_git_is_a_command_of_its_own() -> None:
    assert [shown(each) for each in parse("env -i A=1 git log").commands] == ["git log", "env -i"]
    assert [shown(each) for each in parse("env -u A bash -c 'rg x'").commands] == ["rg x", "env -u A"]
    assert [shown(each) for each in parse("env -i ls; env A=1 git log").commands] == ["ls", "git log"]


def test_what_a_runner_may_give_to_a_shell_is_a_shadow() -> None:
    texts = ("watch 'rm x'", "flock l -c 'rm x'", "npx -c 'rm x'", "uv run bash -c 'rm x'", "sudo A=B rm x")

    assert all("rm x" in [shown(each) for each in parse(text).shadows] for text in texts)
    assert "rm x" not in [shown(each) for each in parse("npm test 'a; rm x'").shadows]


def test_loops_in_loops_are_read_in_bounded_steps() -> None:
    """Not each word for each word of the loops around it."""
    deep = "for i in a b c d e f g h; do " * 25 + "x $i; " + "done; " * 25
    wide = "for i in " + "a " * 300 + "; do " + "x $i; " * 300 + "done"
    long = f"for i in a b c; do echo '{'x' * 90_000}'; done"

    for text in (deep, wide, long):
        assert parse(text).commands
        assert steps(functools.partial(parse, text)) < 100 * len(text)


def test_a_name_that_hides_another_command_stays_findable_for_refusals() -> None:
    script = parse("sudo env A=B rm x; timeout 5 ls")

    assert [shown(command) for command in script.commands] == ["sudo env A=B rm x", "ls"]
    assert [shown(command) for command in script.shadows] == ["env A=B rm x", "rm x", "timeout 5 ls"]


def test_what_was_found_before_the_unreadable_part_is_kept() -> None:
    script = parse("rm x; ls )")

    assert [shown(command) for command in script.commands] == ["rm x", "ls"]
    assert script.opaque


TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=12).map("".join)


@given(text=TEXTS | st.text(max_size=200))
def test_reading_never_raises(text: str) -> None:
    script = parse(text)

    assert all(isinstance(word, Word) for command in script.commands for word in command.words)


@for_each("piece", SHELL_PIECES)
def test_reading_takes_steps_in_proportion_whatever_is_repeated(piece: str) -> None:
    check_proportion(lambda length: parse(repeated(piece, length)), 600)


def test_a_megabyte_is_opaque_at_once() -> None:
    text = "ls\n" * 350_000

    assert parse(text).opaque == "it is longer than 100,000 characters"
    assert steps(lambda: parse(text)) < 100


def test_deep_nesting_is_opaque() -> None:
    assert parse("$(" * 20 + "ls" + ")" * 20).commands
    assert parse("echo " + "$(" * 40 + "ls" + ")" * 40).opaque == "it is nested too deeply"
    assert parse("env " * 60 + "ls").opaque == "it is nested too deeply"


# The comparison with bash: every builtin is off and there is no PATH, so that each command ends in a handler that notes
# its words. Scripts have no slash, and loops none but over given words, so nothing real runs and everything ends.

RECORDER = r"""
command_not_found_handle() {
  # Bash writes line by line: with a newline in it, a note would mix with those of the rest of a pipeline.
  printf '%s\037' "${@//$'\n'/$'\035'}" $'\036' >&9
  case "$#$1" in 1cat) printf '%s\n' "$(</dev/stdin)" ;; esac
}
exec 2>/dev/null </dev/null >/dev/null
PATH=/nonexistent
builtins=$(compgen -b)
place=$1; shift; n=0
for script in "$@"; do
  n=$((n+1))
  (
    cd "$place/$n" && exec 9>>"$place/$n.log"
    ulimit -t 5
    set -- "$script"
    for name in $builtins; do case $name in printf|enable|eval|break|continue) ;; *) enable -n "$name" ;; esac; done
    enable -n enable
    eval "$1"
  )
done
"""


def run_by_bash(scripts: list[str], place: Path) -> list[tuple[list[list[str]], list[str]]]:
    """What bash ran, and the files that it left, for each script."""
    for n in range(1, len(scripts) + 1):
        (place / str(n)).mkdir()
        (place / f"{n}.log").touch()
    command = ["bash", "--norc", "--noprofile", "-c", RECORDER, "bash", str(place), *scripts]
    environ = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(command, env=environ, start_new_session=True) as shell:
        try:
            shell.wait(timeout=60)
        finally:
            # Whatever a script left in the background goes with it; the group is gone if there was nothing.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    results = []
    for n in range(1, len(scripts) + 1):
        noted = (place / f"{n}.log").read_bytes().decode(errors="replace").replace("\x1d", "\n").split("\x1e\x1f")[:-1]
        results.append(([note.split("\x1f")[:-1] for note in noted], sorted(os.listdir(place / str(n)))))
    return results


def fits(words: tuple[Word, ...], ran: list[str]) -> bool:
    """Whether bash may have made `ran` of these words. One that is not known may become any words."""
    places = {0}
    for word in words:
        if word.literal:
            places = {at + 1 for at in places if at < len(ran) and ran[at] == word.text}
        elif places:
            places = set(range(min(places), len(ran) + 1))
    return len(ran) in places


def made_by_chance(chance: random.Random, depth: int = 0) -> str:
    if depth > 3 or chance.random() < 0.5:
        return "".join(chance.choice(PIECES) + chance.choice(("", " ", " ")) for _ in range(chance.randint(1, 6)))
    frame = chance.choice(FRAMES)
    return frame.format(made_by_chance(chance, depth + 1), made_by_chance(chance, depth + 1))


def readable_scripts(chance: random.Random, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        text = made_by_chance(chance)
        # Only grammar is compared here: what a wrapper runs is for bash a matter of the wrapper.
        if "\x00" not in text and "/" not in text and not parse(text).opaque:
            found.append(text)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_bash_runs_nothing_that_was_not_found(seed: int, tmp_path: Path) -> None:
    """The property behind A2: no unparsed part is ever allowed. Bash itself is the judge of what was there."""
    scripts = readable_scripts(random.Random(seed), 60)

    for text, (ran, files) in zip(scripts, run_by_bash(scripts, tmp_path), strict=True):
        script = parse(text)
        commands = (*script.commands, *script.shadows)
        written = [each.target for each in script.redirections if each.writes]
        for words in ran:
            assert any(fits(command.words, words) for command in commands), (text, words)
        for file in files:
            assert any(not target.literal or target.text == file for target in written), (text, file)


def test_bash_ends_a_heredoc_in_a_substitution_early_and_the_reader_says_so_d2(tmp_path: Path) -> None:
    """Whatever bash finds behind the early end, none of these is taken for known."""
    scripts = [text for text in HEREDOCS_THAT_END_EARLY if "`" not in text]
    ran = [[words[0] for words in run] for run, _ in run_by_bash(scripts, tmp_path)]

    assert sum("touch" in names for names in ran) >= 20  # It does depend on the version of bash which.
    assert [text for text in scripts if not parse(text).opaque] == []


def test_a_message_in_a_heredoc_is_known_if_no_line_begins_with_its_delimiter_d2() -> None:
    text = "git commit -m \"$(cat <<'EOF'\nA title (x)\n\n  EOF) is fine here\nEOF\n)\""
    _, commit = parse(text).commands

    assert commit.words[-1] == Word("A title (x)\n\n  EOF) is fine here")
    assert parse(text.replace("  EOF)", "EOF)")).opaque
    assert parse(text.replace("  EOF)", "EOFs")).opaque


def test_bash_runs_nothing_of_the_corpus_that_was_not_found(tmp_path: Path) -> None:
    texts = [*ALLOWED, *DENIED, *ASKED]
    # Those that go on for ever or name programs by path are left out.
    scripts = [
        text
        for text in texts
        if not parse(text).opaque
        and "\x00" not in text
        and "/" not in text
        and not text.startswith(("while", "until", "select"))
    ]
    assert len(scripts) > 200

    for text, (ran, _) in zip(scripts, run_by_bash(scripts, tmp_path), strict=True):
        script = parse(text)
        for words in ran:
            assert any(fits(command.words, words) for command in (*script.commands, *script.shadows)), (text, words)
