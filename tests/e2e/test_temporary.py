"""Temporary tables are one session's own, are not logged, and go with it, however it ends."""

import os
import socket

import psycopg
import pytest
from harness import wait_until


def test_sessions_do_not_see_each_others(server):
    with server.connect(autocommit=True) as one, server.connect(autocommit=True) as two:
        one.execute("CREATE TABLE public.temp_shared AS SELECT 0 AS a")
        for number, connection in enumerate([one, two], 1):
            connection.execute("CREATE TEMP TABLE temp_shared (a int PRIMARY KEY, b serial)")
            connection.execute("CREATE TEMP TABLE temp_two (a int)")
            connection.execute("INSERT INTO temp_shared (a) VALUES (%s)", [number])
        assert one.execute("SELECT a, b FROM temp_shared").fetchall() == [(1, 1)]
        assert two.execute("SELECT a, b FROM temp_shared").fetchall() == [(2, 1)]
        with server.connect(autocommit=True) as three:
            assert three.execute("SELECT a FROM temp_shared").fetchall() == [(0,)]
            with pytest.raises(psycopg.errors.UndefinedTable):
                three.execute("SELECT * FROM temp_two")
        # Prepared before the temporary table is gone, and run after.
        cursor = one.cursor()
        assert cursor.execute("SELECT a FROM temp_shared", prepare=True).fetchall() == [(1,)]
        one.execute("DROP TABLE pg_temp.temp_shared")
        assert one.execute("SELECT a FROM temp_shared", prepare=True).fetchall() == [(0,)]
        assert two.execute("SELECT a FROM temp_shared").fetchall() == [(2,)]
        one.execute("DROP TABLE temp_shared")
        assert two.execute("SELECT a FROM temp_shared").fetchall() == [(2,)]


