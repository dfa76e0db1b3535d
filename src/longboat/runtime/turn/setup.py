"""The setup of a turn: its tools, its system prompt, its hooks, and the prompt's options as far as the model supports
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from longboat.context.hooks import Hooks
from longboat.models.protocol import Model
from longboat.runtime.turn.answer_schema import AnswerSchema
from longboat.store.records import RunOptions
from longboat.tools.protocol import Tool
from longboat.wire.requests import Effort


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSetup:
    system: str
    tools: Mapping[str, Tool] = field(default_factory=dict)
    hooks: Hooks = field(default_factory=Hooks)
    problems: tuple[str, ...] = ()
    """What is wrong with the project's files for the agent, for the people who watch."""
    effort: Effort | None = None
    form: AnswerSchema | None = None
    """What the answer must fit."""


def apply_options(setup: TurnSetup, options: RunOptions, model: Model) -> TurnSetup:
    """The setup with what the prompt wishes; a wish that the model cannot grant is told, and the run goes on."""
    form = AnswerSchema(options.schema) if options.schema is not None else None
    if options.effort is not None and not model.abilities.effort:
        told = f"{model.provider}/{model.name} has no reasoning effort setting; {options.effort} is ignored."
        return replace(_asked(setup, form), problems=(*setup.problems, told))
    return replace(_asked(setup, form), effort=options.effort)


def _asked(setup: TurnSetup, form: AnswerSchema | None) -> TurnSetup:
    return setup if form is None else replace(setup, system=setup.system + form.instruction, form=form)
