"""Shapes of the set-up: the providers of models, whether they are connected, and a check of one."""

from typing import Literal

from longboat.wire.listings import ModelInfo
from longboat.wire.shape import Shape

Source = Literal["environment", "stored", "configuration", "running", "local"]
Need = Literal["required", "optional", "none"]


class Provider(Shape, frozen=True, kw_only=True):
    """A provider that prompts can use, or could after `PUT`."""

    id: str
    """As in provider/model."""
    name: str
    """For people."""
    connected: bool
    source: Source | None = None
    """Where a connected one comes from: a key in the server's environment, a stored key, longboat.json, a server that
    was found running on the same machine, or the local model."""
    stored: bool = False
    """Whether a key is stored for it; `DELETE` deletes it."""
    key: Need
    """Whether it needs an API key."""
    url: Need
    """Whether it needs a base URL."""
    variable: str | None = None
    """The environment variable that usually holds its key."""
    key_page: str | None = None
    """The page where you create a key."""
    base_url: str | None = None
    """The address in use, if it is not the provider's own."""
    problem: str | None = None
    """If it is not connected: what to do."""


class ProviderPage(Shape, frozen=True, kw_only=True):
    items: tuple[Provider, ...]
    """Connected ones first."""
    model: str | None
    """The default model, as provider/model; null if there is none. A project's longboat.json may choose another."""


class ProviderCheck(Shape, frozen=True, kw_only=True):
    """What the provider answered. Nothing was stored."""

    ok: bool
    problem: str | None = None
    """If it does not work: why."""
    base_url: str | None = None
    """The address that works, which may be the given one with `/v1` added; null for the provider's own."""
    models: tuple[ModelInfo, ...] = ()
    """Recommended ones first. Empty if the server has no list of models: connect it with a model's name."""
