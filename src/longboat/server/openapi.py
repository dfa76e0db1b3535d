"""The API's description in OpenAPI 3.1, made from the routes and the wire types. Imported when first requested."""

import inspect
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
from litestar import Litestar, Response
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

import longboat
from longboat.server.auth import PAGE_PATHS, PUBLIC_PATHS
from longboat.wire.events import EVENTS, UNLOGGED
from longboat.wire.ids import OWN_ID_SCHEMA
from longboat.wire.models import ErrorBody

_REF = "#/components/schemas/{name}"
_NAMED = {"client_id": OWN_ID_SCHEMA}
"""What is known of a parameter of this name, in a path or a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operation:
    """One method of one path, as its handler declares it."""

    path: str
    method: str
    handler: HTTPRouteHandler
    path_names: tuple[str, ...]

    @property
    def body(self) -> type[msgspec.Struct] | None:
        return typing.cast("type[msgspec.Struct] | None", self.handler.opt.get("body"))

    @property
    def statuses(self) -> list[int]:
        return [self.handler.status_code, *self.handler.opt.get("also", ())]

    @property
    def reply(self) -> type[msgspec.Struct] | None:
        """The type of the answer; None if it is not our JSON."""
        declared = self.handler.parsed_fn_signature.return_type.annotation
        if typing.get_origin(declared) is Response:
            (declared,) = typing.get_args(declared)
        return declared if isinstance(declared, type) and issubclass(declared, msgspec.Struct) else None

    @property
    def query(self) -> dict[str, Any]:
        """Query parameters: name in the handler → annotation with its limits."""
        names = self.handler.parsed_fn_signature.parameters.keys() - {"request", *self.path_names}
        annotations = self.handler.signature_model.__annotations__
        return {name: annotation for name, annotation in annotations.items() if name in names}


@lru_cache(maxsize=1)
def document(app: Litestar) -> dict[str, Any]:
    """The whole description."""
    operations = list(_operations(app))
    schemas, components = _schemas(operations)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = _describe(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Longboat",
            "version": longboat.__version__,
            "description": "A coding-agent server that several people and programs can share.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Over TCP; not needed on the unix socket.",
                }
            },
        },
        "security": [{"bearer": []}, {}],
        "x-events": _events(schemas),
    }


@lru_cache(maxsize=1)
def document_bytes(app: Litestar) -> bytes:
    return msgspec.json.encode(document(app))


def _operations(app: Litestar) -> Iterator[_Operation]:
    for route in app.routes:
        if not isinstance(route, HTTPRoute) or _is_page(route.path_format):
            continue
        for handler in route.route_handlers:
            for method in sorted(handler.http_methods):
                if method != "OPTIONS":
                    yield _Operation(
                        path=route.path_format,
                        method=method.lower(),
                        handler=handler,
                        path_names=tuple(route.path_parameters),
                    )


def _is_page(path: str) -> bool:
    """Pages for people, which are not part of the API."""
    return path in PAGE_PATHS or path.startswith("/assets/")


def _schemas(operations: Iterable[_Operation]) -> tuple[dict[Any, dict[str, Any]], dict[str, Any]]:
    """A schema (mostly a reference) per type used, and the components they refer to."""
    types: list[Any] = [ErrorBody, *(spec.payload for spec in EVENTS.values()), *UNLOGGED.values()]
    for operation in operations:
        types += [shape for shape in (operation.body, operation.reply) if shape is not None]
        types += operation.query.values()
    unique = list(dict.fromkeys(types))
    schemas, components = msgspec.json.schema_components(unique, ref_template=_REF)
    return dict(zip(unique, schemas, strict=True)), components


def _describe(operation: _Operation, schemas: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    handler = operation.handler
    text = " ".join((inspect.getdoc(handler.fn) or "").split())
    described: dict[str, Any] = {
        "operationId": handler.fn.__name__,
        "summary": text,
        "tags": [handler.fn.__module__.rpartition(".")[2]],
        "parameters": [
            *(_in_path(name) for name in operation.path_names),
            *(_query(operation, name, schemas[annotation]) for name, annotation in operation.query.items()),
        ],
        "responses": {
            **{str(status): _answer(operation, status, schemas) for status in operation.statuses},
            "default": _refused(operation, schemas),
        },
    }
    if body := _body(operation, schemas):
        described["requestBody"] = body
    if operation.path in PUBLIC_PATHS:
        described["security"] = []
    return described


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", **_NAMED.get(name, {})}}


def _body(operation: _Operation, schemas: dict[Any, dict[str, Any]]) -> dict[str, Any] | None:
    opt = operation.handler.opt
    if operation.body is not None:
        content = {"application/json": {"schema": schemas[operation.body]}}
        return {"required": not opt["body_optional"], "content": content}
    if fields := opt.get("form"):
        properties = {name: {"type": "string"} for name in fields}
        form = {"type": "object", "properties": properties, "additionalProperties": False}
        return {"required": False, "content": {"application/x-www-form-urlencoded": {"schema": form}}}
    return None


def _query(operation: _Operation, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    definition = operation.handler.parsed_fn_signature.parameters[name]
    extra = getattr(definition.kwarg_definition, "schema_extra", None) or {}
    described = {
        "name": getattr(definition.kwarg_definition, "name", None) or name,
        "in": "query",
        "required": name in operation.handler.opt.get("needs", ()),
        "schema": _without_null(schema) | _NAMED.get(name, {}) | extra,
    }
    if text := getattr(definition.kwarg_definition, "description", None):
        described["description"] = text
    return described


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter that is left out is absent, never null."""
    kept = [item for item in schema.get("anyOf", ()) if item != {"type": "null"}]
    return kept[0] if len(kept) == 1 else schema


def _answer(operation: _Operation, status: int, schemas: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    if status >= 400:
        return _refused(operation, schemas)
    if status == 204:
        return {"description": "Done."}
    content = {
        media_type: {"schema": {"type": "string"}} for media_type in operation.handler.opt.get("media_types", ())
    }
    if operation.reply is not None:
        content = {"application/json": {"schema": schemas[operation.reply]}, **content}
    else:
        declared = operation.handler.media_type
        media_type = str(getattr(declared, "value", declared) or "application/json")
        content = {media_type: {"schema": {"type": "string"}}, **content}
    return {"description": "Done.", "content": content}


def _refused(operation: _Operation, schemas: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    described = _json("An error: a stable code and a message for people.", schemas[ErrorBody])
    if page := operation.handler.opt.get("refused_as"):
        described["content"][page] = {"schema": {"type": "string"}}
    return described


def _json(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _events(schemas: dict[Any, dict[str, Any]]) -> list[dict[str, Any]]:
    """The events on the stream, which OpenAPI cannot describe."""
    logged = [
        {
            "type": name,
            "changes": [change.value for change in spec.changes],
            "meaning": spec.meaning,
            "payload": schemas[spec.payload],
        }
        for name, spec in EVENTS.items()
    ]
    return logged + [
        {"type": name, "changes": [], "meaning": inspect.getdoc(payload) or "", "payload": schemas[payload]}
        for name, payload in UNLOGGED.items()
    ]
