"""Writes GGUF files that have metadata and no tensors: enough for everything but running them."""

import struct
from collections.abc import Sequence
from pathlib import Path

Value = bool | int | float | str | Sequence[int] | Sequence[str]

QWEN = {
    "general.architecture": "qwen2",
    "general.type": "model",
    "general.name": "Tiny Qwen",
    "qwen2.block_count": 28,
    "qwen2.context_length": 32_768,
    "qwen2.embedding_length": 1_536,
    "qwen2.attention.head_count": 12,
    "qwen2.attention.head_count_kv": 2,
    "tokenizer.ggml.tokens": ["<s>", "a", "b"],
    "tokenizer.ggml.token_type": [3, 1, 1],
    "tokenizer.chat_template": "{{ messages }}",
}
"""The numbers of Qwen2.5-Coder-1.5B."""


def gguf(metadata: dict[str, Value], *, version: int = 3, weights: int = 0) -> bytes:
    pairs = b"".join(_text(key) + _value(value) for key, value in metadata.items())
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(metadata)) + pairs + bytes(weights)


def write_gguf(path: Path, metadata: dict[str, Value] | None = None, *, weights: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gguf(QWEN if metadata is None else metadata, weights=weights))
    return path


def _value(value: Value) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _text(value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_text(str(each)) for each in value)
        case _:
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()
