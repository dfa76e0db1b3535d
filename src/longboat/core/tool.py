"""A tool as models and turns see it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longboat.wire.tools import UNKNOWN, ToolTraits


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool's description for the model, and what it declares to everyone else. `schema` is the JSON Schema of its
    input object."""

    name: str
    description: str
    schema: Mapping[str, Any]
    traits: ToolTraits = UNKNOWN
    brief: str = ""
    """The description for a model with a small window, which gets only the tools that have one."""
    brief_fields: tuple[str, ...] = ()
    """The optional fields that such a model gets too. Most it would fill in for no reason."""
    cues: str = ""
    """A regular expression for the words of a prompt that call for this tool. A model that is too small to choose is
    offered it only then."""
