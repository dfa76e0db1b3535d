"""The grammar of a bash command line: what is run and what is set.

Owns lists, pipelines, groups and control structures, flattened to what a permission needs. It reads a strict part of
bash and refuses the rest with `NotUnderstood`;
`tests/permissions/test_shell.py` compares it with real bash. Must not know what any command does.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from longboat.permissions.shell.redirections import Redirecting
from longboat.permissions.shell.syntax import MAX_WORDS, Assignment, Command, Findings, Kind, NotUnderstood, Word, names

_TOKEN = re.compile(r"[^ \t\n;|&()<>]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_FUNCTION = re.compile(r"[ \t]*\([ \t]*\)")

_SET_BY_BASH = re.compile(
    r"""_|BASH.*|COPROC|DIRSTACK|EPOCH.*|E?UID|FUNCNAME|GROUPS|HIST.*|HOSTNAME|IFS|LINENO|MAPFILE|OLDPWD|OPT(?:ARG|IND)
    |PIPESTATUS|PPID|PWD|READLINE_.*|REPLY|S?RANDOM|SECONDS|SHELLOPTS|SHLVL""",
    re.VERBOSE,
)
"""Variables that get other values by themselves: `$_` is the last word of the command before."""

MAX_AGAIN = 100_000
"""The number of characters of loops that may be read again, once for each word of the loop."""

_TESTS_OF_ONE = frozenset({"-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-n", "-z"})
_TESTS_OF_TWO = frozenset({"=", "==", "!="})


class Grammar(Redirecting):
    def __init__(self, text: str, *, found: Findings | None = None, depth: int = 0, offset: int = 0) -> None:
        super().__init__(text, found=found, depth=depth, offset=offset)
        self._separators = 0
        self._trying = False
        """Whether a loop is read only to see what is in it."""
        self._compounds: dict[str, Callable[[], None]] = {
            "{": self._group,
            "if": self._if,
            "while": self._while,
            "until": self._while,
            "for": self._for,
            "select": self._select,
            "case": self._case,
            "function": self._function_word,
            "coproc": self._coproc,
            "[[": self._test,
        }

    def read(self) -> None:
        """All of the text."""
        self._statements()
        if self.pos < len(self.text) or self.heredocs:
            raise NotUnderstood("it cannot be parsed as one complete command")

    def enclosed(self, text: str | None = None, at: int = 0) -> None:
        if text is not None:
            inner = Grammar(text, found=self.found, depth=self.depth, offset=self.offset + at)
            inner.substituted = True
            with self.found.values.branch():
                inner.deeper(inner.read)
            return
        waiting, self.heredocs = self.heredocs, []
        bodies, separators = self.bodies, self._separators
        outer, self.substituted = self.substituted, True
        with self.found.values.branch():
            self.deeper(self._statements)
        self._expect_sign(")")
        if self.heredocs:
            raise NotUnderstood("a heredoc is not closed inside its substitution")
        if self.bodies > bodies and self._separators > separators:
            # Bash 5.2 prints a substitution and reads it again, and loses a `;` beside a heredoc on the way.
            raise NotUnderstood("a substitution mixes a heredoc with other commands")
        self.heredocs, self.substituted = waiting, outer

    def body_of_heredoc(self, text: str, at: int) -> None:
        inner = Grammar(text, found=self.found, depth=self.depth, offset=self.offset + at)
        inner.deeper(inner.body)

    def _token(self) -> str:
        found = _TOKEN.match(self.text, self.pos)
        return found.group() if found else ""

    def _expect(self, token: str) -> None:
        self.newlines()
        if self._token() != token:
            raise NotUnderstood(f"“{token}” is missing")
        self.pos += len(token)

    def _expect_sign(self, sign: str) -> None:
        self.newlines()
        if self.char() != sign:
            raise NotUnderstood(f"“{sign}” is missing")
        self.pos += 1

    # Lists.

    def _statements(self, *stops: str) -> None:
        """A list, up to one of the words `stops` or a closing sign; that is left to the caller."""
        while True:
            self.newlines()
            if self.char() in ("", ")") or self._at_case_end() or self._token() in stops:
                return
            start = self.found.values.here()
            self._and_or()
            self.gap()
            if self._at_case_end():
                return
            if self.char() == "&":
                self.found.values.back_to(start)
            if self.char() in (";", "&"):
                self.pos += 1
                self._separators += 1
            elif self.char() not in ("\n", "", ")"):
                raise NotUnderstood("it cannot be parsed as a list of commands")

    def _at_case_end(self) -> bool:
        return self.text.startswith((";;", ";&"), self.pos)

    def _and_or(self) -> None:
        self._pipeline()
        self.gap()
        surely = self.found.values.here()
        while self.text.startswith(("&&", "||"), self.pos):
            either = self.char() == "|"
            if either:
                self.found.values.back_to(surely)
            self.pos += 2
            self.newlines()
            self._pipeline()
            self.gap()
            if either:
                self.found.values.back_to(surely)
        self.found.values.back_to(surely)

    def _pipeline(self) -> None:
        while (token := self._token()) in ("!", "time"):
            self.pos += len(token)
            self.gap()
            for option in ("-p", "--") if token == "time" else ():
                if self._token() == option:
                    self.pos += 2
                    self.gap()
        start = self.found.values.here()
        self._command()
        self.gap()
        while self.char() == "|" and self.char(1) != "|":
            self.pos += 2 if self.char(1) == "&" else 1
            self.newlines()
            self.found.values.back_to(start)  # Each part of a pipeline has a shell of its own.
            before = len(self.found.commands)
            self._command()
            self.found.commands[before:] = [replace(each, piped=True) for each in self.found.commands[before:]]
            self.found.values.back_to(start)
            self.gap()

    # Commands.

    def _command(self) -> None:
        if self.char() == "(":
            with self.found.values.branch():
                self.deeper(self._parenthesis)
        elif compound := self._compounds.get(token := self._token()):
            self.pos += len(token)
            self.gap()
            self.deeper(compound)
        else:
            self._simple()
            return
        self.gap()
        while self.redirection():
            self.gap()

    def _parenthesis(self) -> None:
        if self.char(1) == "(":
            self.sum()
            return
        self.pos += 1
        self._statements()
        self._expect_sign(")")

    def _group(self) -> None:
        self._statements("}")
        self._expect("}")

    def _if(self) -> None:
        self._condition()
        start = self.found.values.here()
        while self._token() == "elif":
            self.pos += 4
            self._condition()
        if self._token() == "else":
            self.pos += 4
            self._branch("fi")
        self._expect("fi")
        self.found.values.back_to(start)

    def _condition(self) -> None:
        self._statements("then")
        self._expect("then")
        self._branch("elif", "else", "fi")

    def _branch(self, *stops: str) -> None:
        with self.found.values.branch():
            self._statements(*stops)

    def _while(self) -> None:
        before = len(self.found.commands)
        self._statements("do")
        self._loop()
        self._check_repeated(before)

    def _check_repeated(self, before: int) -> None:
        """Where the second round of a loop begins is not followed."""
        if any(word.text in ("cd", "pushd") for command in self.found.commands[before:] for word in command.words):
            self.found.reasons.append("it changes directory in a loop")

    def _loop(self) -> None:
        self._expect("do")
        self._branch("done")
        self._expect("done")

    def _for(self) -> None:
        with self.found.values.branch():
            name, words = self._words_of_loop()
            self._loop_over(name, words)

    def _select(self) -> None:
        """What is typed decides, so nothing is known of its variable."""
        before = len(self.found.commands)
        with self.found.values.branch():
            self._words_of_loop()
            self._loop()
        self._check_repeated(before)

    def _words_of_loop(self) -> tuple[str, list[Word]]:
        name = self._token()
        if not _NAME.fullmatch(name):
            raise NotUnderstood("it has an unusual kind of loop")
        self.found.variables.append(name)
        self.pos += len(name)
        self.newlines()
        words: list[Word] = []
        before = len(self.found.expanded)
        sources = ["$@"]
        if self._token() == "in":
            self.pos += 2
            self.gap()
            while word := self.word():
                words.append(word)
                self.gap()
            sources = self.found.expanded[before:]
            self.found.values.compare(sources)
        self.found.values.assign(name, sources)
        if self.char() == ";":
            self.pos += 1
            self._separators += 1
        return name, words

    def _loop_over(self, name: str, words: list[Word]) -> None:
        """Read the loop once for each of its words if they are all known: then its variable is known as well."""
        start, mark, before = self.pos, self.found.mark(), self.found.words
        trying, waiting = self._trying, bool(self.heredocs)
        self._trying = True
        self._loop()
        self._trying = trying
        longer = (self.pos - start) * len(words)
        most = before + (self.found.words - before + 1) * len(words)
        # A loop inside one that is only tried is not tried again: that would double the work with every level.
        long = self.found.again + longer > MAX_AGAIN or most > MAX_WORDS
        unknown = not words or not all(map(_is_fixed, words)) or self._sets_again(name, mark)
        unknown = unknown or bool(_SET_BY_BASH.fullmatch(name))
        if trying or waiting or self.heredocs or long or unknown:
            self._check_repeated(mark[0])
            return
        self.found.back_to(mark)
        self.found.again += longer
        for word in words:
            self.pos = start
            self.found.known[name] = word
            self._loop()
        del self.found.known[name]

    def _sets_again(self, name: str, mark: tuple[int, ...]) -> bool:
        """Whether what was found since may give the variable another value. Whatever else could is opaque."""
        commands = self.found.commands[mark[0] :]
        return name in self.found.variables[mark[2] :] or any(
            name in [each.name for each in command.assignments] or Word("export") in command.words
            for command in commands
        )

    def _case(self) -> None:
        before = len(self.found.expanded)
        if not self.word():
            raise NotUnderstood("it has an unusual kind of case statement")
        self.found.values.compare(self.found.expanded[before:])
        self._expect("in")
        self.newlines()
        while self._token() != "esac":
            self._case_patterns()
            self._branch("esac")
            if not self._at_case_end():
                break
            self.pos += 2
            self._separators += 1
            if self.char() == "&":
                self.pos += 1
            self.newlines()
        self._expect("esac")

    def _case_patterns(self) -> None:
        if self.char() == "(":
            self.pos += 1
        while True:
            self.gap()
            before = len(self.found.expanded)
            if not self.word():
                raise NotUnderstood("it has an unusual kind of case statement")
            self.found.values.compare(self.found.expanded[before:])
            self.gap()
            if self.char() != "|":
                break
            self.pos += 1
        self._expect_sign(")")

    def _test(self) -> None:
        """`[[ … ]]`, in its plain forms: others evaluate, and can run commands by that."""
        words: list[Word] = []
        before = len(self.found.expanded)
        while True:
            self.gap()
            joint = self.text.startswith(("&&", "||"), self.pos)
            if joint or self._token() == "]]":
                self._check_test(words)
                words = []
                self.pos += 2
                if not joint:
                    self.found.values.compare(self.found.expanded[before:])
                    return
            elif word := self.word():
                words.append(word)
            else:
                raise NotUnderstood("it has an unusual kind of test")

    def _check_test(self, words: list[Word]) -> None:
        while words[:1] == [Word("!")]:
            words = words[1:]
        match words:
            case [Word(text=sign, kind=Kind.LITERAL), operand] if sign in _TESTS_OF_ONE:
                if _is_fixed(operand) and sign not in ("-n", "-z"):
                    # The same as the command, which looks at a file. Stars are part of the name here.
                    self.found.commands.append(Command((Word("test"), words[0], Word(operand.text))))
                elif operand.kind in (Kind.DYNAMIC, Kind.STATUS) and sign not in ("-n", "-z"):
                    self.found.values.look_up(operand.text)
            case [_, Word(text=sign, kind=Kind.LITERAL), _] if sign in _TESTS_OF_TWO:
                pass
            case _:
                raise NotUnderstood("it has an unusual kind of test")

    def _coproc(self) -> None:
        self.found.reasons.append("it starts a coprocess")
        self._command()

    def _function_word(self) -> None:
        if not self.word():
            raise NotUnderstood("it defines a function in an unusual way")
        self._function()

    def _function(self) -> None:
        """From behind the name. What the name means from now on is not followed, so all of it is opaque."""
        self.found.reasons.append("it defines a function")
        if found := _FUNCTION.match(self.text, self.pos):
            self.pos = found.end()
        self.newlines()
        self.deeper(self._command)

    def _simple(self) -> None:
        assignments: list[Assignment] = []
        words: list[Word] = []
        sources: list[tuple[bool, list[str]]] = []
        start, ends = self.pos, []
        while True:
            self.gap()
            at = self.pos
            if self.redirection():
                continue
            if not words and (found := _ASSIGNMENT.match(self.text, self.pos)):
                before = len(self.found.expanded)
                assignments.append(self._assignment(found))
                sources.append((found.group().endswith("+="), self.found.expanded[before:]))
                ends += [at, self.pos]
                continue
            token = self._token()
            word = self.word()
            if word is None:
                break
            if not words:
                self._check_name(token)
            words.append(word)
            ends += [at, self.pos]
        if self.char() == "(" and len(words) == 1 and _FUNCTION.match(self.text, self.pos):
            self._function()
        elif words:
            span = (self.offset + ends[0], self.offset + ends[-1])
            self.found.commands.append(Command(tuple(words), tuple(assignments), span))
        elif self.pos == start:
            raise NotUnderstood("a command is missing")
        else:
            self.found.variables.extend(each.name for each in assignments)
            self.found.settings.extend(assignments)
            for each, (appends, used) in zip(assignments, sources, strict=True):
                self.found.values.assign(each.name, used, appends=appends)

    def _check_name(self, token: str) -> None:
        """A word of the grammar where a command's name should be: bash reads this otherwise than we do."""
        if token in _RESERVED or token in self._compounds:
            raise NotUnderstood(f"“{token}” is where a command should be")

    def _assignment(self, found: re.Match[str]) -> Assignment:
        self.pos = found.end()
        value = self.word() or Word("")
        if self.char() == "(":
            raise NotUnderstood("it sets an array")
        return Assignment(found.group(1), value)


def _is_fixed(word: Word) -> bool:
    return word.kind in (Kind.LITERAL, Kind.GLOB)


_RESERVED = names("then elif else fi do done in esac } ! time ]]")
"""What opens a compound command is in `_compounds`."""
