"""The parts of the language server protocol that are used here, under its own names; unknown fields are ignored.

Defined here because `lsprotocol` takes a third of a second to import.
"""

from typing import Annotated, Any

import msgspec


class Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


Count = Annotated[int, msgspec.Meta(ge=0)]


class Position(Shape, frozen=True, kw_only=True):
    """Both count from zero; `character` counts UTF-16 units."""

    line: Count
    character: Count


class Range(Shape, frozen=True, kw_only=True):
    start: Position
    end: Position


class Diagnostic(Shape, frozen=True, kw_only=True):
    range: Range
    message: str
    severity: int | None = None
    code: int | str | None = None
    source: str | None = None


class Published(Shape, frozen=True, kw_only=True):
    uri: str
    diagnostics: tuple[Diagnostic, ...] = ()
    version: int | None = None


class PulledDiagnostics(Shape, frozen=True, kw_only=True):
    """The answer to `textDocument/diagnostic`."""

    kind: str = "full"
    items: tuple[Diagnostic, ...] = ()


class Location(Shape, frozen=True, kw_only=True):
    """`Location` and `LocationLink` in one."""

    uri: str | None = None
    range: Range | None = None
    target_uri: str | None = None
    target_range: Range | None = None
    target_selection_range: Range | None = None


Locations = Location | list[Location] | None


class Symbol(Shape, frozen=True, kw_only=True):
    """`DocumentSymbol`, `SymbolInformation` and `WorkspaceSymbol` in one."""

    name: str
    kind: int = 0
    detail: str | None = None
    range: Range | None = None
    selection_range: Range | None = None
    children: "list[Symbol]" = []
    location: Location | None = None
    container_name: str | None = None


class TextEdit(Shape, frozen=True, kw_only=True):
    range: Range
    new_text: str


class VersionedDocument(Shape, frozen=True, kw_only=True):
    uri: str
    version: int | None = None


class DocumentChange(Shape, frozen=True, kw_only=True):
    """`TextDocumentEdit`, or (with a `kind`) a file to be created, renamed or deleted."""

    kind: str | None = None
    text_document: VersionedDocument | None = None
    edits: list[TextEdit] = []


class WorkspaceEdit(Shape, frozen=True, kw_only=True):
    changes: dict[str, list[TextEdit]] | None = None
    document_changes: list[DocumentChange] | None = None

    def __bool__(self) -> bool:
        return bool(self.changes or self.document_changes)


class SyncOptions(Shape, frozen=True, kw_only=True):
    open_close: bool | None = None
    change: int | None = None
    save: bool | dict[str, Any] | None = None


Offer = bool | dict[str, Any] | None


class Capabilities(Shape, frozen=True, kw_only=True):
    text_document_sync: int | SyncOptions | None = None
    definition_provider: Offer = None
    references_provider: Offer = None
    document_symbol_provider: Offer = None
    workspace_symbol_provider: Offer = None
    rename_provider: Offer = None
    diagnostic_provider: Offer = None


class Initialized(Shape, frozen=True, kw_only=True):
    """The answer to `initialize`."""

    capabilities: Capabilities


class ConfigurationItem(Shape, frozen=True, kw_only=True):
    section: str | None = None


class ConfigurationAsked(Shape, frozen=True, kw_only=True):
    items: list[ConfigurationItem]


class Progress(Shape, frozen=True, kw_only=True):
    token: int | str
    value: Any = None


# Decoders rather than types: mypy cannot say what a union decodes to.
ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
INITIALIZED = msgspec.json.Decoder(Initialized)
PULLED = msgspec.json.Decoder(PulledDiagnostics)
LOCATIONS: msgspec.json.Decoder[Locations] = msgspec.json.Decoder(Locations)
SYMBOLS: msgspec.json.Decoder[list[Symbol] | None] = msgspec.json.Decoder(list[Symbol] | None)
EDIT: msgspec.json.Decoder[WorkspaceEdit | None] = msgspec.json.Decoder(WorkspaceEdit | None)
