"""A command in the weaker sandbox and the server's own socket, which lets its user in without a token (A8)."""

import json
import shutil
from pathlib import Path

import pytest
from cli_home import Home

from longboat.testing import CallTool, Say
from longboat.tools.sandbox import landlock, seccomp

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        landlock.version() < landlock.CAN_TRUNCATE or not seccomp.without_sockets(),
        reason="needs Linux 6.2 with Landlock and a filter for system calls",
    ),
]

KNOCK = """
import http.client, socket
class Door(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect({socket!r})
door = Door("localhost")
door.request("GET", "/v1/health")
print("reached", door.getresponse().status)
"""


@pytest.fixture
def home(own_home: Home) -> Home:
    """Of a user who has no bwrap, and wants a box."""
    programs = own_home.path / "bin"
    programs.mkdir()
    for name in ("bash", "git"):
        (programs / name).symlink_to(str(shutil.which(name)))
    own_home.environ["PATH"] = str(programs)
    return own_home


@pytest.mark.parametrize("sandbox", ["required", "auto", "off"])
def test_a_boxed_command_cannot_prompt_the_server_to_act_outside_of_the_box(home: Home, sandbox: str) -> None:
    """It would with everything approved. Without a box it can: then nobody has promised anything."""
    file = home.path / "config" / "longboat" / "longboat.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"sandbox": sandbox}))
    cwd: Path = home.workspace("boxed")
    (cwd / "knock.py").write_text(KNOCK.format(socket=str(home.socket)))
    knock = CallTool("bash", {"command": "/usr/bin/python3 knock.py > heard 2>&1"})
    home.endpoint.script("knock", [knock], [Say("Done.")])
    done = home.longboat("run", "--yolo", "[[knock]]", cwd=cwd)
    assert done.code == 0, done
    heard = (cwd / "heard").read_text()
    if sandbox == "off":
        assert heard.startswith("reached ")
    else:
        assert heard.endswith("PermissionError: [Errno 13] Permission denied\n")
        assert "Landlock sandbox: no network and no sockets" in done.err
