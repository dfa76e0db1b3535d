"""One workspace: its services, sessions, tools and clients."""
