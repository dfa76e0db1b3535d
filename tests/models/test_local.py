"""The local model's process, where it cannot even be started. That it works is in integration/test_local_model.py."""

import os
import sys
from pathlib import Path

import pytest
from descriptors import none_left

from longboat.errors import ModelError
from longboat.models.local import weights
from longboat.models.local.model import LocalModel
from longboat.models.protocol import ModelRequest


async def test_a_process_that_cannot_be_started_is_retryable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise SystemExit('never loaded')")
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    weights.path_of(tmp_path).parent.mkdir()
    weights.path_of(tmp_path).touch()
    os.truncate(weights.path_of(tmp_path), weights.SMOLLM2.size)
    model = LocalModel(tmp_path)
    async with model.stream(ModelRequest(system="", messages=())) as events:
        with none_left(), pytest.raises(ModelError) as caught:
            [event async for event in events]
    await model.aclose()
    assert (caught.value.code, caught.value.retryable) == ("local_model_failed", True)
    assert "Too many open files" in caught.value.message
