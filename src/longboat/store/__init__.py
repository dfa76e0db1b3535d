"""What survives the process: typed reads and changes. SQLite and PostgreSQL implement them."""
