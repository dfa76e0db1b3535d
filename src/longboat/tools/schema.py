"""Builds a tool's spec from its `Input` struct and the description beside its module. Does not know the tools.

class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, absolute or relative to the workspace.")]

spec = spec_of("view", Input, ToolTraits(effect=Effect.READS, path="path"))        # with view.md
"""

from inspect import getfile
from pathlib import Path
from typing import Any

import msgspec

from longboat.core.tool import ToolSpec
from longboat.wire.tools import UNKNOWN, ToolTraits

Schema = dict[str, Any]


def spec_of(
    name: str,
    shape: type[msgspec.Struct],
    traits: ToolTraits = UNKNOWN,
    *,
    brief: str = "",
    brief_fields: tuple[str, ...] = (),
    cues: str = "",
) -> ToolSpec:
    """The spec of the tool `name`. Its description is NAME.md, beside the module of its input. `brief`, `brief_fields`
    and `cues` are for small models."""
    description = Path(getfile(shape)).with_name(f"{name}.md").read_text("utf-8").strip()
    return ToolSpec(
        name=name,
        description=description,
        schema=schema_of(shape),
        traits=traits,
        brief=brief,
        brief_fields=brief_fields,
        cues=cues,
    )


def schema_of(shape: type[msgspec.Struct]) -> Schema:
    """The JSON Schema of `shape` as one plain object: no references, no titles, no additional fields."""
    root = msgspec.json.schema(shape)
    schema = _plain(root, root.get("$defs", {}), within=())
    # The struct's docstring is for readers of our code.
    schema.pop("description", None)
    return schema


def _plain(schema: Schema, definitions: dict[str, Schema], *, within: tuple[str, ...]) -> Schema:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if name in within:
            raise TypeError(f"{name} contains itself, which a plain schema cannot express")
        beside = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
        return _plain(definitions[name], definitions, within=(*within, name)) | beside
    schema = {key: value for key, value in schema.items() if key != "title"}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            schema[key] = _plain(schema[key], definitions, within=within)
    for key in ("anyOf", "prefixItems"):
        if key in schema:
            schema[key] = [_plain(option, definitions, within=within) for option in schema[key]]
    if "properties" in schema:
        schema["properties"] = {
            name: _plain(value, definitions, within=within) for name, value in schema["properties"].items()
        }
        schema["additionalProperties"] = False
    return _without_null(schema)


def _without_null(schema: Schema) -> Schema:
    """An optional field as the field alone: a model that has nothing to say leaves it out."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) != 1 or schema.get("default", ...) is not None:
        return schema
    option: Schema = options[0]
    return option | {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
