"""A tool as models and turns see it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool's description for the model. `schema` is the JSON Schema of its input object."""

    name: str
    description: str
    schema: Mapping[str, Any]
