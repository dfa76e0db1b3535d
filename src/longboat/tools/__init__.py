"""The agent's tools: one tool per file."""
