"""What the model is to do for a prompt, written into the prompt itself.

The model process needs no memory: whoever asks again after a crash gets the step that comes next in the transcript.
Every call of a tool carries a token that no other call has, and commands write it to `EFFECTS`: so each can be counted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

EFFECTS = "effects.log"
"""In the workspace: `TOKEN begin|beat|end TIME SERVER` for every command that ran; a beat: it still runs."""
COMMAND = "chaos"
"""The custom command of every workspace."""
COMMAND_TEXT = "By the custom command."
"""What its prompts begin with."""
_PLAN = re.compile(r"plan\[([\w:. -]*)\]")
_BEGUN = re.compile(r'echo "(\S+) begin')


class Kind(StrEnum):
    """One step of the model."""

    SAY = "say"
    SAY_SLOWLY = "say_slowly"
    BASH = "bash"
    BASH_LONG = "bash_long"
    """Longer than most servers live."""
    BASH_STUBBORN = "bash_stubborn"
    """Ignores TERM, and starts a process in a session of its own."""
    JOB = "job"
    """A command in the background."""
    WRITE = "write"
    """A new file, which undo removes."""
    QUESTION = "question"
    AGENT = "agent"
    """A sub-agent that says something."""
    REFUSED = "refused"
    """The provider refuses the request for good."""
    BROKEN = "broken"
    """The provider's stream breaks off: the request is repeated, so it is the last step of a plan."""


_SLEEP = "for beat in {{1..%d}}; do sleep 0.25; {beat}; done"
COMMANDS = {Kind.BASH: "sleep 0.05", Kind.BASH_LONG: _SLEEP % 16, Kind.JOB: _SLEEP % 12}
COMMANDS[Kind.BASH_STUBBORN] = f"trap '' TERM HUP; setsid sleep 30 & {_SLEEP % 8}"


@dataclass(frozen=True, slots=True)
class Step:
    kind: Kind
    token: str

    @property
    def is_command(self) -> bool:
        return self.kind in COMMANDS


def encode(steps: Sequence[Step]) -> str:
    """The plan as it stands in a prompt."""
    return f"plan[{' '.join(f'{step.kind}:{step.token}' for step in steps)}]"


def decode(text: str) -> list[Step]:
    """The last plan in a text; none is an empty one."""
    plans = _PLAN.findall(text)
    pairs = (word.partition(":") for word in plans[-1].split()) if plans else ()
    return [Step(Kind(kind), token) for kind, _, token in pairs]


def call_command(words: str) -> str:
    """The prompt that calls the custom command."""
    return f"/{COMMAND} {words}"


def command_file() -> tuple[str, str]:
    """Its path in a workspace, and its content."""
    return f".agents/commands/{COMMAND}.md", f"---\ndescription: As planned\n---\n{COMMAND_TEXT} $ARGUMENTS\n"


def words_of(prompt: str) -> str:
    """What identifies a prompt, however it was sent: as it is, or by the custom command."""
    return prompt.removeprefix(f"/{COMMAND} ").removeprefix(f"{COMMAND_TEXT} ")


def tokens_in(prompt: str) -> set[str]:
    """Those of the commands that a run may start: as its plan says, or as a person typed."""
    return set(_BEGUN.findall(prompt)) if prompt.startswith("!") else {step.token for step in decode(prompt)}


def file_of(token: str) -> str:
    """The file that a `WRITE` step makes, relative to the workspace."""
    return f"written/{token}.txt"


def command_of(step: Step) -> str:
    """A shell command that leaves its token in `EFFECTS` when it begins and when it ends."""
    begin, beat, end = (
        f'echo "{step.token} {when} $EPOCHREALTIME $CHAOS_SERVER" >> {EFFECTS}' for when in ("begin", "beat", "end")
    )
    return f"{begin}; {COMMANDS[step.kind].format(beat=beat)}; {end}"


def call_of(step: Step) -> tuple[str, dict[str, Any]] | None:
    """The tool that the step calls and its arguments, if it calls one."""
    match step.kind:
        case Kind.BASH | Kind.BASH_LONG | Kind.BASH_STUBBORN:
            return "bash", {"command": command_of(step)}
        case Kind.JOB:
            return "bash", {"command": command_of(step), "run_in_background": True}
        case Kind.WRITE:
            return "write", {"path": file_of(step.token), "content": f"{step.token}\n"}
        case Kind.QUESTION:
            return "question", {"text": f"Which one, for {step.token}?", "choices": ["this", "that"]}
        case Kind.AGENT:
            return "agent", {"prompt": encode([Step(Kind.SAY, f"{step.token}.child")])}
        case _:
            return None
