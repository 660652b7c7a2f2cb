"""Tables are analyzed by themselves when their number of rows has changed much."""

import time

import psycopg
import pytest

pytestmark = pytest.mark.logstead_only

TOLD = (
    "SELECT s.autoanalyze_count, s.n_mod_since_analyze, c.reltuples::int,"
    " (SELECT count(*) FROM pg_stats p WHERE p.tablename = s.relname)"
    " FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid WHERE s.relname = %s AND s.last_autoanalyze IS NOT NULL"
)


def test_tables_that_grow_are_analyzed(private_server):
    server = private_server
    server.start(arguments=("--set", "autovacuum_naptime=1s"))
    # What holds for those who log in does not hold for the server itself.
    server.execute(
        "CREATE ROLE admin SUPERUSER LOGIN",
        "ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'",
        "ALTER DATABASE postgres SET default_transaction_read_only = on",
    )
    options = "-c default_transaction_read_only=off -c default_transaction_isolation=read\\ committed"
    connection = psycopg.connect(host=server.host, port=server.port, user="admin", dbname="postgres", autocommit=True, options=options)
    for statement in (
        "ALTER ROLE postgres NOLOGIN",
        "CREATE TABLE grown (a int, b text)",
        "CREATE TABLE small (a int)",
        "INSERT INTO small SELECT generate_series(1, 50)",
        "INSERT INTO grown SELECT i, i::text FROM generate_series(1, 2000) i",
    ):
        connection.execute(statement)

    def told():
        return connection.execute(TOLD, ["grown"]).fetchone()

    limit = time.monotonic() + 60
    while (row := told()) is None:
        assert time.monotonic() < limit, "nobody has analyzed the table"
        time.sleep(0.1)
    assert row == (1, 0, 2000, 2)
    # Half of it goes: it is due again, and whatever was told before holds until then.
    connection.execute("DELETE FROM grown WHERE a > 1000")
    while (row := told()) != (2, 0, 1000, 2):
        assert row is not None and time.monotonic() < limit, f"not analyzed again: {row}"
        time.sleep(0.1)
    # What has too few rows has not been looked at in all this time.
    assert connection.execute(TOLD, ["small"]).fetchone() is None
    connection.close()
