"""The next build of Longboat, as long as there is no other release: this one with another version and one more
migration of PostgreSQL. `serve(environ=…)` runs it instead of this one."""

import re
import shutil
from pathlib import Path

import longboat
from longboat.store.postgres.schema import migrations

NEWEST = migrations()[-1].number
"""The schema that this build knows."""
NEXT = "99.0.0"

ADDS = """
ALTER TABLE workspaces ADD COLUMN later TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN later TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN later BIGINT;
ALTER TABLE events ADD COLUMN later BIGINT;
ALTER TABLE nodes ADD COLUMN later BIGINT;
ALTER TABLE runs ADD COLUMN later TEXT NOT NULL DEFAULT 'none';
CREATE INDEX runs_later ON runs (later, seq);
CREATE TABLE later (number BIGINT);
"""
"""What a release may add: columns and an index where this build writes, too."""


def next_build(directory: Path, *, floor: int = NEWEST, then: str = "") -> dict[str, str]:
    """Make it there. The variables that a process needs to run it. `floor`: the oldest schema that it leaves working;
    `then`: what its migration does at last."""
    origin = Path(longboat.__file__).parent
    package = directory / "next" / origin.name
    shutil.copytree(origin, package)
    made = package / "__init__.py"
    made.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{NEXT}"', made.read_text()))
    migration = package / "store" / "postgres" / "migrations" / f"{NEWEST + 1:04}_later.sql"
    migration.write_text(f"-- floor: {floor}\n{ADDS}{then}")
    return {"PYTHONPATH": str(package.parent)}
