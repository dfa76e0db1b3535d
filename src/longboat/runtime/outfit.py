"""The setup of a turn: its tools, its system prompt, its hooks, and the prompt's options as far as the model supports
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from longboat.context.hooks import Hooks
from longboat.models.seam import Model
from longboat.runtime.answer_form import AnswerForm
from longboat.store.rows import RunOptions
from longboat.tools.seam import Tool
from longboat.wire.requests import Effort


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    system: str
    tools: Mapping[str, Tool] = field(default_factory=dict)
    hooks: Hooks = field(default_factory=Hooks)
    problems: tuple[str, ...] = ()
    """What is wrong with the project's files for the agent, for the people who watch."""
    effort: Effort | None = None
    form: AnswerForm | None = None
    """What the answer must fit."""


def wished(outfit: Outfit, options: RunOptions, model: Model) -> Outfit:
    """The outfit with what the prompt wishes; a wish that the model cannot grant is told, and the run goes on."""
    form = AnswerForm(options.schema) if options.schema is not None else None
    if options.effort is not None and not model.abilities.effort:
        told = f"{model.provider}/{model.name} has no reasoning effort setting; {options.effort} is ignored."
        return replace(_asked(outfit, form), problems=(*outfit.problems, told))
    return replace(_asked(outfit, form), effort=options.effort)


def _asked(outfit: Outfit, form: AnswerForm | None) -> Outfit:
    return outfit if form is None else replace(outfit, system=outfit.system + form.instruction, form=form)
