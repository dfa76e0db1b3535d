"""The traits of a tool: what it does, what a call is about, which agents get it, how clients draw a call.

A tool declares them once, in its own module (`tools/schema.py`). Permission rules, sub-agents and the turn use them; a
recorded call carries them (`ToolCallPart.traits`), so that a client can draw tools it does not know. Knows no tool by
name.
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
    """Concerns only the session, such as its plan: needs no rule."""
    OTHER = "other"
    """Anything else, such as a request to a web server: every call needs a rule."""


class Lists(StrEnum):
    """What a call shows of the files below its path. Rules that deny reading apply to these too."""

    NOTHING = "nothing"
    NAMES = "names"
    CONTENTS = "contents"


class Governs(StrEnum):
    """To which other calls the rules of a tool apply."""

    NOTHING = "nothing"
    """Its rules apply only to itself."""
    READING = "reading"
    """All calls that show the contents of files."""
    EDITING = "editing"
    """All calls that change files."""
    WRITING = "writing"
    """The same; offered as a rule for the files that a command writes to."""


class SubAgents(StrEnum):
    """Which sub-agents get the tool."""

    ALL = "all"
    """All of them, including those that only read."""
    UNRESTRICTED = "unrestricted"
    """Those that may do more than read."""
    NONE = "none"
    """None: it is for the session that people talk to."""


class Draw(StrEnum):
    """How a client draws a call. Transcripts store these, so released values stay."""

    CALL = "call"
    """Its arguments, and the end of its output."""
    QUIET = "quiet"
    """Its result is for the model: show it only on demand."""
    FILE = "file"
    """The same, and its heading already shows the arguments that matter."""
    COMMAND = "command"
    """A command and its output. The last line of its result, in brackets, says how it ended."""
    DIFF = "diff"
    """The unified diff in its result."""
    PLAN = "plan"
    """Its argument `items` is a plan: its steps as texts, or as objects with `text` and `state`."""
    QUESTION = "question"
    """Its result is a person's answer."""
    SUB_AGENT = "sub_agent"
    """The session of the sub-agent that it started; its result is Markdown."""


class ToolTraits(Shape, frozen=True, kw_only=True, omit_defaults=True):
    """What a tool declares about itself. Omitted fields have their defaults, which suit an unknown tool."""

    effect: Effect = Effect.OTHER
    """What a call does."""
    path: str = ""
    """The argument that is a path. If set, the patterns of its permission rules are paths."""
    url: str = ""
    """The argument that is a URL. If set, the patterns of its permission rules are URLs."""
    command: str = ""
    """The argument that is a shell command. If set, the patterns of its permission rules are commands."""
    heading: tuple[str, ...] = ()
    """The arguments that describe a call best, most important first. If empty, clients guess."""
    lists: Lists = Lists.NOTHING
    """What it shows of the files below its path."""
    governs: Governs = Governs.NOTHING
    """To which other calls its permission rules apply."""
    sub_agents: SubAgents = SubAgents.UNRESTRICTED
    """Which sub-agents get it."""
    side_by_side: bool = False
    """Calls that follow each other in one answer may run at the same time: those of this tool, and if it only reads,
    those of other tools that only read."""
    quick: bool = False
    """Takes only a moment: clients need not show it before it is done."""
    waits: bool = False
    """Waits for something outside the session, such as a background job: the same result again is no loop."""
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
        """Its rules, and the argument they match, are paths."""
        return bool(self.path) and not self.url and not self.command


UNKNOWN = ToolTraits()
