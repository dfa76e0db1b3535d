"""The `initialize` request, and the answers to a server's own requests: what this client supports. Pure."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from longboat.tools.lsp.client.json_rpc import METHOD_NOT_FOUND, Refused
from longboat.tools.lsp.client.shapes import ConfigurationAsked

_CAPABILITIES = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": {"dynamicRegistration": False},
        # Only with this do servers rely on being told of changes instead of looking for themselves.
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "symbol": {"dynamicRegistration": False},
        "workspaceEdit": {"documentChanges": True},
        "diagnostics": {"refreshSupport": False},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True, "relatedInformation": False},
        "diagnostic": {"dynamicRegistration": False, "relatedDocumentSupport": False},
        "definition": {"linkSupport": True},
        "references": {},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "rename": {"prepareSupport": False},
    },
}
_ANSWERS: dict[str, Any] = {
    "client/registerCapability": None,
    "client/unregisterCapability": None,
    "window/workDoneProgress/create": None,
    "window/showMessageRequest": None,
    "window/showDocument": {"success": False},
    "workspace/applyEdit": {"applied": False, "failureReason": "Longboat changes files itself."},
}


def folder_of(root: Path) -> dict[str, str]:
    return {"uri": root.as_uri(), "name": root.name or "/"}


def initialize_params(root: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        # A server that we cannot end any more ends itself when this process is gone.
        "processId": os.getpid(),
        "clientInfo": {"name": "longboat"},
        "rootPath": str(root),
        "rootUri": root.as_uri(),
        "workspaceFolders": [folder_of(root)],
        "capabilities": _CAPABILITIES,
        "initializationOptions": options,
    }


def answer(method: str, params: msgspec.Raw, *, settings: Mapping[str, Any], root: Path) -> Any:
    """What a server's request is answered. Raises Refused for what we do not do."""
    if method == "workspace/configuration":
        asked = msgspec.json.decode(params, type=ConfigurationAsked)
        return [_section(settings, item.section) for item in asked.items]
    if method == "workspace/workspaceFolders":
        return [folder_of(root)]
    if method in _ANSWERS:
        return _ANSWERS[method]
    if method.startswith("workspace/") and method.endswith("/refresh"):
        return None
    raise Refused(METHOD_NOT_FOUND, f"Longboat does not support {method}")


def _section(settings: Mapping[str, Any], name: str | None) -> Any:
    found: Any = settings
    for key in name.split(".") if name else ():
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
