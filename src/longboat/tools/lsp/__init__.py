"""Language servers: starting them, and asking them about a workspace's code."""
