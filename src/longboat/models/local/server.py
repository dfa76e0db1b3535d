"""The process that runs a local model: llama.cpp's OpenAI-compatible server on a free loopback port.

`python -m longboat.models.local.server` reads one JSON line (`Job`) from stdin, answers one JSON line (`Ready`) on
stdout once the model is loaded, and ends when its stdin ends: when its parent closes it or dies, however it dies. The
key comes over stdin because other users can read a command line. Nothing but this module imports xllamacpp.
"""

import os
import sys
import threading

import msgspec


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. Each of the `slots` answers one request at a time with a window of `context_window` tokens."""

    file: str
    alias: str
    api_key: str
    context_window: int
    slots: int
    threads: int
    max_output_tokens: int
    old_prompts_mib: int
    temperature: float
    top_p: float
    repeat_penalty: float
    idle_s: int
    """After this many seconds without a request, the model is unloaded; the next request loads it again."""


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    url: str


def main() -> None:
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    # The library may write to stdout: keep that for our one line, and let the rest join stderr, which is a log file.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    server = _serve(job)
    answer.write(msgspec.json.encode(Ready(url=server.listening_address)) + b"\n")
    answer.flush()
    threading.Event().wait()


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    # The server's own threads would delay a normal exit until running requests are done.
    os._exit(0)


def _serve(job: Job):  # type: ignore[no-untyped-def]  # the type is that of an untyped, optional library
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = job.file
    params.model_alias = [job.alias]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [job.api_key]
    params.ui = False
    params.verbosity = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = job.threads
    params.n_parallel = job.slots
    params.n_ctx = job.context_window * job.slots
    # The memory was already counted when the window was chosen.
    params.fit_params = False
    # Its default keeps up to 8 GB of old prompts.
    params.cache_ram_mib = job.old_prompts_mib
    # After each batch it reports how far it has read.
    params.n_batch = params.n_ubatch
    params.n_predict = job.max_output_tokens
    params.sleep_idle_seconds = job.idle_s
    # What the file itself says about sampling comes first.
    params.sampling.temp = job.temperature
    params.sampling.top_p = job.top_p
    params.sampling.penalty_repeat = job.repeat_penalty
    params.sampling.penalty_last_n = 256
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
