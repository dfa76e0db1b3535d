"""The API page for people, rendered from its OpenAPI description. One file, no scripts, no external resources."""

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; }
section { border-top: 1px solid #8884; padding: .75rem 0; }
h3 { font: 600 1rem ui-monospace, monospace; margin: 0; overflow-wrap: anywhere; }
.method { display: inline-block; min-width: 4.5rem; }
p { margin: .25rem 0; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 1px solid #8884; padding: .2rem .75rem .2rem 0; vertical-align: top; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
""".strip()

_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def render(document: dict[str, Any]) -> str:
    """The page."""
    info = document["info"]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style></head><body><main>",
            f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>",
            '<p>For programs: <a href="/v1/openapi.json">openapi.json</a>. Errors are '
            "<code>{code, message}</code> with a stable code.</p>",
            "<h2>Routes</h2>",
            *_routes(document["paths"]),
            "<h2>Events</h2>",
            *_events(document["x-events"]),
            "<h2>Shapes</h2>",
            *_shapes(document["components"]["schemas"]),
            "</main></body></html>",
        ]
    )


def _routes(paths: dict[str, Any]) -> Iterator[str]:
    for path, methods in sorted(paths.items()):
        for method, operation in methods.items():
            yield f'<section><h3><span class="method">{method.upper()}</span> {escape(path)}</h3>'
            yield f"<p>{escape(operation['summary'])}</p>"
            for parameter in operation["parameters"]:
                if parameter["in"] == "query":
                    text = escape(parameter.get("description", ""))
                    yield f"<p><code>?{escape(parameter['name'])}={_kind(parameter['schema'])}</code> {text}</p>"
            if body := operation.get("requestBody"):
                ((media_type, taken),) = body["content"].items()
                left_out = "" if body["required"] else ", or no body"
                yield f"<p>Takes <code>{_content(media_type, taken['schema'])}</code>{left_out}.</p>"
            yield f"<p>Answers {_answers(operation['responses'])}.</p></section>"


def _answers(responses: dict[str, Any]) -> str:
    return ", ".join(
        f"{status} " + " ".join(f"<code>{_content(kind, it['schema'])}</code>" for kind, it in reply["content"].items())
        if "content" in reply
        else status
        for status, reply in responses.items()
        if status != "default"
    )


def _content(media_type: str, schema: dict[str, Any]) -> str:
    return _kind(schema) if media_type == "application/json" else escape(media_type)


def _events(events: list[dict[str, Any]]) -> Iterator[str]:
    yield "<table>"
    for event in events:
        changes = ", ".join(event["changes"]) or "sent to one connection"
        yield f"<tr><td><code>{escape(event['type'])}</code><td>{escape(changes)}"
        yield f"<td><code>{_kind(event['payload'])}</code><td>{escape(event['meaning'])}"
    yield "</table>"


def _shapes(schemas: dict[str, Any]) -> Iterator[str]:
    for name, schema in sorted(schemas.items()):
        yield f'<section id="{escape(name)}"><h3>{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>'
        if "enum" in schema:
            yield f"<p><code>{_kind(schema)}</code></p>"
        yield "<table>"
        required = schema.get("required", [])
        for field, inner in schema.get("properties", {}).items():
            mark = "" if field in required else " (optional)"
            yield f"<tr><td><code>{escape(field)}</code>{mark}<td><code>{_kind(inner)}</code>"
        yield "</table></section>"


def _kind(schema: dict[str, Any]) -> str:
    """A type in few words, with links to the shapes."""
    if ref := schema.get("$ref"):
        name = escape(ref.rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "const" in schema or "enum" in schema:
        return escape(" | ".join(map(str, schema.get("enum") or [schema["const"]])))
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " | ".join(_kind(item) for item in schema[word])
    if schema.get("type") == "array":
        return f"[{_kind(schema.get('items') or {})}]"
    return escape(str(schema.get("type", "any")))
