"""The reference for programs: every route from its handler, every method of the client from its signature."""

import enum
import inspect
import re
from typing import Any

from litestar import Litestar
from markup import one_line, page, table

from longboat.client.aio import Client
from longboat.server.openapi import document
from longboat.server.routes import HANDLERS

PREFIX = "/v1/workspaces/{workspace_id}"


def reference() -> str:
    described = document(Litestar(HANDLERS, openapi_config=None, logging_config=None))
    return page(
        "# API reference",
        "Generated from the code. [HTTP](http.md) and [Python](python.md) explain how to use the API; "
        "[protocol](protocol.md) lists the types. A running server shows the same with every field: "
        "`GET /v1/openapi.json`, or `/v1/docs` in a browser.",
        "## HTTP",
        f"`W` is `{PREFIX}`. Every refusal is `{{code, message}}` with one of the [codes](protocol.md#errors).",
        *(block for path, methods in described["paths"].items() for block in route(path, methods)),
        "## Python",
        "The methods of `longboat.client.Client`. `SyncClient` has the same methods without `await`; its `aclose` is "
        "called `close`.",
        *(block for name, member in vars(Client).items() if is_public(name, member) for block in method(name, member)),
    )


def route(path: str, methods: dict[str, Any]) -> list[str]:
    blocks = []
    for verb, about in sorted(methods.items()):
        blocks += [f"### {verb.upper()} {path.replace(PREFIX, 'W', 1)}", one_line(about["summary"])]
        given = [each for each in about.get("parameters", []) if each["in"] == "query"]
        if given:
            rows = [[f"`{each['name']}`", one_line(each.get("description", ""))] for each in given]
            blocks.append(table(["query", "meaning"], rows))
        codes = ", ".join(code for code in about["responses"] if code.isdigit())
        blocks.append(f"{taken(about)}Answers {codes}{told(about)}.")
    return [block for block in blocks if block]


def taken(about: dict[str, Any]) -> str:
    name = _shape(about.get("requestBody", {}))
    return f"Takes {name}. " if name else ""


def told(about: dict[str, Any]) -> str:
    names = {_shape(answer) for code, answer in about["responses"].items() if code.startswith("2")} - {""}
    return f" with {', '.join(sorted(names))}" if names else ""


def _shape(described: Any) -> str:
    found = re.search(r"#/components/schemas/(\w+)", str(described))
    return f"[{found[1]}](protocol.md#{found[1].lower()})" if found else ""


def is_public(name: str, member: object) -> bool:
    return not name.startswith("_") and inspect.isfunction(member)


def method(name: str, member: Any) -> list[str]:
    parameters = [each for each in inspect.signature(member).parameters.values() if each.name != "self"]
    shown = [spelled(each) for each in parameters]
    named = [place for place, each in enumerate(parameters) if each.kind is inspect.Parameter.KEYWORD_ONLY]
    if named:
        shown.insert(named[0], "*")
    blocks = [f"### {name}", f"```text\n{name}({', '.join(shown)})\n```", one_line(inspect.getdoc(member))]
    return [block for block in blocks if block]


def spelled(parameter: inspect.Parameter) -> str:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if parameter.default is inspect.Parameter.empty:
        return parameter.name
    default = parameter.default.value if isinstance(parameter.default, enum.Enum) else parameter.default
    return f"{parameter.name}={default!r}"
