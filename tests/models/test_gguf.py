"""What a GGUF file says of its model, and what a file that is none, or a hostile one, is refused with."""

import os
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from gguf_files import QWEN, gguf, write_gguf
from hypothesis import given
from hypothesis import strategies as st
from local_files import demo_file, qwen_file

from longboat.errors import ModelError
from longboat.models.local.gguf import ModelFile, read_model_file
from longboat.models.local.known import DEMO, KNOWN_MODELS, QWEN_CODER, KnownModel


def refused(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_model_file(path)
    assert caught.value.code == "bad_model_file"
    return caught.value.message


def test_window_layers_and_template_are_read(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", weights=1_000)
    assert read_model_file(path) == ModelFile(
        architecture="qwen2",
        name="Tiny Qwen",
        size=path.stat().st_size,
        trained_window=32_768,
        kv_bytes=28 * 2 * (128 + 128) * 2,
        has_template=True,
    )


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf")
    assert read_model_file(path).trained_window == 32_768
    write_gguf(path, QWEN | {"qwen2.context_length": 4_096}, weights=1)
    assert read_model_file(path).trained_window == 4_096


@pytest.mark.parametrize(
    ("changes", "kv_bytes"),
    [
        ({"qwen2.attention.key_length": 64, "qwen2.attention.value_length": 32}, 28 * 2 * 96 * 2),
        ({"qwen2.attention.head_count_kv": [2, 0] * 14}, 28 * 256 * 2),
        ({"qwen2.attention.kv_lora_rank": 512, "qwen2.rope.dimension_count": 64}, 28 * 576 * 2),
        ({"qwen2.embedding_length": 0}, 128 * 1024),
    ],
    ids=["lengths of their own", "heads by layer", "a compressed cache", "not said"],
)
def test_the_memory_of_a_token_follows_the_architecture(
    tmp_path: Path, changes: dict[str, int | list[int]], kv_bytes: int
) -> None:
    assert read_model_file(write_gguf(tmp_path / "m.gguf", QWEN | changes)).kv_bytes == kv_bytes


def test_a_split_model_counts_as_a_whole_and_wants_all_its_parts(tmp_path: Path) -> None:
    first = write_gguf(tmp_path / "big-00001-of-00002.gguf")
    assert "big-00002-of-00002.gguf is missing" in refused(first)
    second = write_gguf(tmp_path / "big-00002-of-00002.gguf", {"general.architecture": "qwen2"}, weights=500)
    assert "not the first part" in refused(second)
    os.utime(first, (1, 1))
    assert read_model_file(first).size == first.stat().st_size + second.stat().st_size


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04 a zip file", "is not a GGUF file"),
        (gguf(QWEN, version=1), "has version 1 of the GGUF format"),
        (gguf({"general.name": "x"}), "does not say which architecture"),
        (gguf({"general.architecture": "clip"}), "only an add-on to a model"),
        (gguf(QWEN | {"general.type": "adapter"}), r"only an add-on to a model (adapter)"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "fields of metadata, which no model has"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62), "is incomplete"),
        (gguf({"a": "x" * (2 << 20)}), "too long"),
        (b"GGUF" + struct.pack("<IQQQcI", 3, 0, 1, 1, b"a", 99), "unknown kind (99)"),
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"a", 9, 8, 1 << 60), "is incomplete"),
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"a", 9, 4, 1 << 60), "is incomplete"),
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"a", 9, 9, 1), "a list of an unknown kind (9)"),
    ],
)
def test_what_is_no_model_is_refused_with_the_reason(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    assert message in refused(path)


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "none.gguf")
    assert "is not a file" in refused(tmp_path)


@given(cut=st.integers(0, 400), at=st.integers(0, 400), byte=st.integers(0, 255))
def test_a_damaged_file_is_read_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, cut: int, at: int, byte: int
) -> None:
    whole = bytearray(gguf(QWEN))
    whole[at % len(whole)] = byte
    path = tmp_path_factory.mktemp("damaged") / "m.gguf"
    path.write_bytes(whole[: len(whole) - cut])
    with suppress(ModelError):
        assert read_model_file(path).kv_bytes > 0


@pytest.mark.local_model
def test_the_list_says_of_a_model_what_its_file_says() -> None:
    assert read_model_file(demo_file()) == DEMO.file


@pytest.mark.local_model
def test_the_list_says_of_qwen_what_its_file_says() -> None:
    assert read_model_file(qwen_file()) == QWEN_CODER.file


@pytest.mark.parametrize("model", KNOWN_MODELS.values(), ids=KNOWN_MODELS)
def test_the_parts_of_a_known_model_add_up_to_it(model: KnownModel) -> None:
    assert sum(part.size for part in model.parts) == model.file.size
