"""MCP servers of a workspace: their tools, prompts and resources. Importing this loads nothing of the SDK."""

from longboat.tools.mcp.servers import McpServers
from longboat.tools.mcp.settings import McpServer
from longboat.tools.mcp.state import McpArgument, McpPrompt, McpResource, Phase, ServerState

__all__ = ["McpArgument", "McpPrompt", "McpResource", "McpServer", "McpServers", "Phase", "ServerState"]
