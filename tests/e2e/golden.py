"""Runs the golden SQL scripts of tests/sql and compares what psql prints with what PostgreSQL 15 made it print.

`python golden.py [NAME...]` (or tests/sql/regenerate) writes the expectations anew from a PostgreSQL 15: all, or those of the
scripts named, without folder and ending.
"""

from __future__ import annotations

import re
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


# psql's two lines about the position of an error.
POSITION = re.compile(r"^LINE \d+: .*\n *\^\n", re.MULTILINE)


def run(server: Server, script: Path) -> str:
    """What psql prints for a script: statements, results and errors.

    The server's source locations are left out, and positions too where the script is not about errors: a planner may find
    the same error at another time, and then knows less of where it came from.
    """
    command = ["sh", "-c", "exec psql -X -a -q 2>&1"]
    printed = server.run(*command, stdin=script.read_text(), check=False).stdout
    printed = "".join(line for line in printed.splitlines(keepends=True) if not line.startswith("LOCATION:"))
    return printed if script.stem == "errors" else POSITION.sub("", printed)


def chosen(among: list[Path], names: list[str]) -> list[Path]:
    """The scripts of those names; without names all of them."""
    return [script for script in among if not names or script.stem in names]


def regenerate(names: list[str]) -> None:
    """Writes the expectations of the scripts named anew, or every one."""
    unknown = set(names) - {script.stem for script in scripts() + isolation.scripts()}
    if unknown:
        raise SystemExit(f"no such scripts: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="logstead-golden-") as root:
        server = PostgresServer(Path(root))
        server.start()
        try:
            version = server.execute("SHOW server_version")[0][0]
            if not version.startswith("15."):
                raise SystemExit(f"the specification is PostgreSQL 15, this is {version}")
            for script in chosen(scripts(), names):
                expected(script).write_text(run(server, script))
                left = server.execute("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
                if left:
                    raise SystemExit(f"{script.name} leaves {[name for (name,) in left]} behind")
            for script in chosen(isolation.scripts(), names):
                isolation.expected(script).write_text(isolation.run(server, script))
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(regenerate(sys.argv[1:]))
