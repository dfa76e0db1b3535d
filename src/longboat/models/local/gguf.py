"""Reads the metadata of a GGUF file: window, layers, template.

Owns the format's header and metadata, versions 2 and 3. Must not know how a model is run. Files come from strangers, so
it checks every length against the file before using it, and never touches tensors.
"""

import mmap
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from longboat.errors import ModelError

MAGIC = b"GGUF"
MAX_PAIRS = 4096
MAX_KEY = 65_535
MAX_TEXT = 1 << 20
"""The longest text to keep; a template has a few thousand characters."""
MAX_LISTED = 1024
"""The longest list of numbers to keep: one number for each layer."""

_UNKNOWN_KV_BYTES = 128 * 1024
"""Assumed for each token if the file does not say enough: the value of a model with 8 billion parameters."""
_CACHE_VALUE = 2
"""Bytes of one cached number: llama.cpp keeps them as 16-bit floats."""

_TEXT, _LIST = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})(?=\.gguf$)")

Value = int | float | str | tuple[int | float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """The metadata of a model's file. `trained_window` is None if the file does not say."""

    architecture: str
    name: str
    size: int
    """In bytes, including all parts of a split file."""
    trained_window: int | None
    kv_bytes: int
    """Memory for one token of a conversation. An upper limit: some architectures need less."""
    has_template: bool


def read_model_file(path: Path) -> ModelFile:
    """Read a file's metadata. Raises ModelError if the file is missing or not a complete model."""
    try:
        status = path.stat()
        return _read(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise _unusable(f"{path} cannot be read: {error.strerror or error}.") from None


@lru_cache(maxsize=32)
def _read(path: Path, size: int, _changed: int) -> ModelFile:
    if not path.is_file():
        raise _unusable(f"{path} is not a file.")
    if size == 0:
        raise _unusable(f"{path} is empty.")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            found = _metadata(data)
        except (struct.error, _Cut):
            raise _unusable(f"{path} is incomplete: it was not downloaded or copied to its end.") from None
        except _Wrong as error:
            raise _unusable(f"{path} {error}") from None
    return _described(path, found)


def _unusable(message: str) -> ModelError:
    return ModelError(message, title="The model's file cannot be used", code="bad_model_file")


class _Cut(Exception):
    """A length points past the end of the file."""


class _Wrong(Exception):
    pass


def _metadata(data: mmap.mmap) -> dict[str, Value]:
    if data[:4] != MAGIC:
        raise _Wrong("is not a GGUF file.")
    version, _, pairs = struct.unpack_from("<IQQ", data, 4)
    if version not in (2, 3):
        raise _Wrong(f"has version {version} of the GGUF format; versions 2 and 3 can be read.")
    if pairs > MAX_PAIRS:
        raise _Wrong(f"claims {pairs} fields of metadata, which no model has.")
    found: dict[str, Value] = {}
    at = 24
    for _ in range(pairs):
        key, at = _text(data, at, most=MAX_KEY)
        (kind,) = struct.unpack_from("<I", data, at)
        value, at = _value(data, at + 4, kind)
        if value is not None:
            found[key] = value
    return found


def _text(data: mmap.mmap, at: int, *, most: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<Q", data, at)
    if length > len(data) - at - 8:
        raise _Cut
    if length > most:
        raise _Wrong(f"has a text of {length:,} characters in its metadata, which is too long.")
    return data[at + 8 : at + 8 + length].decode("utf-8", "replace"), at + 8 + length


def _value(data: mmap.mmap, at: int, kind: int) -> tuple[Value | None, int]:
    if kind == _TEXT:
        return _text(data, at, most=MAX_TEXT)
    if kind == _LIST:
        return _list(data, at)
    if (code := _NUMBERS.get(kind)) is None:
        raise _Wrong(f"has metadata of an unknown kind ({kind}).")
    (number,) = struct.unpack_from(f"<{code}", data, at)
    return number, at + struct.calcsize(f"<{code}")


def _list(data: mmap.mmap, at: int) -> tuple[Value | None, int]:
    """Keep short lists of numbers. Skip others, such as the vocabulary."""
    kind, length = struct.unpack_from("<IQ", data, at)
    at += 12
    if kind == _TEXT:
        return None, _past_texts(data, at, length)
    if (code := _NUMBERS.get(kind)) is None:
        raise _Wrong(f"has a list of an unknown kind ({kind}) in its metadata.")
    end = at + length * struct.calcsize(f"<{code}")
    if end > len(data):
        raise _Cut
    return (struct.unpack_from(f"<{length}{code}", data, at) if length <= MAX_LISTED else None), end


def _past_texts(data: mmap.mmap, at: int, length: int) -> int:
    if length > (len(data) - at) // 8:  # each has its own length at least
        raise _Cut
    unpack, end = struct.Struct("<Q").unpack_from, len(data)
    for _ in range(length):
        at += 8 + unpack(data, at)[0]
        if at > end:
            raise _Cut
    return at


def _described(path: Path, found: Mapping[str, Value]) -> ModelFile:
    architecture = found.get("general.architecture")
    if not isinstance(architecture, str):
        raise _unusable(f"{path} does not say which architecture its model has.")
    if architecture == "clip" or found.get("general.type", "model") != "model":
        raise _unusable(f"{path} is only an add-on to a model ({found.get('general.type', architecture)}).")
    own = {
        key.removeprefix(f"{architecture}."): value
        for key, value in found.items()
        if key.startswith(f"{architecture}.")
    }
    if "block_count" not in own:
        raise _unusable(f"{path} is not the first part of a model. Name the file that ends in -00001-of-….gguf.")
    name = found.get("general.name")
    return ModelFile(
        architecture=architecture,
        name=name if isinstance(name, str) else path.stem,
        size=sum(part.stat().st_size for part in _parts(path)),
        trained_window=_positive(own, "context_length"),
        kv_bytes=_kv_bytes(own),
        has_template="tokenizer.chat_template" in found,
    )


def _parts(path: Path) -> list[Path]:
    """Find all files of a split model. llama.cpp finds the others by their names."""
    if (split := _SPLIT.search(path.name)) is None:
        return [path]
    count = min(int(split[2]), MAX_LISTED)
    names = (_SPLIT.sub(f"-{number:05}-of-{split[2]}", path.name) for number in range(1, count + 1))
    parts = [path.with_name(name) for name in names]
    if missing := next((part for part in parts if not part.is_file()), None):
        raise _unusable(f"{missing} is missing: the model in {path.name} has {count} parts.")
    return parts


def _positive(own: Mapping[str, Value], key: str) -> int | None:
    value = own.get(key)
    return value if isinstance(value, int) and value > 0 else None


def _kv_bytes(own: Mapping[str, Value]) -> int:
    layers = _positive(own, "block_count")
    if layers and (rank := _positive(own, "attention.kv_lora_rank")):
        return layers * (rank + (_positive(own, "rope.dimension_count") or 0)) * _CACHE_VALUE
    heads = _positive(own, "attention.head_count")
    width = _positive(own, "embedding_length")
    key_length = _positive(own, "attention.key_length") or (width // heads if width and heads else None)
    value_length = _positive(own, "attention.value_length") or key_length
    if not layers or key_length is None or value_length is None:
        return _UNKNOWN_KV_BYTES
    kept = own.get("attention.head_count_kv", heads or 0)
    kept_heads = sum(kept) if isinstance(kept, tuple) else layers * kept if isinstance(kept, int) else 0
    return int(kept_heads) * (key_length + value_length) * _CACHE_VALUE or _UNKNOWN_KV_BYTES
