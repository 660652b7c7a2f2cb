"""Indexes that call functions which users have made outlive the server, on a local disk and on a bucket, and go through pg_dump."""

from __future__ import annotations

import psycopg
import pytest
from objectserver import ObjectServer
from objectstores import start

SCHEMA = [
    "CREATE FUNCTION ix_bit(b bit(8)) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT get_bit(b, 7) = 1 $$",
    "CREATE FUNCTION ix_key(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN upper(t) || '!'; END $$",
    "CREATE TABLE ix_jobs (id int PRIMARY KEY, k text, s bit(8))",
    "INSERT INTO ix_jobs SELECT g, 'k' || g, CASE WHEN g % 2 = 0 THEN B'00000001' ELSE B'00000000' END"
    " FROM generate_series(1, 1000) g",
    "CREATE UNIQUE INDEX ix_unique ON ix_jobs (ix_key(k)) WHERE ix_bit(s)",
]


def ids(server, condition: str) -> list[int]:
    """The rows of a condition, by the index and without it: they are the same."""
    found = []
    for scan in ("enable_seqscan", "enable_indexscan"):
        with server.connect() as connection:
            connection.execute(f"SET {scan} = off")
            rows = connection.execute(f"SELECT id FROM ix_jobs WHERE {condition} ORDER BY id").fetchall()
            found.append([row[0] for row in rows])
    assert found[0] == found[1]
    return found[0]


def outlives(server) -> None:
    """Entries from before a checkpoint, from behind it, and of a start without the function are all there."""
    server.start()
    server.execute(*SCHEMA, "CHECKPOINT")
    with server.connect() as connection:
        plan = connection.execute(
            "EXPLAIN (COSTS OFF) SELECT * FROM ix_jobs WHERE ix_key(k) = 'K500!' AND ix_bit(s)"
        ).fetchall()
        assert "ix_unique" in plan[0][0]
    server.execute(
        "UPDATE ix_jobs SET k = 'new' WHERE id = 10",
        "INSERT INTO ix_jobs VALUES (2000, 'tail', B'00000001'), (2001, 'tail', B'00000000')",
        "DELETE FROM ix_jobs WHERE id = 12",
    )
    server.kill()
    server.start()
    for _ in range(2):
        assert ids(server, "ix_key(k) = 'K500!' AND ix_bit(s)") == [500]
        assert ids(server, "ix_key(k) = 'NEW!' AND ix_bit(s)") == [10]
        assert ids(server, "ix_key(k) = 'TAIL!' AND ix_bit(s)") == [2000]
        assert ids(server, "ix_key(k) IN ('K10!', 'K12!') AND ix_bit(s)") == []
        with server.connect() as connection, pytest.raises(psycopg.errors.UniqueViolation) as raised:
            connection.execute("INSERT INTO ix_jobs VALUES (3000, 'NEW', B'00000001')")
        assert "Key (ix_key(k))=(NEW!) already exists." in str(raised.value)
        server.execute("CHECKPOINT")
        server.kill()
        server.start()
    # The function is another one now. Rows that are there keep the keys that they were written with, until REINDEX.
    server.execute(
        "CREATE OR REPLACE FUNCTION ix_key(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE"
        " AS $$ BEGIN RETURN lower(t) || '?'; END $$",
        "INSERT INTO ix_jobs VALUES (4000, 'LATE', B'00000001')",
    )
    server.kill()
    server.start()
    assert ids(server, "ix_key(k) = 'late?' AND ix_bit(s)") == [4000]
    server.execute("REINDEX INDEX ix_unique")
    assert ids(server, "ix_key(k) = 'k500?' AND ix_bit(s)") == [500]
    server.kill()
    server.start()
    assert ids(server, "ix_key(k) = 'k500?' AND ix_bit(s)") == [500]
    server.execute("DROP INDEX ix_unique", "DROP FUNCTION ix_key(text)", "CHECKPOINT")
    server.kill()
    server.start()
    assert server.execute("SELECT count(*) FROM ix_jobs") == [(1002,)]
    assert server.stop() == 0


def test_an_index_on_a_function_outlives_a_crash(private_server):
    outlives(private_server)


@pytest.mark.logstead_only
def test_an_index_on_a_function_outlives_a_crash_on_a_bucket(tmp_path):
    with start("dev-bucket", tmp_path / "store") as store:
        server = ObjectServer(tmp_path / "server", store.url("log"), store.environment)
        try:
            outlives(server)
        finally:
            server.kill()


def test_pg_dump_brings_such_indexes_back(private_server):
    private_server.start()
    private_server.execute(
        *SCHEMA,
        "CREATE TABLE ix_inc (a int, b int, c text, PRIMARY KEY (a) INCLUDE (b), UNIQUE NULLS NOT DISTINCT (c))",
        "CREATE UNIQUE INDEX ix_inc2 ON ix_inc (b) INCLUDE (a, c) NULLS NOT DISTINCT",
        "INSERT INTO ix_inc VALUES (1, 1, NULL)",
    )
    dump = private_server.run("pg_dump").stdout
    private_server.execute("CREATE DATABASE ix_fresh")
    private_server.run("psql", "-v", "ON_ERROR_STOP=1", "-q", "ix_fresh", stdin=dump)
    without = lambda text: [line for line in text.splitlines() if not line.startswith("\\")]  # noqa: E731
    assert without(private_server.run("pg_dump", "ix_fresh").stdout) == without(dump)
    assert ids(private_server, "ix_key(k) = 'K500!' AND ix_bit(s)") == [500]


