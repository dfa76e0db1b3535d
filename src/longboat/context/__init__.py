"""What a project and its user tell the agent: instructions, skills, commands, sub-agents, hooks, the system prompt."""
