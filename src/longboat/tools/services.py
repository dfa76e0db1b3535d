"""What a workspace gives its tools when it builds them, as opposed to what it lends them for one call (ToolContext)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longboat.tools.lsp.client.servers import LanguageServers
    from longboat.tools.process.jobs import Jobs
    from longboat.tools.sandbox.sandbox import SandboxPolicy
    from longboat.tools.web.http import Web
    from longboat.tools.web.web_search import SearchProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServices:
    jobs: "Jobs"
    sandbox: "SandboxPolicy"
    language_servers: "LanguageServers"
    web: "Web"
    search: "SearchProvider | None"
    """None where no search provider is configured."""
