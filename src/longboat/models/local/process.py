"""Starts and stops the process that runs one local model, and talks to it.

Owns the process and the connection to it. Must not know when it is needed (`model.py`), nor its wire format
(`openai_chat.py`).
"""

import asyncio
import contextlib
import importlib.util
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from longboat.errors import ModelError
from longboat.models.catalogue import FREE, configured_tariff
from longboat.models.local.files import LocalModelSpec
from longboat.models.local.fit import SLOTS, Fit
from longboat.models.local.known import DEMO, PLAIN
from longboat.models.local.server import Job, Ready
from longboat.models.protocol import Abilities

if TYPE_CHECKING:
    from longboat.models.openai_chat import OpenAIChatModel

_LOAD_TIMEOUT_S = 120.0
_LOADED_PER_S = 20_000_000
"""Bytes per second that the slowest disk reads."""
_PROMPT_TIMEOUT_S = 600.0
"""Reading a full context window takes minutes on a slow machine, and the model sends nothing meanwhile."""
_IDLE_S = 1_800
_STOP_TIMEOUT_S = 2.0


def runtime_installed() -> bool:
    """Whether local models can be run here; their files may still have to be downloaded."""
    return importlib.util.find_spec("xllamacpp") is not None


def abilities_of(spec: LocalModelSpec) -> Abilities:
    return Abilities(images=False, tools=spec.tools != "none", effort=False, agent=spec.known is not DEMO)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProcess:
    process: asyncio.subprocess.Process
    chat: "OpenAIChatModel"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def wait_ended(self, timeout_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.process.wait()
        return not self.alive

    async def stop(self) -> None:
        await self.chat.aclose()
        assert self.process.stdin is not None
        self.process.stdin.close()
        if not await self.wait_ended(_STOP_TIMEOUT_S):
            await _kill(self.process)


async def launch(spec: LocalModelSpec, fit: Fit, log: Path) -> ModelProcess:
    """Start the process and wait until it has loaded the model."""
    from longboat.models.openai_chat import OpenAIChatModel
    from longboat.models.openai_request import Dialect

    job = _job(spec, fit)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            # -P: a directory the server happens to be in must not supply modules.
            *(sys.executable, "-P", "-m", "longboat.models.local.server"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=sink,
            # Ctrl-C in the terminal is for the server, which still needs the model while it drains.
            start_new_session=True,
        )
    ready = await _ready(process, job, _LOAD_TIMEOUT_S + spec.file.size / _LOADED_PER_S, _damaged(spec, log))
    chat = OpenAIChatModel(
        direct=True,
        provider=spec.provider,
        name=spec.name,
        base_url=f"{ready.url}/v1",
        api_key=job.api_key,
        context_window=fit.context_window,
        abilities=abilities_of(spec),
        dialect=Dialect(max_output_tokens=fit.max_output_tokens, prompt_progress=True),
        tariff=configured_tariff(FREE),
        idle_s=_PROMPT_TIMEOUT_S,
    )
    return ModelProcess(process=process, chat=chat)


def _job(spec: LocalModelSpec, fit: Fit) -> Job:
    sampling = spec.known.sampling if spec.known is not None else PLAIN
    return Job(
        file=str(spec.path),
        alias=spec.name,
        api_key=secrets.token_urlsafe(24),
        context_window=fit.context_window,
        slots=SLOTS,
        threads=fit.threads,
        max_output_tokens=fit.max_output_tokens,
        old_prompts_mib=max(1, fit.old_prompts >> 20),
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        repeat_penalty=sampling.repeat_penalty,
        idle_s=_IDLE_S,
    )


def _damaged(spec: LocalModelSpec, log: Path) -> str:
    advice = f"delete {spec.path} and run `longboat models pull {spec.name}`" if spec.known else "get it again"
    return f"{spec.name} did not start; see {log}. If its file {spec.path} is damaged, {advice}."


async def _ready(process: asyncio.subprocess.Process, job: Job, timeout_s: float, failure: str) -> Ready:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(job) + b"\n")
        async with asyncio.timeout(timeout_s):
            line = await process.stdout.readline()
        return msgspec.json.decode(line, type=Ready)
    except (TimeoutError, msgspec.DecodeError):
        raise ModelError(failure, title="The local model did not start", code="local_model_failed") from None
    finally:
        if sys.exc_info()[0] is not None:
            await _kill(process)


async def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()
