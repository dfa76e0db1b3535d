"""What a read-only command shows besides the files that it names: a whole directory, or files stored by git.

Owns which commands do so, and how a person limits them. Must not know rules: it says where; the caller checks that.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from longboat.permissions.shell.script import Command, Word, plain_name
from longboat.permissions.shell.syntax import names

_INTO_DIRECTORIES = re.compile(r"-[A-Za-z0-9]*[rd]|--(?:r|di)")
_WITH_ENDING = re.compile(r"[^/]\.[A-Za-z0-9]+\Z")
_FILE_OF_REVISION = re.compile(r"[A-Za-z0-9_][^:]*:[^:/][^:]*")
_PATTERN_OF_GIT = re.compile(r"\A:|[*?\[\\]")
_ID = re.compile(r"[0-9a-f]{4,64}")
_PATCH = re.compile(r"-[A-Za-z0-9]*[acmpuGLRSUW]|--(?:patch|word-diff|color-words|unified|inter-hunk|check)")
"""Or tells by what it lists what is in files, as `-S` does."""
_SUMMARY = names("--name-only --name-status --no-patch --numstat --quiet --raw --shortstat --stat --summary -s")
_COMMIT = re.compile(r"(?:HEAD|@)(?:[~^][0-9]*)*")


@dataclass(frozen=True, slots=True)
class Reach:
    """A directory whose files are shown, relative to where the command runs."""

    place: str
    deep: bool = True
    """And those below it. Else it may as well be a file."""

    @property
    def like_a_file(self) -> bool:
        return not self.deep and bool(_WITH_ENDING.search(self.place))


_ALL = (Reach("."),)


def find_reach(command: Command, paths: Sequence[Word]) -> tuple[Reach, ...]:
    """`paths` are the words that may be paths."""
    words = command.words[1:]
    texts = [word.text for word in words]
    match plain_name(command.words[0]):
        case "grep" | "egrep" | "fgrep" if any(_INTO_DIRECTORIES.match(text) for text in texts):
            return _below(paths)
        case "rg" if "--files" not in texts:
            return _below(paths)
        case "diff":
            return tuple(Reach(word.text, deep=False) for word in paths)  # Of two directories it compares the files.
        case "git":
            return _of_git(texts[1:] if texts[:1] in (["--no-pager"], ["-P"]) else texts)
    return ()


def _below(paths: Sequence[Word]) -> tuple[Reach, ...]:
    return tuple(Reach(word.text) for word in paths if not word.text.startswith("-")) or _ALL


def _of_git(texts: Sequence[str]) -> tuple[Reach, ...]:
    end = texts.index("--") if "--" in texts else len(texts)
    options = [text for text in texts[1:end] if text.startswith("-")]
    operands = [text for text in texts[1:end] if not text.startswith("-")]
    if not texts or not _prints(texts[0], options, operands):
        return ()
    if texts[0] in ("cat-file", "show") and operands and all(map(_FILE_OF_REVISION.fullmatch, operands)):
        return ()  # Each names its file.
    limits = texts[end + 1 :]
    # Paths limit no file that is given by its id; and a file that is followed may have had another name.
    elsewhere = any(map(_ID.fullmatch, operands)) or "--follow" in options
    if texts[0] == "cat-file" or elsewhere or not limits or any(map(_PATTERN_OF_GIT.search, limits)):
        return _ALL
    return tuple(map(Reach, limits))


def _prints(subcommand: str, options: Sequence[str], operands: Sequence[str]) -> bool:
    """Whether it shows what is in files, and not only their names."""
    patch = any(map(_PATCH.match, options))
    summary = any(text.partition("=")[0] in _SUMMARY for text in options)
    match subcommand:
        case "log":
            return patch
        case "diff":
            return patch or not summary
        case "show":
            # Given the id of a file it shows that, whatever the options.
            return patch or not summary or not all(map(_COMMIT.fullmatch, operands))
        case "cat-file":
            return not options or any(not re.fullmatch(r"-[tse]", text) for text in options)
        case "status":
            return any(re.match(r"-[A-Za-z]*v|--verb", text) for text in options)
    return False
