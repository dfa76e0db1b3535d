"""What confines commands: sandbox, read-only wall, Landlock, seccomp."""
