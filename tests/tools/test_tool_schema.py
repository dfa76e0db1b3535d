"""What the model is told of a tool's input."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from longboat.tools.files import view
from longboat.tools.schema import schema_of, spec_of


class Part(msgspec.Struct, frozen=True, kw_only=True):
    title: Annotated[str, Meta(description="What it is called.")]


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """For readers of the code."""

    path: Annotated[str, Meta(description="Where.")]
    mode: Annotated[Literal["a", "b"], Meta(description="How.")] = "a"
    parts: Annotated[list[Part], Meta(description="Which.", min_length=1)]
    limit: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="How many.")] = None
    best: Part | None = None
    extra: dict[str, Part] = {}
    either: str | int = 0


class Knot(msgspec.Struct, frozen=True, kw_only=True):
    inner: "Knot | None" = None


PART = {
    "type": "object",
    "properties": {"title": {"type": "string", "description": "What it is called."}},
    "required": ["title"],
    "additionalProperties": False,
}


def test_a_schema_is_one_plain_object_without_references() -> None:
    assert schema_of(Input) == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where."},
            "mode": {"enum": ["a", "b"], "default": "a", "description": "How."},
            "parts": {"type": "array", "items": PART, "minItems": 1, "description": "Which."},
            "limit": {"type": "integer", "minimum": 1, "description": "How many."},
            "best": PART,
            "extra": {"type": "object", "additionalProperties": PART, "default": {}},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}], "default": 0},
        },
        "required": ["path", "parts"],
        "additionalProperties": False,
    }


def test_a_shape_that_holds_itself_is_refused() -> None:
    with pytest.raises(TypeError, match="Knot contains itself"):
        schema_of(Knot)


def test_a_spec_takes_its_description_from_the_file_beside_the_tool() -> None:
    spec = spec_of("view", view.Input)
    assert spec.name == "view"
    assert spec.description.startswith("Read a file")
    assert spec.schema == schema_of(view.Input)