def test_many_transactions_of_both_kinds(server):
    """What one session writes to a temporary and to a lasting table stays in step, beside others that write."""
    with server.connect() as one, server.connect(autocommit=True) as other:
        other.execute("CREATE TABLE temp_both (id int PRIMARY KEY, v int)", prepare=False)
        one.execute("CREATE TEMP TABLE temp_mirror (id int PRIMARY KEY, v int)")
        one.commit()
        for n in range(60):
            one.execute("INSERT INTO temp_both VALUES (%s, 0)", [n])
            one.execute("INSERT INTO temp_mirror VALUES (%s, 0)", [n])
            with one.transaction():
                one.execute("UPDATE temp_both SET v = v + 1 WHERE id = %s", [n // 2])
                one.execute("UPDATE temp_mirror SET v = v + 1 WHERE id = %s", [n // 2])
            try:
                with one.transaction():
                    one.execute("UPDATE temp_mirror SET v = -1")
                    one.execute("UPDATE temp_both SET v = -1")
                    raise psycopg.Rollback
            except psycopg.Rollback:
                pass
            if n % 3 == 0:
                one.rollback()
            else:
                one.commit()
            other.execute("UPDATE temp_both SET v = v WHERE id = 1")
        both = one.execute("SELECT id, v FROM temp_both ORDER BY id").fetchall()
        assert one.execute("SELECT id, v FROM temp_mirror ORDER BY id").fetchall() == both
        assert len(both) == 40
        one.commit()
        other.execute("DROP TABLE temp_both")


def test_a_killed_connection_leaves_nothing(private_server):
    private_server.start()
    connection = private_server.connect(autocommit=True)
    connection.execute("CREATE TEMP TABLE temp_left (a int)")
    connection.execute("INSERT INTO temp_left SELECT generate_series(1, 1000)")
    connection.execute("CREATE TABLE temp_user (a int)")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO temp_left VALUES (0)")
    connection.execute("INSERT INTO temp_user VALUES (0)")
    pid = connection.info.backend_pid
    # The connection breaks in the middle of a transaction.
    with socket.socket(fileno=os.dup(connection.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)
    with private_server.connect(autocommit=True) as other:
        gone = "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s"
        wait_until(lambda: other.execute(gone, [pid]).fetchone()[0], what="the session is gone")
        # Its locks are free, and its number may come again.
        other.execute("INSERT INTO temp_user VALUES (1)")
        assert other.execute("SELECT * FROM temp_user").fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.UndefinedTable):
            other.execute("SELECT * FROM temp_left")


def test_kill_9_keeps_what_lasts_and_nothing_else(private_server):
    private_server.start()
    with private_server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE temp_lasts (a int PRIMARY KEY)")
        connection.execute("CREATE TEMP TABLE temp_goes (a int PRIMARY KEY)")
        connection.execute("CREATE TEMP SEQUENCE temp_numbers")
        with connection.transaction():
            connection.execute("INSERT INTO temp_goes VALUES (1)")
            connection.execute("INSERT INTO temp_lasts VALUES (1)")
        connection.execute("CHECKPOINT")
        with connection.transaction():
            connection.execute("INSERT INTO temp_goes VALUES (2)")
            connection.execute("INSERT INTO temp_lasts SELECT a + 1 FROM temp_goes")
        assert connection.execute("SELECT count(*) FROM temp_lasts").fetchone() == (3,)
        private_server.kill()
    private_server.start()
    with private_server.connect(autocommit=True) as connection:
        assert connection.execute("SELECT a FROM temp_lasts ORDER BY a").fetchall() == [(1,), (2,), (3,)]
        for name in ["temp_goes", "temp_numbers"]:
            with pytest.raises(psycopg.errors.UndefinedTable):
                connection.execute(f"SELECT * FROM {name}")
        left = "SELECT count(*) FROM pg_class WHERE relpersistence = 't' OR relname LIKE 'temp\\_goes%'"
        assert connection.execute(left).fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pg\\_temp%'").fetchone() == (0,)
        connection.execute("CHECKPOINT")
        connection.execute("CREATE TEMP TABLE temp_goes (a text)")
        connection.execute("INSERT INTO temp_goes VALUES ('again')")
        assert connection.execute("SELECT * FROM temp_goes").fetchall() == [("again",)]


def test_the_schema_changes_under_a_temporary_table(server):
    """What others do to the catalog is seen beside one's own temporary tables, in prepared statements too."""
    with server.connect(autocommit=True) as one, server.connect(autocommit=True) as two:
        two.execute("CREATE TABLE temp_beside (a int)")
        one.execute("CREATE TEMP TABLE temp_own (a int)")
        one.execute("INSERT INTO temp_own VALUES (1)")
        query = "SELECT count(*) FROM temp_own, temp_beside"
        assert one.execute(query, prepare=True).fetchone() == (0,)
        two.execute("ALTER TABLE temp_beside ADD COLUMN b int DEFAULT 3")
        two.execute("INSERT INTO temp_beside VALUES (1)")
        assert one.execute(query, prepare=True).fetchone() == (1,)
        assert one.execute("SELECT b FROM temp_beside").fetchone() == (3,)
        one.execute("CREATE TEMP VIEW temp_reads AS SELECT b FROM temp_beside")
        assert one.execute("SELECT * FROM temp_reads").fetchone() == (3,)
        two.execute("DROP TABLE temp_beside CASCADE")
        with pytest.raises(psycopg.Error):
            one.execute("SELECT * FROM temp_reads")
        assert one.execute("SELECT * FROM temp_own").fetchone() == (1,)
        one.execute("DISCARD TEMP")
        with pytest.raises(psycopg.errors.UndefinedTable):
            one.execute("SELECT * FROM temp_own")


def test_what_hangs_on_ones_own_tables_is_done_as_oneself(server):
    """Actions of foreign keys, their triggers and defaults, and functions of indexes: as the owner of a table, and of a temporary one
    as whoever the session acts as, who may be nobody."""
    server.execute(
        "DROP ROLE IF EXISTS nobody_of_note", "CREATE ROLE nobody_of_note",
        "CREATE OR REPLACE FUNCTION secret_number() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
        "REVOKE EXECUTE ON FUNCTION secret_number FROM PUBLIC",
    )  # fmt: skip
    with server.connect(autocommit=True) as connection:
        run = connection.execute
        run("SET SESSION AUTHORIZATION nobody_of_note")
        run("CREATE TEMP TABLE said (what text)")
        run("CREATE TEMP TABLE parent (a int PRIMARY KEY)")
        run("CREATE TEMP TABLE child (a int REFERENCES parent ON DELETE CASCADE, b int)")
        body = "BEGIN INSERT INTO said VALUES (TG_OP || ' as ' || current_user); RETURN OLD; END"
        run(f"CREATE FUNCTION pg_temp.note() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$")
        run("CREATE TRIGGER before_delete BEFORE DELETE ON child FOR EACH ROW EXECUTE FUNCTION pg_temp.note()")
        run("CREATE TRIGGER after_delete AFTER DELETE ON child FOR EACH ROW EXECUTE FUNCTION pg_temp.note()")
        run("INSERT INTO parent VALUES (1)")
        run("INSERT INTO child VALUES (1, 2)")
        run("DELETE FROM parent")
        assert run("SELECT what FROM said").fetchall() == [("DELETE as nobody_of_note",)] * 2
        # What an index computes.
        run("TRUNCATE said")
        body = "BEGIN RETURN a + length(current_user); END"
        run(f"CREATE FUNCTION pg_temp.own(a int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ {body} $$")
        run("INSERT INTO child VALUES (NULL, 2)")
        try:
            run("CREATE INDEX ON child (pg_temp.own(b))")
            expected = 2 + len("nobody_of_note")
            assert run(f"SELECT count(*) FROM child WHERE pg_temp.own(b) = {expected}").fetchone() == (1,)
        except psycopg.errors.FeatureNotSupported:
            pass
        # A default that nobody may call.
        run("CREATE TEMP TABLE third (a int DEFAULT secret_number() REFERENCES parent ON DELETE SET DEFAULT)")
        run("INSERT INTO parent VALUES (1), (2)")
        run("INSERT INTO third VALUES (2)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run("DELETE FROM parent WHERE a = 2")
        for statement in (
            "ALTER FUNCTION pg_temp.own(int) SECURITY DEFINER",
            "CREATE FUNCTION pg_temp.definer() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
        ):
            with pytest.raises(psycopg.Error):
                run(statement)
    server.execute("DROP FUNCTION secret_number", "DROP ROLE nobody_of_note")
