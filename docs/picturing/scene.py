"""Where the pictures are taken: a home with a repository, a scripted model, and a real `longboat serve`.

Owns the directory, the processes and their environment. Must not know what happens there.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from longboat.client import Client
from longboat.testing.endpoint import ScriptedEndpoint

# Its name is on the pictures, so it is always the same.
ROOT = Path("/tmp/anna")
MARK = ROOT / ".pictures"
TOKEN = "a-token-for-pictures-only"
GIVE_UP_S = 40


@dataclass(kw_only=True)
class Scene:
    model: ScriptedEndpoint
    environ: dict[str, str]
    port: int = 0

    @property
    def project(self) -> Path:
        return ROOT / "harbor"

    @property
    def other_project(self) -> Path:
        """An empty one."""
        return ROOT / "lighthouse"

    @property
    def database(self) -> Path:
        return ROOT / "data" / "longboat.db"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, name: str) -> Client:
        return Client(url=self.url, token=TOKEN, client_id=name)

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.project, env=self.environ, check=True, stdout=subprocess.DEVNULL)

    @property
    def config_file(self) -> Path:
        return ROOT / "config" / "longboat" / "longboat.json"

    def configure_nothing(self) -> None:
        """As after the installation, without the local model and without looking for servers on this machine."""
        library = ROOT / "library"
        library.mkdir()
        (library / "sitecustomize.py").write_text("import sys; sys.modules['xllamacpp'] = None")
        self.environ["PYTHONPATH"] = str(library)
        self._write_config({"models": {"detect": False}})

    def configure(self, allow: list[str]) -> None:
        """The scripted model, and rules that allow some calls."""
        self.environ.pop("PYTHONPATH", None)
        models = [{"id": name, "context_window": 128_000} for name in ("qwen3-coder", "devstral-small")]
        provider = {"type": "openai-compatible", "base_url": self.model.base_url, "api_key": "none", "models": models}
        self._write_config(
            {
                "providers": {"mine": provider},
                "models": {"large": "mine/qwen3-coder", "small": "mine/devstral-small"},
                "permissions": {"allow": allow},
            }
        )

    def _write_config(self, config: Mapping[str, object]) -> None:
        self.config_file.parent.mkdir(parents=True, exist_ok=True)
        self.config_file.write_text(json.dumps({**config, "titles": False, "server": {"drain_s": 1}}))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """A server on the loopback, until the block ends."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "longboat", "serve", "--data-dir", str(ROOT / "data"), "--port", "0"),
            cwd=ROOT,
            env=self.environ,
            stdout=PIPE,
        )
        try:
            async with asyncio.timeout(GIVE_UP_S):
                await self._ready(process)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            await process.communicate()

    async def _ready(self, process: Process) -> None:
        assert process.stdout is not None
        if b"is ready" not in await process.stdout.readline():
            raise SystemExit("pictures: the server does not start")
        found = json.loads((ROOT / "run" / "server.json").read_bytes())
        self.port = int(found["url"].rpartition(":")[2])


@asynccontextmanager
async def open_scene(files: Mapping[str, str]) -> AsyncIterator[Scene]:
    """The directory with the repository in it, and the model. Nothing is configured. Afterwards it is gone again."""
    _clear_the_place()
    try:
        async with ScriptedEndpoint() as model:
            scene = Scene(model=model, environ=_environ())
            scene.configure_nothing()
            _found(scene, files)
            yield scene
    finally:
        shutil.rmtree(ROOT)


def _clear_the_place() -> None:
    if MARK.exists() and ROOT.lstat().st_uid == os.getuid():
        shutil.rmtree(ROOT)  # of one who was killed
    try:
        ROOT.mkdir(mode=0o700)
    except FileExistsError:
        raise SystemExit(f"pictures: {ROOT} is there already, and not ours: move it away") from None
    MARK.touch()


def _environ() -> dict[str, str]:
    """Nothing of whoever takes the pictures, but the programs."""
    tools = str(Path(sys.executable).parent)
    when = "2026-05-04T10:00:00Z"
    return {
        "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(ROOT),
        "LANG": "C.UTF-8",
        "LOGNAME": "anna",
        "TERM": "xterm-256color",
        "TZ": "UTC",
        "XDG_CONFIG_HOME": str(ROOT / "config"),
        "LONGBOAT_RUNTIME_DIR": str(ROOT / "run"),
        "LONGBOAT_DATA_DIR": str(ROOT / "data"),
        "LONGBOAT_TOKEN": TOKEN,
        "PYTHONDONTWRITEBYTECODE": "1",
        **{f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in _who(when)},
    }


def _who(when: str) -> list[tuple[str, str]]:
    return [("NAME", "Anna"), ("EMAIL", "anna@harbor.example"), ("DATE", when)]


def _found(scene: Scene, files: Mapping[str, str]) -> None:
    scene.other_project.mkdir()
    for name, text in files.items():
        file = scene.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    scene.git("init", "-q", "-b", "main")
    scene.git("add", ".")
    scene.git("commit", "-q", "-m", "Tides, berths and the board at the gate")
