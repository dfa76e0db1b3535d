"""Fakes that Longboat's own tests use, shipped for yours: a scripted model and tool, and gates to force a race.

`longboat.testing.endpoint.ScriptedEndpoint` is the same script behind a real HTTP server; it is not imported here, so
that `python -m longboat.testing.endpoint` runs it clean.
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
