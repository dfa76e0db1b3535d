"""The process that runs the local model: llama.cpp's OpenAI-compatible server on a free loopback port.

`python -m longboat.models.local.server` reads one JSON line (`Job`) from stdin, answers one JSON line (`Ready`) on
stdout once the model is loaded, and ends when its stdin ends: when its parent closes it or dies, however it dies. The
key comes over stdin because other users can read a command line. Nothing but this module imports xllamacpp.
"""

import os
import sys
import threading

import msgspec

MAX_OUTPUT_TOKENS = 512


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. Each of the `slots` answers one request at a time with a window of `context_window` tokens."""

    weights: str
    alias: str
    api_key: str
    context_window: int
    slots: int


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
    # The server's own threads would hold up a normal exit until running requests are done.
    os._exit(0)


def _serve(job: Job):  # type: ignore[no-untyped-def]  # the type is that of an untyped, optional library
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = job.weights
    params.model_alias = [job.alias]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [job.api_key]
    params.ui = False
    params.verbosity = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _threads()
    params.n_parallel = job.slots
    params.n_ctx = job.context_window * job.slots
    # Its default keeps up to 8 GB of old prompts.
    params.cache_ram_mib = 256
    # A model this small repeats itself for ever unless it is reined in.
    params.n_predict = MAX_OUTPUT_TOKENS
    params.sampling.temp = 0.3
    params.sampling.top_p = 0.9
    params.sampling.penalty_repeat = 1.1
    params.sampling.penalty_last_n = 256
    return xllamacpp.Server(params)


def _threads() -> int:
    """Half the processors. Its threads wait for each other at every layer: with as many as there are processors, one
    busy neighbor makes it ten times slower (measured on two: 50 tokens/s with one thread, 8 with two)."""
    return max(1, min(4, (os.cpu_count() or 2) // 2))


if __name__ == "__main__":
    main()
