"""Temporary objects at replicas: they work as at a primary, and nothing that lasts is written by their way.

They lie over a catalog that the primary changes without asking; they go with their session, however that ends; and no log ever has
any of them.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
import urllib.request
from contextlib import ExitStack

import psycopg
import pytest
from harness import LogsteadServer, wait_until
from test_promotion import is_primary, promote
from test_replica import FAST, READ_ONLY, REWRITES, ReplicaServer, local, metrics_port, pair  # noqa: F401 a fixture

pytestmark = pytest.mark.logstead_only

# What a session asks of its own objects, beside a table of the primary's. Each answer, error or tag is what a primary gives.
SCRIPT = [
    "CREATE TEMP TABLE t (id serial PRIMARY KEY, v int, m mood, p pos, r pair, a mood[])",
    "INSERT INTO t (v, m, p, r, a) SELECT v, m, v, (v, 'x')::pair, ARRAY[m] FROM perm WHERE v <= 10 ORDER BY v",
    "SELECT * FROM t ORDER BY id LIMIT 3",
    "INSERT INTO t (p) VALUES (-1)",
    "UPDATE t SET v = v + 1 WHERE id < 3 RETURNING id, v",
    "DELETE FROM t WHERE id = 3",
    "MERGE INTO t USING perm ON t.id = perm.id WHEN MATCHED THEN UPDATE SET v = 0"
    " WHEN NOT MATCHED AND perm.id < 20 THEN INSERT (id, v) VALUES (perm.id, perm.v)",
    "SELECT count(*), sum(v) FROM t",
    "INSERT INTO t (id, v) VALUES (1, 7) ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING v",
    "CREATE INDEX ON t (v)",
    "CREATE UNIQUE INDEX ti ON t ((id * 2)) WHERE v > 5",
    "ANALYZE t",
    "ANALYZE t (v)",
    "VACUUM ANALYZE t",
    "SELECT reltuples FROM pg_class WHERE oid = 't'::regclass",
    "SELECT count(*) FROM t JOIN perm USING (id) WHERE t.v = 0",
    "SELECT id FROM t WHERE v = 7 FOR UPDATE",
    "ALTER TABLE t ADD COLUMN x text DEFAULT 'q'",
    "ALTER TABLE t ALTER COLUMN v TYPE bigint",
    "ALTER TABLE t RENAME COLUMN x TO y",
    "ALTER INDEX ti RENAME TO tj",
    "ALTER TABLE t RENAME CONSTRAINT t_pkey TO key",
    "COMMENT ON COLUMN t.y IS 'said'",
    "SELECT col_description('t'::regclass, attnum), attname FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'y'",
    "SELECT relname, relpersistence FROM pg_class WHERE relname IN ('t', 'tj', 'key', 't_id_seq') ORDER BY 1",
    "CREATE TEMP TABLE u AS SELECT id, v FROM perm WHERE id < 5",
    "SELECT * INTO TEMP w FROM perm WHERE id < 3",
    "CREATE TEMP TABLE called AS SELECT doubled(id) AS d FROM perm WHERE id < 4",
    "SELECT sum(d) FROM called",
    "CREATE TEMP VIEW joined AS SELECT t.id, perm.v FROM t JOIN perm USING (id)",
    "CREATE VIEW implied AS SELECT * FROM u",
    "CREATE RECURSIVE VIEW counted (n) AS SELECT min(id) FROM u UNION ALL SELECT n + 1 FROM counted WHERE n < 3",
    "SELECT (SELECT count(*) FROM joined), (SELECT count(*) FROM implied), (SELECT sum(n) FROM counted)",
    "CREATE TEMP VIEW writable AS SELECT id, v FROM u WHERE id < 100 WITH CHECK OPTION",
    "INSERT INTO writable VALUES (50, 50)",
    "INSERT INTO writable VALUES (150, 50)",
    "DELETE FROM writable WHERE id = 50",
    "CREATE TEMP SEQUENCE s",
    "SELECT nextval('s'), nextval('s'), currval('s'), setval('s', 10), nextval('s')",
    "ALTER SEQUENCE s RESTART WITH 3",
    "SELECT nextval('s')",
    "BEGIN",
    "SAVEPOINT a",
    "CREATE TEMP TABLE undone (a int)",
    "INSERT INTO undone VALUES (1)",
    "INSERT INTO u SELECT id, v FROM perm WHERE id = 60",
    "ROLLBACK TO a",
    "SELECT count(*) FROM u",
    "DROP TABLE w",
    "ROLLBACK",
    "SELECT count(*) FROM w",
    "SELECT count(*) FROM undone",
    "BEGIN",
    "CREATE TEMP TABLE dropped (a int) ON COMMIT DROP",
    "CREATE TEMP TABLE emptied (a int PRIMARY KEY) ON COMMIT DELETE ROWS",
    "INSERT INTO dropped VALUES (1)",
    "INSERT INTO emptied SELECT id FROM perm",
    "SELECT (SELECT count(*) FROM dropped), (SELECT count(*) FROM emptied)",
    "COMMIT",
    "SELECT count(*) FROM emptied",
    "SELECT count(*) FROM dropped",
    "TRUNCATE w",
    "TRUNCATE t RESTART IDENTITY",
    "INSERT INTO t (v) VALUES (1) RETURNING id",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "SELECT count(*) FROM perm",
    "INSERT INTO u SELECT id, v FROM perm WHERE id = 61",
    "SELECT count(*) FROM u",
    "COMMIT",
    "BEGIN",
    "DECLARE c CURSOR WITH HOLD FOR SELECT u.id FROM u JOIN perm USING (id) ORDER BY 1",
    "FETCH 2 FROM c",
    "COMMIT",
    "FETCH 2 FROM c",
    "CLOSE c",
    "SELECT work(100), work(10)",
    "DO $$ BEGIN EXECUTE 'CREATE TEMP TABLE dynamic (a int)'; INSERT INTO dynamic VALUES (1); END $$",
    "SELECT * FROM dynamic",
    "CREATE FUNCTION pg_temp.next(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 1'",
    "SELECT pg_temp.next(1)",
    "ALTER FUNCTION pg_temp.next(int) IMMUTABLE",
    "DROP FUNCTION pg_temp.next",
    "CREATE TEMP TABLE parent (a int PRIMARY KEY)",
    "CREATE TEMP TABLE child (a int REFERENCES parent ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED)",
    "INSERT INTO child VALUES (1)",
    "WITH p AS (INSERT INTO parent VALUES (1) RETURNING a) INSERT INTO child SELECT a FROM p",
    "DELETE FROM parent",
    "SELECT count(*) FROM child",
    "CREATE TEMP TABLE refers (a int REFERENCES perm)",
    "ALTER TABLE u ADD FOREIGN KEY (id) REFERENCES perm",
    "CREATE TRIGGER counts AFTER INSERT ON u FOR EACH ROW EXECUTE FUNCTION notes_own()",
    "CREATE TEMP TABLE noted (id int)",
    "INSERT INTO u VALUES (70, 70)",
    "SELECT * FROM noted",
    "COMMENT ON TRIGGER counts ON u IS 'counts'",
    "COMMENT ON FUNCTION pg_temp.nothing() IS 'x'",
    "SELECT obj_description(oid, 'pg_trigger') FROM pg_trigger WHERE tgname = 'counts'",
    "DROP TRIGGER counts ON u",
    "REINDEX TABLE parent",
    "CLUSTER parent USING parent_pkey",
    "DROP TABLE parent CASCADE",
    "DROP TABLE IF EXISTS nothing",
    "DROP VIEW joined",
    "CREATE TEMP TABLE alike (LIKE perm INCLUDING ALL)",
    "INSERT INTO alike (id, v) VALUES (1, 1)",
    "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) CREATE TEMP TABLE explained AS SELECT * FROM perm WHERE id = 1",
    "SELECT count(*) FROM explained",
    "CREATE TEMP TABLE IF NOT EXISTS explained (a int)",
    "CREATE TEMP TABLE u (a int)",
    "CREATE TEMP SEQUENCE foreign_owner OWNED BY perm.id",
    "SET search_path = pg_temp, public",
    "CREATE TABLE plain (a int)",
    "RESET search_path",
    "SELECT relpersistence FROM pg_class WHERE relname = 'plain'",
    "DISCARD TEMP",
    "SELECT * FROM u",
]

SETUP = [
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE DOMAIN pos AS int CHECK (VALUE > 0)",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE TABLE perm (id serial PRIMARY KEY, v int, m mood)",
    "INSERT INTO perm (v, m) SELECT g, 'ok' FROM generate_series(1, 100) g",
    "CREATE FUNCTION doubled(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 2 * n; END'",
    "CREATE FUNCTION notes_own() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO noted VALUES (NEW.id); RETURN NULL; END'",
    "CREATE FUNCTION notes_all() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO perm (v) VALUES (1); RETURN NEW; END'",
    "CREATE FUNCTION work(n int) RETURNS bigint LANGUAGE plpgsql AS $$"
    " DECLARE r bigint; BEGIN CREATE TEMP TABLE IF NOT EXISTS used (a int) ON COMMIT DROP;"
    " INSERT INTO used SELECT generate_series(1, n); DELETE FROM used WHERE a % 2 = 0;"
    " SELECT count(*) + (SELECT count(*) FROM perm) INTO r FROM used; DROP TABLE used; RETURN r; END $$",
]


def told(connection: psycopg.Connection, statement: str) -> tuple:
    """What a server answers: the tag and the rows, or the error; with its notices. The names of schemas vary."""
    notices: list[str] = []
    connection.add_notice_handler(note := lambda notice: notices.append(notice.message_primary or ""))
    try:
        cursor = connection.execute(statement)
        rows = cursor.fetchall() if cursor.description else None
        return cursor.statusmessage, rows, notices
    except psycopg.Error as error:
        return error.sqlstate, re.sub(r"pg_temp_\d+", "pg_temp", error.diag.message_primary or ""), notices
    finally:
        connection.remove_notice_handler(note)


def test_they_work_as_at_a_primary(local):  # noqa: F811 the fixture
    """One script at both, statement by statement: tables, indexes, views, sequences, functions, triggers, ON COMMIT, savepoints,
    cursors, PL/pgSQL, and COPY."""
    primary, replica = local
    primary.execute(*SETUP)
    replica.follows(primary)
    with primary.connect(autocommit=True) as one, replica.connect(autocommit=True) as two:
        assert two.execute("SHOW transaction_read_only").fetchone() == ("on",)
        for statement in SCRIPT:
            assert told(two, statement) == told(one, statement), statement
        for connection in (one, two):
            connection.execute("CREATE TEMP TABLE copied (id int PRIMARY KEY, v text, d mood)")
            with connection.cursor().copy("COPY copied FROM stdin") as copy:
                for n in range(1000):
                    copy.write_row((n, f"row {n}", "ok"))
            with connection.cursor().copy("COPY (SELECT c.id, c.v FROM copied c JOIN perm USING (id) ORDER BY 1) TO stdout") as copy:
                assert b"".join(copy).count(b"\n") == 100
            with pytest.raises(psycopg.errors.UniqueViolation):
                with connection.cursor().copy("COPY copied FROM stdin WITH (FORMAT csv)") as copy:
                    copy.write("5000,new,ok\n1,old,sad\n")
            assert connection.execute("SELECT count(*), count(*) FILTER (WHERE id = 5000) FROM copied").fetchone() == (1000, 0)
            # Prepared statements over both, with parameters.
            query = "SELECT c.v, p.v FROM copied c, perm p WHERE c.id = %s AND p.id = c.id"
            assert [connection.execute(query, (n,), prepare=True).fetchone() for n in (3, 4)] == [("row 3", 3), ("row 4", 4)]
        # Nobody else sees them, and they go with the session.
        with replica.connect(autocommit=True) as three:
            with pytest.raises(psycopg.errors.UndefinedTable):
                three.execute("SELECT * FROM copied")
            assert three.execute("SELECT count(*) FROM pg_class WHERE relpersistence = 't'").fetchone() == (0,)
    assert primary.execute("SELECT count(*), max(id) FROM perm") == [(100, 100)]


def refusals(tag: str, *statements: str) -> list[tuple[str, str]]:
    return [(statement, f"cannot execute {tag} in a read-only transaction") for statement in statements]


WHAT_LASTS = [
    *refusals("INSERT", "INSERT INTO perm (v) VALUES (1)", "INSERT INTO seen (v) VALUES (1)"),
    # By a trigger, a function, and a query of WITH.
    *refusals("INSERT", "INSERT INTO guarded VALUES (1)", "SELECT pg_temp.writes()", "DO 'BEGIN INSERT INTO perm (v) SELECT id FROM t; END'"),
    *refusals("INSERT", "WITH x AS (INSERT INTO perm (v) VALUES (2) RETURNING id) INSERT INTO t SELECT id FROM x"),
    *refusals("UPDATE", "UPDATE seen SET v = 2", "WITH x AS (INSERT INTO t VALUES (7) RETURNING id) UPDATE perm SET v = 1 FROM x"),
    *refusals("DELETE", "DELETE FROM seen", "DELETE FROM perm USING t WHERE t.id = perm.id"),
    *refusals("SELECT", "WITH x AS (DELETE FROM perm RETURNING *) SELECT * FROM x, t"),
    *refusals("MERGE", "MERGE INTO perm USING t ON t.id = perm.id WHEN MATCHED THEN DELETE"),
    *refusals("SELECT FOR UPDATE", "SELECT * FROM perm, t FOR UPDATE"),
    *refusals("nextval()", "SELECT nextval('perm_id_seq')", "INSERT INTO alike (v) VALUES (1)", "CREATE TEMP TABLE n AS SELECT nextval('perm_id_seq')"),
    *refusals("setval()", "SELECT setval('perm_id_seq', 1)"),
    *refusals("CREATE TABLE", "CREATE TABLE u (a int)", "CREATE TABLE public.u (a int)", "CREATE UNLOGGED TABLE u (a int)"),
    *refusals("CREATE TABLE AS", "CREATE TABLE u AS SELECT * FROM t", "EXPLAIN ANALYZE CREATE TABLE u AS SELECT * FROM t"),
    *refusals("SELECT INTO", "SELECT * INTO u FROM t"),
    *refusals("CREATE MATERIALIZED VIEW", "CREATE MATERIALIZED VIEW u AS SELECT 1"),
    *refusals("CREATE VIEW", "CREATE VIEW u AS SELECT * FROM perm", "CREATE VIEW u AS SELECT * FROM nowhere"),
    *refusals("CREATE SEQUENCE", "CREATE SEQUENCE u"),
    *refusals("CREATE INDEX", "CREATE INDEX ON perm (v)"),
    *refusals("CREATE TRIGGER", "CREATE TRIGGER a BEFORE INSERT ON perm FOR EACH ROW EXECUTE FUNCTION notes_all()"),
    *refusals("CREATE FUNCTION", "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"),
    *refusals("CREATE TYPE", "CREATE TYPE pg_temp.ty AS (a int)", "CREATE TYPE ty AS ENUM ()"),
    *refusals("CREATE SCHEMA", "CREATE SCHEMA u", "CREATE SCHEMA u CREATE TABLE t (a int)"),
    *refusals("CREATE STATISTICS", "CREATE STATISTICS u ON id, v FROM perm"),
    *refusals("DROP TABLE", "DROP TABLE t, perm", "DROP TABLE perm", "DROP TABLE nothing", "DROP TABLE IF EXISTS nothing, perm"),
    *refusals("DROP SCHEMA", "DROP SCHEMA pg_temp CASCADE"),
    *refusals("TRUNCATE TABLE", "TRUNCATE t, perm", "TRUNCATE perm"),
    *refusals("ALTER TABLE", "ALTER TABLE perm ADD COLUMN z int", "ALTER TABLE t OWNER TO postgres", "ALTER TABLE t SET SCHEMA public"),
    *refusals("ALTER SEQUENCE", "ALTER SEQUENCE perm_id_seq RESTART"),
    *refusals("GRANT", "GRANT SELECT ON t TO PUBLIC"),
    *refusals("REVOKE", "REVOKE ALL ON t FROM PUBLIC"),
    *refusals("COMMENT", "COMMENT ON TABLE perm IS 'x'", "COMMENT ON DATABASE postgres IS 'x'", "COMMENT ON COLUMN perm.v IS 'x'"),
    *refusals("lo_create()", "SELECT lo_create(0)"),
    *refusals("lo_from_bytea()", "SELECT lo_from_bytea(0, 'x')"),
    ("COPY perm FROM stdin", "cannot execute COPY during recovery"),
    ("VACUUM", "cannot execute VACUUM during recovery"),
    ("VACUUM t, perm", "cannot execute VACUUM during recovery"),
    ("ANALYZE", "cannot execute ANALYZE during recovery"),
    ("ANALYZE t, perm", "cannot execute ANALYZE during recovery"),
    ("REINDEX TABLE perm", "cannot execute REINDEX during recovery"),
    ("REINDEX SCHEMA public", "cannot execute REINDEX during recovery"),
    ("CLUSTER", "cannot execute CLUSTER during recovery"),
    ("BEGIN; LOCK TABLE t IN EXCLUSIVE MODE", "cannot execute LOCK TABLE during recovery"),
    ("BEGIN; INSERT INTO t VALUES (8); PREPARE TRANSACTION 'x'", "cannot execute PREPARE TRANSACTION during recovery"),
    ("SELECT pg_current_xact_id() FROM t", "cannot execute pg_current_xact_id() during recovery"),
]


def test_what_lasts_is_refused_by_whatever_way(local):  # noqa: F811 the fixture
    """Beside temporary objects and by them: with the error of a read-only transaction, and nothing is left of the statement."""
    primary, replica = local
    primary.execute(*SETUP)
    replica.follows(primary)
    with replica.connect(autocommit=True) as connection:
        for statement in (
            "CREATE TEMP TABLE t (id int PRIMARY KEY)",
            "INSERT INTO t VALUES (1)",
            "CREATE TEMP TABLE guarded (id int)",
            "CREATE TRIGGER a BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION notes_all()",
            "CREATE TEMP VIEW seen AS SELECT * FROM perm",
            "CREATE TEMP TABLE alike (LIKE perm INCLUDING DEFAULTS)",
            "CREATE FUNCTION pg_temp.writes() RETURNS int LANGUAGE sql AS 'INSERT INTO perm (v) VALUES (1) RETURNING v'",
        ):
            connection.execute(statement)
        objects = "SELECT oid::int, relname FROM pg_class WHERE relpersistence = 't' ORDER BY 1"
        before = connection.execute(objects).fetchall()
        for statement, message in WHAT_LASTS:
            with pytest.raises(psycopg.Error) as error:
                connection.execute(statement)
            assert (error.value.sqlstate, error.value.diag.message_primary) == (READ_ONLY, message), statement
            connection.execute("ROLLBACK")
        assert connection.execute(objects).fetchall() == before
        # A savepoint, a block of PL/pgSQL, and a subtransaction go on afterwards.
        with connection.transaction():
            connection.execute("INSERT INTO t VALUES (2)")
            connection.execute("SAVEPOINT a")
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                connection.execute("INSERT INTO perm SELECT id FROM t")
            connection.execute("ROLLBACK TO a")
            connection.execute(
                "DO $$ BEGIN INSERT INTO t VALUES (9); INSERT INTO perm (v) VALUES (9);"
                " EXCEPTION WHEN read_only_sql_transaction THEN INSERT INTO t VALUES (3); END $$"
            )
        assert connection.execute("SELECT id FROM t ORDER BY 1").fetchall() == [(1,), (2,), (3,)]
        # A transaction that has been said to be read-only is as all are.
        connection.execute("BEGIN READ ONLY")
        connection.execute("CREATE TEMP TABLE in_read_only (a int)")
        connection.execute("COMMIT")
    # At a primary it is not allowed there, as in PostgreSQL.
    with primary.connect(autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE t (id int)")
        connection.execute("BEGIN READ ONLY")
        connection.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("CREATE TEMP TABLE u (id int)")
        connection.execute("ROLLBACK")
    assert primary.execute("SELECT count(*), max(id) FROM perm") == [(100, 100)]
    assert primary.execute("SELECT count(*) FROM pg_class WHERE oid >= 16384 AND relname IN ('u', 't', 'seen', 'n')") == [(0,)]


def test_they_lie_over_the_catalog_of_what_is_read(local):  # noqa: F811 the fixture
    """Sessions fill temporary tables from a table that is made anew all the time, and compare: what is read belongs to the catalog
    that it was planned with, in statements, in transactions, and in CREATE TABLE AS."""
    primary, replica = local
    primary.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", *REWRITES[0])
    replica.follows(primary)
    wrong: list[str] = []
    rounds = [0, 0]
    stopping = threading.Event()
    expected = (700, 2100, 700)

    def once(connection: psycopg.Connection, kept: bool) -> None:
        connection.execute("CREATE TEMP TABLE own AS SELECT id, v FROM t")
        connection.execute("CREATE TEMP VIEW beside AS SELECT t.id, own.v FROM t JOIN own USING (id)")
        connection.execute("INSERT INTO held SELECT id FROM t")
        query = "SELECT count(*), sum(v)::bigint, (SELECT count(*) FROM held) FROM beside"
        found = connection.execute(query).fetchone()
        if found != expected:
            wrong.append(f"{'transaction' if kept else 'statements'}: {found}")
        connection.execute("DROP VIEW beside")
        connection.execute("DROP TABLE own")
        connection.execute("TRUNCATE held")

    def worker(kept: bool) -> None:
        while not stopping.is_set():
            try:
                with replica.connect(autocommit=True, prepare_threshold=0) as connection:
                    connection.execute("CREATE TEMP TABLE held (id int PRIMARY KEY)")
                    while not stopping.is_set():
                        with ExitStack() as stack:
                            if kept:
                                stack.enter_context(connection.transaction())
                                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                            once(connection, kept)
                        rounds[kept] += 1
            except psycopg.Error as error:
                # The table has been made anew between a statement's plan and its snapshot, or between two statements.
                if error.sqlstate not in ("40001", "42P01", "42703", "55000"):
                    wrong.append(repr(error))
                    return

    threads = [threading.Thread(target=worker, args=(kept,), daemon=True) for kept in (False, False, True)]
    for thread in threads:
        thread.start()
    with primary.connect(autocommit=True) as connection:
        until = time.monotonic() + 6
        while time.monotonic() < until:
            for rewrite in REWRITES:
                if rewrite[0].startswith("UPDATE"):
                    continue
                with connection.transaction():
                    for statement in rewrite:
                        connection.execute(statement)
                assert not wrong, wrong[:5]
                time.sleep(0.02)
    stopping.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong, wrong[:5]
    assert min(rounds) > 5, rounds
    assert replica.execute("SELECT state, restarts FROM logstead_replica") == [("following", 0)]


# What a session has, what the primary does, and what is said then: by which statements, and with which code.
CHANGED_BENEATH = [
    (["CREATE TABLE b (a int, c int)"], ["CREATE TEMP VIEW o AS SELECT a, c FROM b"], ["DROP TABLE b"], "42P01", ["SELECT * FROM o"]),
    (
        ["CREATE TABLE b (a int, c int)"],
        ["CREATE TEMP VIEW o AS SELECT * FROM b"],
        ["ALTER TABLE b DROP COLUMN c"],
        "42703",
        ["SELECT a FROM o", "UPDATE o SET a = 1", "INSERT INTO o VALUES (1)"],
    ),
    (
        ["CREATE TABLE b (a int, c int)"],
        ["CREATE TEMP VIEW o AS SELECT a, c FROM b"],
        ["ALTER TABLE b ALTER COLUMN c TYPE text"],
        "55000",
        ["SELECT * FROM o", "SELECT (o).c + 1 FROM o"],
    ),
    (
        ["CREATE TYPE e AS ENUM ('x')"],
        ["CREATE TEMP TABLE o (a int, c e)", "CREATE INDEX ON o (c)", "INSERT INTO o VALUES (1, 'x')"],
        ["DROP TYPE e"],
        "42704",
        ["SELECT a FROM o", "SELECT o FROM o", "INSERT INTO o (a) VALUES (2)", "UPDATE o SET a = 3", "DELETE FROM o", "ANALYZE o",
         "COPY o TO stdout", "COPY o FROM stdin", "CREATE TEMP TABLE p AS SELECT * FROM o", "CREATE TEMP TABLE p (LIKE o)",
         "ALTER TABLE o ALTER COLUMN c TYPE text", "DO 'DECLARE r o; BEGIN SELECT * INTO r FROM o; END'"],
    ),
    (
        ["CREATE DOMAIN d AS int CHECK (VALUE > 0)"],
        ["CREATE TEMP TABLE o (a int, c d)", "INSERT INTO o VALUES (1, 1)"],
        ["DROP DOMAIN d"],
        "42704",
        ["SELECT * FROM o", "INSERT INTO o (a) VALUES (2)", "UPDATE o SET c = 4"],
    ),
    # The same types of fields, and others.
    (
        ["CREATE TYPE k AS (x int, y int)"],
        ["CREATE TEMP TABLE o (a int, c k)", "INSERT INTO o VALUES (1, (1, 2))"],
        ["ALTER TYPE k DROP ATTRIBUTE x, ADD ATTRIBUTE x int"],
        "55000",
        ["SELECT (c).y FROM o", "SELECT * FROM o"],
    ),
    (
        ["CREATE TABLE b (x int, y int)"],
        ["CREATE TEMP TABLE o (a int, c b)", "INSERT INTO o VALUES (1, (1, 2))"],
        ["ALTER TABLE b DROP COLUMN x, ADD COLUMN z int"],
        "55000",
        ["SELECT (c).y FROM o", "SELECT * FROM o"],
    ),
    (
        ["CREATE TYPE inner_k AS (x int)", "CREATE TYPE k AS (f inner_k, y int)"],
        ["CREATE TEMP TABLE o (a int, c k)", "INSERT INTO o VALUES (1, (ROW(1), 2))"],
        ["ALTER TYPE k DROP ATTRIBUTE y", "ALTER TYPE inner_k ADD ATTRIBUTE z int"],
        "55000",
        ["SELECT ((c).f).x FROM o", "SELECT * FROM o"],
    ),
    (
        ["CREATE TYPE k AS ()"],
        ["CREATE TEMP TABLE o (a int, c k)", "INSERT INTO o VALUES (1, ROW()::k)"],
        ["ALTER TYPE k ADD ATTRIBUTE later int"],
        "55000",
        ["SELECT (c).later FROM o", "SELECT * FROM o"],
    ),
    (
        ["CREATE TYPE k AS (x int, y text)"],
        ["CREATE TEMP TABLE o (a int, c k[])", "INSERT INTO o VALUES (1, ARRAY[(1, 'y')::k])"],
        ["ALTER TYPE k ALTER ATTRIBUTE y TYPE int"],
        "55000",
        ["SELECT (c[1]).y + 1 FROM o", "SELECT * FROM o", "INSERT INTO o (a) VALUES (2)", "ALTER TABLE o ALTER COLUMN c TYPE text"],
    ),
    (
        ["CREATE TABLE b (x int, y text)"],
        ["CREATE TEMP TABLE o (a int, c b)", "INSERT INTO o VALUES (1, (1, 'y'))"],
        ["ALTER TABLE b ALTER COLUMN x TYPE text"],
        "55000",
        ["SELECT (c).x + 1 FROM o", "UPDATE o SET a = 2"],
    ),
    (
        ["CREATE TYPE g AS RANGE (subtype = float8)"],
        ["CREATE TEMP TABLE o (a int, c g, UNIQUE (c))", "INSERT INTO o VALUES (1, '[1,2)')"],
        ["DROP TYPE g"],
        "42704",
        ["SELECT * FROM o", "INSERT INTO o (a) VALUES (2)"],
    ),
    (
        ["CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'"],
        ["CREATE TEMP TABLE o (a int DEFAULT f(1), c int, CHECK (f(c) > 0))", "INSERT INTO o VALUES (1, 1)"],
        ["DROP FUNCTION f"],
        "42883",
        ["INSERT INTO o (c) VALUES (1)", "INSERT INTO o VALUES (1, 1)", "UPDATE o SET c = 2"],
    ),
    (
        ["CREATE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1'"],
        ["CREATE TEMP TABLE o (a int, c int)", "CREATE INDEX ON o (f(a))", "INSERT INTO o VALUES (1, 1)"],
        ["DROP FUNCTION f"],
        "42883",
        ["INSERT INTO o VALUES (2, 2)", "REINDEX TABLE o"],
    ),
    (
        ["CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"],
        ["CREATE TEMP TABLE o (a int, c int)", "CREATE TRIGGER r BEFORE INSERT OR UPDATE ON o FOR EACH ROW EXECUTE FUNCTION f()",
         "INSERT INTO o VALUES (1, 1)"],
        ["DROP FUNCTION f"],
        "42883",
        ["INSERT INTO o VALUES (2, 2)", "UPDATE o SET a = 2", "COPY o FROM stdin"],
    ),
    (
        ["CREATE DOMAIN d AS int"],
        ["CREATE FUNCTION pg_temp.o(d) RETURNS int LANGUAGE sql AS 'SELECT 1'", "SELECT pg_temp.o(1)"],
        ["DROP DOMAIN d"],
        "42883",
        ["SELECT pg_temp.o(1)"],
    ),
]


@pytest.mark.parametrize("has, own, does, code, statements", CHANGED_BENEATH, ids=[case[2][0] for case in CHANGED_BENEATH])
def test_the_primary_takes_what_they_use(local, has, own, does, code, statements):  # noqa: F811 the fixture
    """It waits for nobody. Whoever uses it then is told so, in a block as outside of one; what is broken can be dropped, and the rest
    goes on."""
    primary, replica = local
    primary.execute(*has)
    replica.follows(primary)
    is_function = own[0].startswith("CREATE FUNCTION")
    is_view = own[0].startswith("CREATE TEMP VIEW")
    drop = f"DROP {'FUNCTION' if is_function else 'VIEW' if is_view else 'TABLE'} pg_temp.o"
    with replica.connect(autocommit=True) as outside, replica.connect(autocommit=True) as inside:
        inside.execute("BEGIN")
        for connection in (outside, inside):
            connection.execute("CREATE TEMP TABLE whole (a int)")
            for statement in own:
                connection.execute(statement)
        cascade = [f"{statement} CASCADE" if "FUNCTION" in statement else statement for statement in does]
        primary.execute(*cascade)
        replica.follows(primary)
        inside.execute("SAVEPOINT s")
        for connection in (outside, inside):
            for statement in statements:
                with pytest.raises(psycopg.Error) as error:
                    connection.execute(statement)
                assert error.value.sqlstate == code, (statement, error.value)
                if connection is inside:
                    connection.execute("ROLLBACK TO s")
            connection.execute("INSERT INTO whole VALUES (1)")
            # What only shows it does not fail.
            for shown in ("pg_attribute", "pg_class", "pg_proc", "information_schema.columns", "pg_indexes"):
                connection.execute(f"SELECT * FROM {shown}")
            connection.execute(drop)
            assert connection.execute("SELECT a FROM whole").fetchall() == [(1,)]
        inside.execute("COMMIT")
        assert inside.execute("SELECT a FROM whole").fetchall() == [(1,)]
    assert replica.execute("SELECT state, restarts FROM logstead_replica") == [("following", 0)]


def test_a_statement_over_both_is_planned_again(local):  # noqa: F811 the fixture
    """A prepared one, when the primary alters the other table; and a broken table that its session mends."""
    primary, replica = local
    primary.execute("CREATE TYPE e AS ENUM ('x')", "CREATE TABLE b (a int, c int)", "INSERT INTO b VALUES (1, 1)")
    replica.follows(primary)
    with replica.connect(autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE o (a int, d e)")
        connection.execute("INSERT INTO o VALUES (1, 'x')")
        count, shown = "SELECT count(*) FROM o JOIN b USING (a) WHERE b.c IS NOT NULL", "SELECT o.a, b.c FROM o JOIN b USING (a)"
        assert connection.execute(count, prepare=True).fetchone() == (1,)
        assert connection.execute(shown, prepare=True).fetchone() == (1, 1)
        primary.execute("ALTER TABLE b ALTER COLUMN c TYPE text", "INSERT INTO b VALUES (1, 'new')")
        replica.follows(primary)
        assert connection.execute(count, prepare=True).fetchone() == (2,)
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan must not change result type"):
            connection.execute(shown, prepare=True)
        primary.execute("DROP TYPE e")
        replica.follows(primary)
        with pytest.raises(psycopg.errors.UndefinedObject):
            connection.execute("SELECT a FROM o")
        connection.execute("ALTER TABLE o DROP COLUMN d")
        assert connection.execute("SELECT * FROM o").fetchall() == [(1,)]
        # The database is called something else meanwhile.
        primary.execute("CREATE DATABASE other")
        replica.follows(primary)
        with replica.connect(dbname="other", autocommit=True) as renamed:
            renamed.execute("CREATE TEMP TABLE o (a int)")
            primary.execute("ALTER DATABASE other RENAME TO another")
            replica.follows(primary)
            renamed.execute("CREATE TEMP TABLE p AS SELECT 1 AS a")
            renamed.execute("INSERT INTO o SELECT a FROM p")
            assert renamed.execute("SELECT * FROM o").fetchall() == [(1,)]


def used_bytes(server: LogsteadServer) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port(server)}/metrics", timeout=10) as response:
        text = response.read().decode()
    return int(float(re.search(r"^\w*memory_used_bytes (\S+)$", text, re.M)[1]))


def test_they_take_no_memory_of_what_follows_the_log(tmp_path):
    """A temporary table that fills the budget is told so, and the replica follows on beside it: what comes from the log has the
    reserve. What the table took is free when its session ends, also by a kill in a transaction."""
    with pair("file", tmp_path, arguments=("--checkpoint-interval", "1s")) as (primary, (replica,)):
        replica.kill()
        replica.arguments += ["--memory", "32MB", "--metrics-listen", "127.0.0.1:0"]
        replica.start()
        primary.execute("CREATE TABLE t (id int PRIMARY KEY, filling text)", "INSERT INTO t VALUES (0, '')")
        replica.follows(primary)
        before = used_bytes(replica)
        for in_transaction in (False, True):
            connection = replica.connect(autocommit=True)
            connection.execute("CREATE TEMP TABLE o (id int PRIMARY KEY, filling text)")
            if in_transaction:
                connection.execute("BEGIN")
                connection.execute("SAVEPOINT a")
            n = 0
            with pytest.raises(psycopg.errors.OutOfMemory):
                while True:
                    connection.execute(
                        "INSERT INTO o SELECT g, repeat('x', 1000) FROM generate_series(%s::int, %s::int) g", (n, n + 999), prepare=False
                    )
                    n += 1000
            assert n >= 8000
            if in_transaction:
                connection.execute("ROLLBACK TO a")
                connection.execute("CREATE TEMP TABLE small AS SELECT 1 AS a")
            # A tombstone takes nothing of the reserve; TRUNCATE needs none.
            for first in range(1, 4000, 1000):
                primary.execute(f"INSERT INTO t SELECT g, repeat('y', 100) FROM generate_series({first}, {first + 999}) g ON CONFLICT DO NOTHING")
            replica.follows(primary)
            assert replica.execute("SELECT count(*) FROM t") == [(4001,)]
            if not in_transaction:
                connection.execute("TRUNCATE o")
                connection.execute("INSERT INTO o VALUES (1, 'again')")
            wait_until(lambda: used_bytes(replica) < before + (8 << 20), timeout_s=60, what="memory to be free")
            pid = connection.info.backend_pid
            replica.execute(f"SELECT pg_terminate_backend({pid})")
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
                connection.execute("SELECT 1")
            primary.execute("DELETE FROM t WHERE id > 0")
        assert replica.execute("SELECT state, restarts FROM logstead_replica") == [("following", 0)]


def test_a_promotion_ends_them_and_nothing_is_left(local):  # noqa: F811 the fixture
    """Sessions with temporary objects end with 57P01, others go on, among them one that has dropped its own. The new primary has
    nothing of them: neither in its catalog nor in its log, which the old one follows."""
    primary, replica = local
    primary.execute("CREATE TABLE t (id serial PRIMARY KEY, v int)", "INSERT INTO t (v) VALUES (1)")
    replica.follows(primary)
    having, sequence, had, none = (replica.connect(autocommit=True) for _ in range(4))
    having.execute("CREATE TEMP TABLE o (id serial PRIMARY KEY, v int)")
    having.execute("INSERT INTO o (v) SELECT g FROM generate_series(1, 1000) g")
    sequence.execute("CREATE TEMP SEQUENCE s")
    had.execute("CREATE TEMP TABLE o AS SELECT * FROM t")
    had.execute("DROP TABLE o")
    primary.kill()
    done = promote(replica)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: is_primary(replica), what="the promoted server")
    for connection in (having, sequence):
        with pytest.raises(psycopg.Error) as error:
            connection.execute("SELECT 1")
        assert error.value.sqlstate in ("57P01", None), error.value
    for connection in (had, none):
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM o")
        connection.execute("CREATE TEMP TABLE o AS SELECT 1 AS a")
    had.execute("CREATE TABLE made (id serial PRIMARY KEY, v text UNIQUE)")
    had.execute("INSERT INTO made (v) SELECT g::text FROM generate_series(1, 1000) g")
    had.execute("INSERT INTO t (v) VALUES (2)")
    had.execute("CHECKPOINT")
    # Numbers of those that last go on where they were.
    assert had.execute("SELECT max(oid)::bigint < 100000 FROM pg_class").fetchone() == (True,)
    assert had.execute("SELECT count(*) FROM pg_class WHERE relpersistence = 't'").fetchone() == (1,)
    had.close()
    none.close()
    back = ReplicaServer(primary.root / "back", replica.url)
    try:
        back.start()
        back.follows(replica)
        assert back.execute("SELECT (SELECT count(*) FROM made), (SELECT sum(v) FROM t)") == [(1000, 3)]
        # One follows the log of the other, with temporary tables of its own.
        with back.connect(autocommit=True) as connection:
            connection.execute("CREATE TEMP TABLE o AS SELECT * FROM made")
            replica.execute("INSERT INTO made (v) VALUES ('last')")
            back.follows(replica)
            assert connection.execute("SELECT count(*) FROM made LEFT JOIN o USING (id) WHERE o.id IS NULL").fetchone() == (1,)
    finally:
        back.kill()
    replica.kill()
    primary.start()
    assert primary.execute("SELECT count(*) FROM made") == [(1001,)]
    assert primary.execute("SELECT count(*) FROM pg_class WHERE relpersistence = 't'") == [(0,)]
    assert primary.stop() == 0
    primary.run(primary.binary(), "fsck", str(primary.data))


def test_a_session_that_promotes_and_has_some(local):  # noqa: F811 the fixture
    """It has its answer, and ends."""
    primary, replica = local
    with replica.connect(autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE o (a int)")
        primary.kill()
        assert connection.execute("SELECT pg_promote()").fetchone() == (True,)
        wait_until(lambda: is_primary(replica), what="the promoted server")
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT * FROM o")
    assert replica.execute("SELECT count(*) FROM pg_class WHERE relpersistence = 't'") == [(0,)]


def test_a_new_beginning_ends_them(tmp_path):
    """What the replica would read next is gone: it begins again, and sessions with temporary objects end as all do."""
    small = ("--segment-size", "1MB", "--checkpoint-interval", "200ms")
    with pair("file", tmp_path, arguments=small) as (primary, (replica,)):
        primary.execute("CREATE TABLE t (id int PRIMARY KEY, filling text)", "INSERT INTO t VALUES (0, '')")
        replica.follows(primary)
        session = replica.connect(autocommit=True)
        notices: list[str] = []
        session.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        session.execute("CREATE TEMP TABLE o AS SELECT g FROM generate_series(1, 1000) g")
        session.execute("BEGIN")
        session.execute("CREATE TEMP TABLE p AS SELECT * FROM o")
        os.kill(replica.process.pid, signal.SIGSTOP)
        try:
            for block in range(8):
                first = 1 + block * 1000
                primary.execute(f"INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series({first}, {first + 999}) g", "CHECKPOINT")
            primary.execute("UPDATE t SET filling = 'y' WHERE id = 0", "CHECKPOINT", "CHECKPOINT")
        finally:
            os.kill(replica.process.pid, signal.SIGCONT)

        def ended() -> str | None:
            try:
                session.execute("SELECT count(*) FROM p")
                return None
            except psycopg.OperationalError as error:
                return "\n".join([*notices, str(error)])

        assert "the replica begins again" in wait_until(ended, what="the end of the session")
        replica.follows(primary)
        with replica.connect(autocommit=True) as connection:
            with pytest.raises(psycopg.errors.UndefinedTable):
                connection.execute("SELECT * FROM o")
            connection.execute("CREATE TEMP TABLE o AS SELECT id FROM t")
            assert connection.execute("SELECT count(*) FROM o").fetchone() == (8001,)


def test_many_sessions_make_and_drop_them(local):  # noqa: F811 the fixture
    """Beside each other and beside the primary's DDL: storages have numbers of their own."""
    primary, replica = local
    primary.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 50)")
    replica.follows(primary)
    wrong: list[str] = []

    def session(number: int) -> None:
        try:
            for life in range(4):
                with replica.connect(autocommit=True) as connection:
                    connection.execute("CREATE TEMP TABLE emptied (a int PRIMARY KEY, b serial) ON COMMIT DELETE ROWS")
                    for n in range(10):
                        with connection.transaction():
                            connection.execute("INSERT INTO emptied (a) SELECT id * %s FROM t", (number + 1,))
                            found = connection.execute("SELECT count(*), sum(a) FROM emptied").fetchone()
                            if found != (50, 1275 * (number + 1)):
                                wrong.append(f"{number}, {life}, {n}: {found}")
                        connection.execute(f"CREATE TEMP TABLE o{n} AS SELECT {number} AS who, id FROM t")
                        if n % 3 == 0:
                            connection.execute(f"DROP TABLE o{n}")
                        elif connection.execute(f"SELECT min(who), max(who), count(*) FROM o{n}").fetchone() != (number, number, 50):
                            wrong.append(f"{number}, {life}: o{n}")
        except Exception as error:  # noqa: BLE001 a thread's own failure would go unnoticed
            wrong.append(repr(error))

    threads = [threading.Thread(target=session, args=(number,), daemon=True) for number in range(6)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        primary.execute("CREATE TABLE u (id int PRIMARY KEY)", "INSERT INTO u VALUES (1)", "DROP TABLE u")
        time.sleep(0.05)
    assert not wrong, wrong[:5]
    replica.follows(primary)
    assert replica.execute("SELECT state, restarts FROM logstead_replica") == [("following", 0)]
