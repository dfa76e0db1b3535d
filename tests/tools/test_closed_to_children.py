"""The server keeps what the agent runs from reading its environment, where its keys are."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes
from longboat.server.main import _close_to_children

_close_to_children()
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no /proc/PID/environ")
def test_the_server_cannot_be_read_through_proc_by_what_runs_as_the_same_user() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert found.stdout == "0\n"
