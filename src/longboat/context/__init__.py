"""What a project and its user tell the agent: instructions, skills, custom commands, sub-agents, hooks."""
