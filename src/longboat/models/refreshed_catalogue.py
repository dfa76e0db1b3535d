"""What `longboat models refresh` fetched: a newer price list, and the providers' lists of their models.

Owns two files under `<data_dir>/models/`. A missing or broken file is treated as never fetched. `refresh.py` fetches
them.
"""

import json
import os
import tempfile
from pathlib import Path

import msgspec

from longboat import regular_files

PRICES = "prices.json"
LISTED = "listed.json"


class Listed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A provider's entry for one of its models."""

    context_window: int | None = None
    max_output_tokens: int | None = None
    images: bool | None = None


Listing = dict[str, dict[str, Listed]]
"""By provider, then by model."""


def listing(data_dir: Path) -> Listing:
    try:
        return msgspec.json.decode(regular_files.read(data_dir / "models" / LISTED), type=Listing)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def save_listing(data_dir: Path, found: Listing) -> None:
    save_file(data_dir / "models" / LISTED, msgspec.json.encode(found))


def save_prices(data_dir: Path, raw: bytes) -> None:
    save_file(data_dir / "models" / PRICES, raw)


def use_prices(data_dir: Path) -> bool:
    """Make the fetched price list the one in use; False if there is none that can be read."""
    try:
        raw = json.loads(regular_files.read(data_dir / "models" / PRICES))
    except (OSError, ValueError, RecursionError):
        return False
    return parse_prices(raw)


def parse_prices(raw: object) -> bool:
    """Take a price list into use if it is one."""
    from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot

    try:
        # The library fetches and parses in one step; only its own parser knows the format.
        from genai_prices.types import _providers_from_raw

        providers = _providers_from_raw(raw)
    except (ImportError, ValueError, TypeError):
        return False
    if not providers:
        return False
    set_custom_snapshot(DataSnapshot(providers, from_auto_update=True))
    return True


def save_file(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as scratch:
        scratch.write(content)
    os.replace(scratch.name, path)
