"""Why a call is dangerous, for the person who is asked: by what its command does, and by the files it would change.

Owns nothing but the combination: `shell/danger.py` knows commands, the assessment knows where paths lead. Must not
decide whether a call is asked.
"""

from longboat.permissions.assessment import Assessment
from longboat.permissions.guarded_files import is_guarded, source_may_be_guarded
from longboat.permissions.rules import relative_to
from longboat.permissions.shell.assessment import ShellAssessment
from longboat.permissions.shell.danger import DELETING, Danger, danger_of, worst
from longboat.permissions.shell.databases import CLIENTS, is_deleting
from longboat.permissions.shell.scope import WRITING, file_name
from longboat.permissions.shell.script import Command, Kind, Redirection, Word

_INTO_THE_LAST = frozenset({"cp", "ditto", "install", "ln", "rsync"})
"""They change only what their last word names, unless an option names the target."""
_HOME = ("~", "$HOME", "${HOME}", '"$HOME', '"${HOME}')


def danger_of_call(assessment: Assessment) -> str:
    """Why this call is dangerous, in one sentence; empty if it is not."""
    if not isinstance(assessment, ShellAssessment):
        return _of_paths(assessment)
    script = assessment.script
    unread = script.opaque and script.opaque not in [why for _, why in script.suspects]
    led = any(is_guarded(path) and path not in assessment.only_read for path in assessment.paths)
    return worst(
        (
            *(danger_of_command(assessment, each) for each in script.commands),
            *(danger_of_redirection(assessment, each) for each in script.redirections),
            Danger.GUARDED if led else "",
            Danger.UNKNOWN if unread else "",
        )
    )


def danger_of_command(assessment: ShellAssessment, command: Command) -> str:
    own, guarded = danger_of(command), assessment.guarded_word(command)
    return worst(
        (
            own,
            # Of a command that deletes everything, that it does says more.
            Danger.GUARDED if guarded and not (guarded == "." and own) else "",
            _outside(command) if any(_leads_out(assessment, word) for word in _written(command)) else "",
            # What a pipe or a heredoc gives to a database is in the text, but in none of its words.
            Danger.DATABASE if _is_fed_client(assessment, command) and is_deleting(assessment.argument) else "",
        )
    )


def _outside(command: Command) -> Danger:
    return Danger.DELETES_OUTSIDE if file_name(command) in DELETING else Danger.OUTSIDE


def _is_fed_client(assessment: ShellAssessment, command: Command) -> bool:
    return file_name(command) in CLIENTS and (command.piped or "<<" in assessment.argument)


def danger_of_redirection(assessment: ShellAssessment, redirection: Redirection) -> str:
    target = redirection.target
    if not redirection.writes:
        return ""
    if not target.literal:
        if source_may_be_guarded(target.text):
            return Danger.GUARDED
        return Danger.OUTSIDE if target.text.startswith(_HOME) else ""
    places = assessment.places_of(target)
    if any(map(is_guarded, places)):
        return Danger.GUARDED
    return Danger.OUTSIDE if any(relative_to(path, assessment.directory) is None for path in places) else ""


def _of_paths(assessment: Assessment) -> str:
    if not assessment.traits.writes:
        return ""
    if any(map(is_guarded, assessment.places)):
        return Danger.GUARDED
    outside = any(relative_to(path, assessment.directory) is None for path in assessment.places)
    return Danger.OUTSIDE if outside else ""


def _written(command: Command) -> tuple[Word, ...]:
    """The words that may name what it changes."""
    name, words = file_name(command), command.words[1:]
    texts = [word.text for word in words]
    if name == "sed" and not any(text.startswith(("-i", "--in-place")) for text in texts):
        return ()
    if name == "dd":
        return tuple(word for word in words if word.text.startswith("of="))
    if name in _INTO_THE_LAST and not any(text.startswith(("-t", "--target-directory")) for text in texts):
        return words[-1:]
    return words if name in WRITING or name in DELETING else ()


def _leads_out(assessment: ShellAssessment, word: Word) -> bool:
    if word.kind is Kind.DYNAMIC:
        return word.text.startswith(_HOME)
    return assessment.strays(word)
