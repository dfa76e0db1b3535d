"""The tools of the agent: one tool per file, its description beside it."""
