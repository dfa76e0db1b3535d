"""The async runtime: executes the core's decisions, owns the tasks, and connects store, models, tools and clients."""
