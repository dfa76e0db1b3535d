"""The files in docs/deploy/ are what docs/deployment.md shows, and use commands, flags and names that exist."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_readme import ROOT, TEXTS, complaint, fenced

from longboat.config.load import load_config, user_config_file
from longboat.config.settings import ServerSection
from longboat.errors import ForeignHost
from longboat.fleet import owners
from longboat.server.auth import Policy

DEPLOY = ROOT / "docs" / "deploy"
FILES = sorted(path.relative_to(DEPLOY).as_posix() for path in DEPLOY.rglob("*") if path.is_file())
UNITS = ["longboat.service", "longboat-user.service"]
PAGE = TEXTS["docs/deployment.md"]


def read(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def setting(unit: str, key: str) -> str:
    (value,) = re.findall(rf"^{key}=(.+)$", read(unit), flags=re.MULTILINE)
    return str(value)


def instructions(kind: str) -> list[str]:
    """Of the container file, each on one line."""
    return re.findall(rf"^{kind} (.+)$", read("Containerfile").replace("\\\n", ""), flags=re.MULTILINE)


@pytest.mark.parametrize("name", FILES)
def test_the_page_shows_every_file_as_it_is(name: str) -> None:
    assert f"[{name}](deploy/{name})" in PAGE
    assert read(name) in [
        block for language in ("ini", "nginx", "dockerfile", "yaml", "text") for block in fenced(PAGE, language)
    ]


# systemd


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_starts_a_command_that_exists_and_waits_for_the_drain(unit: str) -> None:
    program, *arguments = shlex.split(setting(unit, "ExecStart"))
    assert program.endswith("/bin/longboat")
    assert complaint(arguments) is None
    assert int(setting(unit, "TimeoutStopSec")) >= ServerSection().drain_s + 5
    assert setting(unit, "KillMode") == "mixed", "else systemd ends the commands of runs that are to drain"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
@pytest.mark.parametrize(("unit", "whose"), [("longboat.service", "--system"), ("longboat-user.service", "--user")])
def test_systemd_finds_nothing_wrong_with_the_unit(unit: str, whose: str, tmp_path: Path) -> None:
    started = setting(unit, "ExecStart").split()[0]
    copy = tmp_path / unit
    copy.write_text(read(unit).replace(started, sys.executable))  # it looks whether the program is there
    found = subprocess.run(
        ["systemd-analyze", whose, "verify", "--man=no", str(copy)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in (found.stdout + found.stderr).splitlines() if unit in line]
    assert (found.returncode, said) == (0, [])


def test_a_node_listens_where_the_load_balancer_and_the_others_look_for_it() -> None:
    _, command = re.findall(r"^ExecStart=(.*)$", read("longboat-node.conf"), flags=re.MULTILINE)
    program, *arguments = shlex.split(command)
    assert program == setting("longboat.service", "ExecStart").split()[0]
    assert complaint(arguments) is None
    given = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    assert given["--advertise"] == f"http://%H.internal:{given['--port']}"
    places = re.findall(r"^ +server (\S+):(\d+)", read("nginx-nodes.conf"), flags=re.MULTILINE)
    assert places == [(f"boat-{number}.internal", given["--port"]) for number in (1, 2, 3)]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_a_node_is_started_again_for_as_long_as_it_takes() -> None:
    assert setting("longboat-node.conf", "StartLimitIntervalSec") == "0"
    assert int(setting("longboat-node.conf", "RestartSec")) > 0
    assert setting("longboat.service", "Restart") == "on-failure"


def test_systemd_finds_nothing_wrong_with_the_node(tmp_path: Path) -> None:
    unit, started = "longboat.service", setting("longboat.service", "ExecStart").split()[0]
    (tmp_path / unit).write_text(read(unit).replace(started, sys.executable))
    (tmp_path / f"{unit}.d").mkdir()
    (tmp_path / f"{unit}.d" / "node.conf").write_text(read("longboat-node.conf").replace(started, sys.executable))
    words = ["systemd-analyze", "--system", "verify", "--man=no", str(tmp_path / unit)]
    environ = {**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
    found = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    said = [line for line in (found.stdout + found.stderr).splitlines() if "longboat" in line or "node.conf" in line]
    assert (found.returncode, said) == (0, [])


# Proxies


def test_the_proxies_lead_to_the_port_of_the_unit_and_pass_what_the_server_takes() -> None:
    port = re.search(r"--port (\d+)", setting("longboat.service", "ExecStart"))
    assert port is not None
    largest = ServerSection().max_import_mb
    assert largest > ServerSection().max_body_mb, "no other body is larger"
    assert f"proxy_pass http://127.0.0.1:{port[1]};" in read("nginx.conf")
    assert f"client_max_body_size {largest}m;" in read("nginx.conf")
    assert f"reverse_proxy 127.0.0.1:{port[1]} " in read("Caddyfile")
    assert f"max_size {largest}MiB" in read("Caddyfile")
    (timeout,) = re.findall(r"proxy_read_timeout (\d+)s;", read("nginx.conf"))
    assert int(timeout) > 60, "requests may wait for 60 s"
    assert f"client_max_body_size {largest}m;" in read("nginx-nodes.conf")
    (timeout,) = re.findall(r"proxy_read_timeout (\d+)s;", read("nginx-nodes.conf"))
    next_owner_s = ServerSection().lease_s + owners.SUCCESSOR_WAIT_S
    assert int(timeout) > 60 + 2 * next_owner_s, "a node may wait for the next owner, before and after it asks one"


# The container


def test_the_container_has_a_python_that_longboat_runs_on() -> None:
    (base,) = instructions("FROM")
    found = re.search(r"/python:(\d+)\.(\d+)-", base)
    assert found is not None
    assert (int(found[1]), int(found[2])) >= (3, 11)


def test_the_container_starts_a_command_that_exists_on_the_port_that_it_exposes() -> None:
    (command,) = map(json.loads, instructions("CMD"))
    assert command[0] == "longboat"
    assert complaint(command[1:]) is None
    (port,) = instructions("EXPOSE")
    assert command[-2:] == ["--port", port]
    (probe,) = re.findall(r"^HEALTHCHECK CMD (.+)$", read("Containerfile"), flags=re.MULTILINE)
    program = json.loads(probe)[2]
    compile(program, "HEALTHCHECK", "exec")
    assert f"http://127.0.0.1:{port}/v1/health" in program


def test_the_container_copies_all_that_the_package_is_built_of() -> None:
    copied = [name for line in instructions("COPY") for name in line.split()[:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert {"pyproject.toml", "README.md", "LICENSE", "src"} <= set(copied)


def test_the_container_answers_at_its_published_port_whatever_its_own_address_is(tmp_path: Path) -> None:
    (written,) = re.findall(r"echo '(\{.+?\})' > (\S+)", read("Containerfile"))
    assert written[1].endswith("/.config/longboat/longboat.json")
    file = user_config_file({}, tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text(written[0])
    allowed = load_config(tmp_path, environ={}, user_dir=tmp_path).server.allowed_hosts
    policy = Policy(token="t", listen_host="0.0.0.0", allowed_hosts=allowed)
    for host in ("localhost:8911", "127.0.0.1:8911"):
        policy.check_host([host], local_address="172.17.0.2")
    with pytest.raises(ForeignHost):
        policy.check_host(["evil.example.com"], local_address="172.17.0.2")


def test_the_containers_user_owns_every_directory_of_its_home() -> None:
    """`install -d` makes the directories in between too, but gives them to root."""
    (made,) = re.findall(r"install -d -o longboat -g longboat -m 700 (.+?) &&", " ".join(instructions("RUN")))
    own = Path("/home/longboat")
    paths = [Path(name) for name in made.split()]
    between = {above for path in paths for above in path.parents if own in above.parents}
    assert between
    assert between <= set(paths)


def test_the_container_is_built_so_that_podman_keeps_its_health_check() -> None:
    """Podman's own format of images has none."""
    builds = re.findall(r"podman build .+", f"{PAGE}\n{read('Containerfile')}")
    assert builds
    assert [line for line in builds if "--format docker" not in line] == []


def test_the_container_is_given_the_time_to_drain_and_keeps_what_is_trusted() -> None:
    """Containers are killed 10 s after they were told to stop, unless one says otherwise."""
    (started,) = re.findall(r"podman run .+?longboat:latest", PAGE, flags=re.DOTALL)
    (given,) = re.findall(r"--stop-timeout (\d+)", started)
    assert int(given) >= ServerSection().drain_s + 5
    assert {"/data", "/home/longboat/.config"} <= set(re.findall(r"-v longboat-\w+:(\S+)", started))


def test_every_variable_of_ours_in_the_files_is_a_documented_one() -> None:
    named = {name for file in FILES for name in re.findall(r"LONGBOAT_\w+", read(file))}
    assert not [name for name in named if f"| `{name}` |" not in TEXTS["docs/configuration.md"]]
