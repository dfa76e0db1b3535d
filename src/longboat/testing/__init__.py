"""What Longboat's own tests use, shipped for yours: a scripted model and tool, real servers, a cluster, a failing link.

`longboat.testing.endpoint.ScriptedEndpoint` is the same script behind a real HTTP server; it is not imported here, so
that `python -m longboat.testing.endpoint` runs it clean. `longboat.testing.cutoff.Cutoff` is a network link that can be
cut, `longboat.testing.server` a real server in a process, and `longboat.testing.fleet` several on one PostgreSQL.
"""

from longboat.testing.script import (
    Break,
    CallTool,
    Delay,
    Fail,
    Gate,
    Hang,
    HttpStep,
    Pause,
    Raw,
    Refuse,
    Say,
    Step,
    Stop,
    Think,
    Use,
    encode_script,
    words,
)
from longboat.testing.scripted import ScriptedModel, ScriptedTool

__all__ = [
    "Break",
    "CallTool",
    "Delay",
    "Fail",
    "Gate",
    "Hang",
    "HttpStep",
    "Pause",
    "Raw",
    "Refuse",
    "Say",
    "ScriptedModel",
    "ScriptedTool",
    "Step",
    "Stop",
    "Think",
    "Use",
    "encode_script",
    "words",
]
