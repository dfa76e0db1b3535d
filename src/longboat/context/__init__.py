"""What a workspace and its user give the agent: instructions, skills, commands, sub-agents, hooks, the prompt."""
