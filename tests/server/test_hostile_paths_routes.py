"""Whatever path a request brings: an answer or a 400 with a stable code, never a 500 (D10)."""

from pathlib import Path

import pytest
from server_harness import Served, refusal, serve_in

from hostile_paths import PATHS, make_obstacles

CODES = {"bad_input", "bad_path", "bad_json", "path_outside", "path_not_found", "path_not_directory", "path_unreadable"}


async def test_every_route_that_takes_a_path_answers_or_refuses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project = tmp_path / "project"
    async with serve_in(tmp_path) as served:
        workspace = await served.workspace(project)
        make_obstacles(project)
        for path in PATHS.values():
            await _look(served, workspace, path)
            await _join(served, path, str(project / "x")[:-1] + path)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def _look(served: Served, workspace: str, path: str) -> None:
    raw = "".join(f"%{byte:02x}" for byte in path.encode("utf-8", "surrogatepass"))
    for request in (f"files?path={raw}", f"files?all=true&path={raw}", f"search?q={raw}"):
        answer = await served.unix.get(f"{workspace}/{request}")
        if answer.status_code != 200:
            status, code = refusal(answer)
            assert (status, code in CODES) == (400, True), (request, answer.text)


async def _join(served: Served, *paths: str) -> None:
    for path in paths:
        escaped = "".join(f"\\u{ord(char):04x}" for char in path)
        answer = await served.unix.post("/v1/workspaces", content=f'{{"path": "{escaped}"}}')
        if answer.status_code not in (200, 201):
            status, code = refusal(answer)
            assert (status, code in CODES) == (400, True), (path, answer.text)


@pytest.mark.parametrize("path", ["a" * 256, "a/" * 2_000 + "a" * 300])
async def test_a_long_name_is_a_bad_path(tmp_path: Path, path: str) -> None:
    async with serve_in(tmp_path) as served:
        workspace = await served.workspace(tmp_path / "project")
        answer = await served.unix.get(f"{workspace}/files", params={"path": path})
        assert refusal(answer)[0] == 400
