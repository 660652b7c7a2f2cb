"""Runs the golden SQL scripts of tests/sql and compares what psql prints with what PostgreSQL 15 made it print.

`python golden.py` (or tests/sql/regenerate) writes the expectations anew from a PostgreSQL 15.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import isolation
from harness import REPOSITORY, PostgresServer, Server

SCRIPTS = REPOSITORY / "tests/sql"


def scripts() -> list[Path]:
    """The scripts that run in one session."""
    return sorted(SCRIPTS.glob("*.sql"))


def expected(script: Path) -> Path:
    """Where the expected output of a script is kept."""
    return script.parent / "expected" / f"{script.stem}.out"


def run(server: Server, script: Path) -> str:
    """What psql prints for a script: statements, results and errors; the server's source locations are left out."""
    command = ["sh", "-c", "exec psql -X -a -q 2>&1"]
    printed = server.run(*command, stdin=script.read_text(), check=False).stdout
    return "".join(line for line in printed.splitlines(keepends=True) if not line.startswith("LOCATION:"))


def regenerate() -> None:
    """Writes every expectation anew."""
    with tempfile.TemporaryDirectory(prefix="logstead-golden-") as root:
        server = PostgresServer(Path(root))
        server.start()
        try:
            version = server.execute("SHOW server_version")[0][0]
            if not version.startswith("15."):
                raise SystemExit(f"the specification is PostgreSQL 15, this is {version}")
            for script in scripts():
                expected(script).write_text(run(server, script))
                left = server.execute("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
                if left:
                    raise SystemExit(f"{script.name} leaves {[name for (name,) in left]} behind")
            for script in isolation.scripts():
                isolation.expected(script).write_text(isolation.run(server, script))
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(regenerate())
