"""What unmodified clients ask of the catalog gets the answer that PostgreSQL 15 gives.

The questions were captured from the clients themselves; they are data beside the repository (`../shared/compat`), and without
them, or without a PostgreSQL to ask, there is nothing to compare.
"""

import json
import os
import shutil
from pathlib import Path

import psycopg
import pytest
from harness import REPOSITORY, PostgresServer

QUERIES = Path(os.environ.get("E2E_SHARED", REPOSITORY.parent / "shared")) / "compat/client_queries.json"

# What a statement of a client still needs, and where the error says so.
MISSING = {
    # pgjdbc's getColumns.
    "window function row_number (OVER) is not supported",
}


def ask(connection, text):
    """Names and types of the columns; or the error's code and first line."""
    try:
        with connection.cursor() as cursor:
            # As a simple query: some texts are several statements, and none has parameters.
            cursor.execute(text.encode(), prepare=False)
            if cursor.description is None:
                return "done", None
            return "rows", [(column.name, column.type_code) for column in cursor.description]
    except psycopg.Error as error:
        return "error", (error.sqlstate, (error.diag.message_primary or "").splitlines()[0])


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """The specification."""
    if not shutil.which("postgres", path="/usr/lib/postgresql/15/bin"):
        pytest.skip("there is no PostgreSQL 15 to compare with")
    server = PostgresServer(tmp_path_factory.mktemp("specification"))
    server.start()
    yield server
    server.stop()


def test_clients_get_what_postgresql_answers(server, postgres):
    if not QUERIES.exists():
        pytest.skip(f"the captured queries are not there: {QUERIES}")
    queries = json.loads(QUERIES.read_text())
    assert len(queries) > 100
    different = []
    with postgres.connect(autocommit=True) as theirs, server.connect(autocommit=True) as ours:
        for query in queries:
            wanted = ask(theirs, query["sql"])
            if wanted[0] == "error":
                # It asks for objects by number, or for what its own schema had.
                continue
            found = ask(ours, query["sql"])
            if found != wanted and not (found[0] == "error" and found[1][1] in MISSING):
                different.append((query["client"], query["sql"][:200], found, wanted))
    assert not different
