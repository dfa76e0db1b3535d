"""The files of real local models, where tests look for them: in the user's own data directory."""

import asyncio
import os
from pathlib import Path

import pytest

from longboat.config.settings import ModelEntry
from longboat.errors import ModelError
from longboat.models.local.download import pull
from longboat.models.local.files import LocalModelSpec, local_spec, path_in
from longboat.models.local.known import DEMO, QWEN_CODER, KnownModel
from longboat.wire.discovery import data_dir

USERS = data_dir(os.environ, Path.home())


def demo_file() -> Path:
    """Fetched once for ever."""
    path = path_in(USERS, DEMO.id)
    try:
        asyncio.run(pull(DEMO, path, lambda _: None))
    except ModelError as error:
        pytest.skip(f"{error.message} Run: longboat models pull")
    return path


def qwen_file() -> Path:
    """A gigabyte: only used where somebody pulled it."""
    path = path_in(USERS, QWEN_CODER.id)
    if not path.exists():
        pytest.skip(f"Run: longboat models pull {QWEN_CODER.id}")
    return path


def put(file: Path, directory: Path, model: KnownModel = DEMO) -> Path:
    """Put the file of a model into a data directory, without a copy."""
    target = path_in(directory, model.id)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(file)
    return target


def put_stub(directory: Path, model: KnownModel = DEMO) -> Path:
    """A file of the right size, which cannot be loaded."""
    target = path_in(directory, model.id)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        file.truncate(model.file.size)
    return target


def spec_of(name: str, directory: Path = USERS, **settings: object) -> LocalModelSpec:
    return local_spec("local", ModelEntry(id=name, **settings), directory)  # type: ignore[arg-type]
