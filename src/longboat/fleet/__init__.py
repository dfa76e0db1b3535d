"""Several servers on one PostgreSQL: who owns a workspace, and how a request gets to its owner."""
