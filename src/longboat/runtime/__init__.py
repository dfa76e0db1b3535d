"""The async shell: it obeys the core, owns the tasks, and connects store, models, tools and clients."""
