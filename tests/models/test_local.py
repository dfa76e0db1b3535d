"""The local model's process, where it cannot even be started. That it works is in test_local_model.py."""

import sys
from pathlib import Path

import pytest
from descriptors import none_left
from local_files import put_stub, spec_of

from longboat.errors import ModelError
from longboat.models.local.model import LocalModels
from longboat.models.protocol import ModelRequest


async def test_a_process_that_cannot_be_started_is_retryable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise SystemExit('never loaded')")
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    put_stub(tmp_path)
    models = LocalModels(tmp_path)
    model = models.get(spec_of("smollm2-135m", tmp_path))
    async with model.stream(ModelRequest(system="", messages=())) as events:
        with none_left(), pytest.raises(ModelError) as caught:
            [event async for event in events]
    await models.aclose()
    assert (caught.value.code, caught.value.retryable) == ("local_model_failed", True)
    assert "Too many open files" in caught.value.message
