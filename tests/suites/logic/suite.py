"""Thousands of statements, picked by hand and generated, whose answers were taken from PostgreSQL 15: `script.py` tells their form.

`python suite.py regenerate` takes the answers anew from a PostgreSQL 15, after it has made the generated scripts (`generate.py`).
"""

from __future__ import annotations

import hashlib
import itertools
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import script  # noqa: E402

SESSION = [
    "SET timezone = 'UTC'",
    "SET datestyle = 'ISO, MDY'",
    "SET intervalstyle = 'postgres'",
    "DROP SCHEMA IF EXISTS logic CASCADE",
    "CREATE SCHEMA logic",
    "SET search_path = logic",
]


def session(server):
    """A connection of a script's own, in an empty schema."""
    connection = server.connect(autocommit=True)
    connection.execute("SET client_min_messages = error")
    for statement in SESSION:
        connection.execute(statement)
    return connection


def name_of(path: Path, record) -> str:
    """A record's name: the script and a fingerprint of the statement, which stays when others come and go."""
    return f"{path.stem} {hashlib.sha256(record.sql.encode()).hexdigest()[:10]}"


def run(context):
    from report import Result

    results = {}
    server = context.server("server")
    for path in sorted((context.folder / "scripts").glob("*.test")):
        if context.only and not any(word in path.stem for word in context.only):
            continue
        connection = session(server)
        asker = script.Asker(connection)
        for record in script.read(path):
            if connection.closed or asker.connection.status != 0:
                connection = session(server) if server.running() else None
                if connection is None:
                    break
                asker = script.Asker(connection)
            wrong = script.differences(record, asker.ask(record))
            name = name_of(path, record)
            if wrong or name not in results:
                results[name] = Result(name, "fail" if wrong else "pass", wrong)
        connection.close()
    context.close(server)
    return list(results.values())


def answer_all(server, path: Path, records) -> None:
    """Writes a script with PostgreSQL's answers."""
    connection = session(server)
    asker = script.Asker(connection)
    head = path.read_text().split("\n\n")[0].splitlines() if path.exists() else []
    preface = list(itertools.takewhile(lambda line: line.startswith("#"), head))
    blocks = ["\n".join(preface) + "\n"] if preface else []
    for record in records:
        blocks.append(asker.ask(record).text())
    connection.close()
    path.write_text("\n".join(blocks))


def regenerate(only) -> None:
    """Makes the generated scripts, and takes every answer anew."""
    sys.path[:0] = [str(HERE.parents[1] / "e2e")]
    import generate
    from harness import PostgresServer

    with tempfile.TemporaryDirectory(prefix="logstead-logic-") as root:
        server = PostgresServer(Path(root))
        server.start()
        try:
            version = server.execute("SHOW server_version")[0][0]
            if not version.startswith("15."):
                raise SystemExit(f"the specification is PostgreSQL 15, this is {version}")
            scripts = HERE / "scripts"
            made = generate.scripts(lambda: session(server), only)
            for name, records in made.items():
                answer_all(server, scripts / f"{name}.test", records)
            for path in sorted(scripts.glob("*.test")):
                if path.stem not in generate.SCRIPTS and (not only or path.stem in only):
                    answer_all(server, path, script.read(path))
        finally:
            server.stop()


if __name__ == "__main__":
    if sys.argv[1:2] != ["regenerate"]:
        raise SystemExit("usage: suite.py regenerate [SCRIPT...]")
    regenerate(sys.argv[2:])
