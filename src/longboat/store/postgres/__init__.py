"""The shared store: PostgreSQL through asyncpg."""
