"""What survives the process: typed reads and changes, and the SQLite implementation."""
