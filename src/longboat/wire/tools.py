"""The traits of a tool: what it does, what a call is about, who gets it, how a call is drawn.

A tool declares them once, in its own module (`tools/schema.py`). Permission rules, sub-agents and the turn go by
them; a recorded call carries them (`ToolCallPart.traits`), so that a client draws tools that it has never heard of.
Knows no tool by name.
"""

from enum import StrEnum

from longboat.wire.shape import Shape


class Effect(StrEnum):
    """What a call does. Decides whether it needs a permission rule."""

    READS = "reads"
    """Reads files of the workspace, or what the server knows: needs no rule inside the workspace."""
    CHANGES = "changes"
    """Changes files: every path needs a rule, unless its rules are about a URL."""
    RUNS = "runs"
    """Runs commands, which may do anything."""
    NOTHING = "nothing"
    """Concerns the session alone, such as its plan: needs no rule."""
    OTHER = "other"
    """Anything else, such as a request to a web server: every call needs a rule."""


class Lists(StrEnum):
    """What a call shows of the files below its path. Rules that deny reading hold for these too."""

    NOTHING = "nothing"
    NAMES = "names"
    CONTENTS = "contents"


class Governs(StrEnum):
    """Which other calls the rules of a tool hold for."""

    NOTHING = "nothing"
    """Its rules are for itself alone."""
    READING = "reading"
    """Whatever shows the contents of files."""
    EDITING = "editing"
    """Whatever changes files."""
    WRITING = "writing"
    """Likewise; offered to a person for the files that a command writes to."""


class SubAgents(StrEnum):
    """Which sub-agents get the tool."""

    ALL = "all"
    """Every one, also those that only read."""
    UNRESTRICTED = "unrestricted"
    """Those that may do more than read."""
    NONE = "none"
    """It is for the session that people talk to."""


class Draw(StrEnum):
    """How a client draws a call. Transcripts keep these: a value that was released stays."""

    CALL = "call"
    """Its arguments, and the end of its output."""
    QUIET = "quiet"
    """What it found is for the model: people see it on demand."""
    FILE = "file"
    """Likewise, and its heading says all about its arguments."""
    COMMAND = "command"
    """A command and its output. The last line of its result, in brackets, says how it ended."""
    DIFF = "diff"
    """The unified diff in its result."""
    PLAN = "plan"
    """Its argument `items` is a plan: its steps as texts, or as objects with `text` and `state`."""
    QUESTION = "question"
    """Its result is what a person answered."""
    SUB_AGENT = "sub_agent"
    """The session of the sub-agent that it started; its result is Markdown."""


class ToolTraits(Shape, frozen=True, kw_only=True, omit_defaults=True):
    """What a tool declares about itself. The defaults suit a tool that nobody knows; they are left out."""

    effect: Effect = Effect.OTHER
    """What a call does."""
    path: str = ""
    """The argument that is a path. The patterns of its permission rules are paths then."""
    url: str = ""
    """The argument that is a URL. The patterns of its permission rules are URLs then."""
    command: str = ""
    """The argument that is a shell command. The patterns of its permission rules are commands then."""
    heading: tuple[str, ...] = ()
    """The arguments that say what a call is about, the most telling first. Empty: clients guess."""
    lists: Lists = Lists.NOTHING
    """What it shows of the files below its path."""
    governs: Governs = Governs.NOTHING
    """Which other calls its permission rules hold for."""
    sub_agents: SubAgents = SubAgents.UNRESTRICTED
    """Which sub-agents get it."""
    side_by_side: bool = False
    """Calls that follow each other in one answer may run at the same time: those of this tool, and if it only reads,
    those of other tools that only read."""
    quick: bool = False
    """Done in a moment: not worth a line before it is done."""
    proposes: bool = False
    """Asks people to approve a plan: only runs that plan first have it, until the plan is approved."""
    draw: Draw = Draw.CALL
    """How to draw a call."""

    @property
    def changes_paths(self) -> bool:
        """Every path that a call touches needs a rule."""
        return self.effect is Effect.CHANGES and not self.url

    @property
    def writes(self) -> bool:
        """A call may change files."""
        return self.effect in (Effect.CHANGES, Effect.RUNS)

    @property
    def only_reads(self) -> bool:
        """A call changes nothing, neither files nor the session."""
        reads = self.effect is Effect.READS or self.sub_agents is SubAgents.ALL
        return reads and not self.writes and self.effect is not Effect.NOTHING

    @property
    def only_looks(self) -> bool:
        """A call changes nothing but the session: a run that plans first may make it."""
        return self.only_reads or self.effect is Effect.NOTHING

    @property
    def needs_rule(self) -> bool:
        """A call needs a rule even if it stays inside the workspace."""
        return self.effect not in (Effect.READS, Effect.NOTHING)

    @property
    def about_paths(self) -> bool:
        """Its rules, and the argument that they are matched with, are paths."""
        return bool(self.path) and not self.url and not self.command


UNKNOWN = ToolTraits()
