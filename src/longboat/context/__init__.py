"""What a workspace and its user tell the agent: instructions, skills, commands, sub-agents, hooks, the prompt."""
