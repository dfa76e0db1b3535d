"""The async shell: it carries out what the core decides, owns the tasks, and connects store, models and tools."""
