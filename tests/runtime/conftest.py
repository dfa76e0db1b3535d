"""What several tests of the runtime use."""

import pytest

from longboat.tools.mcp import McpServers


@pytest.fixture
def awaited_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns wait for MCP servers to start, and workspaces for their tools to end, as long as a busy machine needs."""
    monkeypatch.setitem(McpServers.__init__.__kwdefaults__, "wait_s", 60)
    monkeypatch.setattr("longboat.runtime.workspace.workspace.CLOSE_S", 60)