def test_a_function_that_takes_too_long_is_cancelled(private_server):
    private_server.start()
    private_server.execute(
        "CREATE FUNCTION ix_slow(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE"
        " AS $$ BEGIN IF i > 0 THEN LOOP i := i + 1; i := i - 1; END LOOP; END IF; RETURN i; END $$",
        "CREATE TABLE ix_t (a int)",
        "INSERT INTO ix_t VALUES (0), (1)",
    )
    with private_server.connect(autocommit=True) as connection:
        connection.execute("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("CREATE INDEX ix_slow_idx ON ix_t (ix_slow(a))")
        connection.execute("DELETE FROM ix_t WHERE a = 1")
        connection.execute("CREATE INDEX ix_slow_idx ON ix_t (ix_slow(a))")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("INSERT INTO ix_t VALUES (2)")
        connection.execute("INSERT INTO ix_t VALUES (-2)")
        assert connection.execute("SELECT a FROM ix_t WHERE ix_slow(a) = -2").fetchall() == [(-2,)]


FUNCTION = "CREATE FUNCTION same(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END'"


@pytest.mark.logstead_only
def test_a_snapshot_from_before_an_index_does_not_miss_rows(private_server):
    """Versions from before the index have no value for it: who reads them through it is told so, and finds them by a scan."""
    server = private_server
    server.start()
    server.execute(FUNCTION, "CREATE TABLE other (a int)", "CREATE TABLE t (id int, a int)", "INSERT INTO t SELECT g, g FROM generate_series(1, 1000) g")
    with server.connect(autocommit=True) as old, server.connect(autocommit=True) as maker:
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM other")
        maker.execute("CREATE INDEX t_same ON t (same(a))")
        maker.execute("ANALYZE t")
        maker.execute("UPDATE t SET a = 7 WHERE id = 5")
        old.execute("SET enable_seqscan = off")
        with pytest.raises(psycopg.errors.SerializationFailure, match='index "t_same" was made after the snapshot'):
            old.execute("SELECT id FROM t WHERE same(a) = 5")
        old.execute("ROLLBACK")
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert old.execute("SELECT id FROM t WHERE same(a) = 7 ORDER BY id").fetchall() == [(5,), (7,)]
        old.execute("COMMIT")


@pytest.mark.logstead_only
@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_building_an_index_shows_nothing_that_others_committed(server, isolation):
    with server.connect(autocommit=True) as one:
        one.execute("DROP TABLE IF EXISTS seen")
        one.execute("DROP FUNCTION IF EXISTS same(int)")
        one.execute(FUNCTION)
        one.execute("CREATE TABLE seen (a int)")
        one.execute("INSERT INTO seen VALUES (1)")
        one.execute(f"BEGIN ISOLATION LEVEL {isolation}")
        one.execute("SELECT * FROM seen")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="REPEATABLE READ or SERIALIZABLE"):
            one.execute("CREATE INDEX ON seen (same(a))")
        one.execute("ROLLBACK")
        # A table of its own has no rows of others.
        one.execute(f"BEGIN ISOLATION LEVEL {isolation}")
        one.execute("CREATE TABLE own AS SELECT g AS a FROM generate_series(1, 10) g")
        one.execute("CREATE INDEX ON own (same(a))")
        one.execute("SET LOCAL enable_seqscan = off")
        assert one.execute("SELECT a FROM own WHERE same(a) = 3").fetchall() == [(3,)]
        one.execute("COMMIT")
        one.execute("DROP TABLE own, seen")
        one.execute("DROP FUNCTION same(int)")


@pytest.mark.logstead_only
def test_rebuilding_an_index_uses_no_columns_up(server):
    with server.connect(autocommit=True) as one:
        one.execute("CREATE FUNCTION rebuilt(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END'")
        one.execute("CREATE TABLE rebuilds (a int)")
        one.execute("INSERT INTO rebuilds SELECT generate_series(1, 5)")
        one.execute("CREATE INDEX rebuilds_i ON rebuilds (rebuilt(a))")
        one.execute("REINDEX INDEX rebuilds_i")
        columns = "SELECT max(attnum) FROM pg_attribute WHERE attrelid = 'rebuilds'::regclass"
        after_one = one.execute(columns).fetchone()
        for _ in range(5):
            one.execute("REINDEX INDEX rebuilds_i")
            one.execute("DROP INDEX rebuilds_i")
            one.execute("CREATE INDEX rebuilds_i ON rebuilds (rebuilt(a))")
        assert one.execute(columns).fetchone() == after_one
        one.execute("SET enable_seqscan = off")
        assert one.execute("SELECT a FROM rebuilds WHERE rebuilt(a) = 4").fetchall() == [(4,)]
        one.execute("RESET enable_seqscan")
        one.execute("DROP TABLE rebuilds")
        one.execute("DROP FUNCTION rebuilt(int)")
