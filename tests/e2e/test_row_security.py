"""Rows that policies hide: no expression of a statement meets one, whichever operator asks it, also when a row is hidden while the statement waits for it.

A function that tells what it is called with stands for whatever a user may write: an error, an index into a table of his own, a message.
"""

from __future__ import annotations

import threading
import time

import psycopg
import pytest
from psycopg import errors
from test_grants import as_role

DENIED = errors.InsufficientPrivilege


@pytest.fixture
def table(server):
    """Row 1 is the user's, row 2 is hidden from it."""
    server.execute(
        "CREATE ROLE guarded_owner LOGIN",
        "CREATE ROLE guarded_user LOGIN",
        "CREATE SCHEMA guarded AUTHORIZATION guarded_owner",
        "GRANT ALL ON SCHEMA guarded TO guarded_user",
        "ALTER ROLE guarded_user SET search_path = guarded",
        "ALTER ROLE guarded_owner SET search_path = guarded",
        "CREATE FUNCTION guarded.leak(text) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS "
        "$$BEGIN RAISE NOTICE 'LEAK %', $1; RETURN true; END$$",
    )
    with as_role(server, "guarded_owner") as owner:
        owner.execute("CREATE TABLE r (id int PRIMARY KEY, o text, v int, s text)")
        owner.execute("INSERT INTO r VALUES (1, 'guarded_user', 10, 'one'), (2, 'guarded_owner', 20, 'two')")
        owner.execute("CREATE POLICY own ON r USING (o = current_user)")
        owner.execute("ALTER TABLE r ENABLE ROW LEVEL SECURITY")
        owner.execute("GRANT ALL ON r TO guarded_user")
    yield
    server.execute("DROP OWNED BY guarded_owner, guarded_user CASCADE", "DROP ROLE guarded_owner, guarded_user", "DROP SCHEMA IF EXISTS guarded CASCADE")


def listened(connection: psycopg.Connection) -> list[str]:
    """The notices of a connection, as they come."""
    told: list[str] = []
    connection.add_notice_handler(lambda notice: told.append(notice.message_primary))
    return told


# PostgreSQL up to 15.18 asks the statement's WHERE first; 15.20 is what is wanted here.
@pytest.mark.parametrize(
    "condition",
    ["r.s <> 'two'", "r.s = 'two'", "r.s::int > 0", "1 / (r.v - 20) > 0", "leak(r.s)", "false", "excluded.v > 5"],
)
def test_on_conflict_asks_the_policy_first(server, table, condition):
    insert = "INSERT INTO r VALUES (%s, 'guarded_user', 1, 'z') ON CONFLICT (id) DO UPDATE SET v = 1 WHERE "
    with as_role(server, "guarded_user") as user:
        told = listened(user)
        with pytest.raises(DENIED, match="USING expression"):
            user.execute(insert % 2 + condition)
        # The same for each row of many, and when the plan is kept.
        with pytest.raises(DENIED, match="USING expression"):
            user.execute(
                "INSERT INTO r SELECT i, 'guarded_user', 1, 'z' FROM generate_series(2, 3) i "
                f"ON CONFLICT (id) DO UPDATE SET v = 1 WHERE {condition}"
            )
        with pytest.raises(DENIED, match="USING expression"):
            user.execute(insert % 2 + condition, prepare=True)
        assert told == []
        # A row of its own is asked.
        done = user.execute(insert % 1 + "leak(r.s)")
        assert (done.rowcount, told) == (1, ["LEAK one"])


def test_on_conflict_asks_a_policy_that_reads_tables_first(server, table):
    with as_role(server, "guarded_owner") as owner:
        owner.execute("CREATE TABLE members (who text)")
        owner.execute("INSERT INTO members VALUES ('guarded_user')")
        owner.execute("GRANT SELECT ON members TO guarded_user")
        owner.execute("DROP POLICY own ON r")
        owner.execute("CREATE POLICY adds ON r FOR INSERT WITH CHECK (true)")
        owner.execute("CREATE POLICY sees ON r FOR SELECT USING (true)")
        owner.execute("CREATE POLICY changes ON r FOR UPDATE USING (EXISTS (SELECT FROM members WHERE who = o))")
    with as_role(server, "guarded_user") as user:
        told = listened(user)
        insert = "INSERT INTO r VALUES (%s, 'guarded_user', 1, 'z') ON CONFLICT (id) DO UPDATE SET v = 1 WHERE leak(r.s)"
        with pytest.raises(DENIED, match="USING expression"):
            user.execute(insert % 2)
        assert told == []
        assert user.execute(insert % 1).rowcount == 1
        assert told == ["LEAK one"]


def test_on_conflict_asks_the_policy_before_triggers_and_assignments(server, table):
    with as_role(server, "guarded_user") as user:
        told = listened(user)
        with pytest.raises(DENIED):
            user.execute("INSERT INTO r VALUES (2, 'guarded_user', 1, 'z') ON CONFLICT (id) DO UPDATE SET v = leak(r.s)::int")
    server.execute(
        "CREATE FUNCTION guarded.tell() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE 'LEAK %', old.s; RETURN new; END$$",
        "CREATE TRIGGER tell BEFORE UPDATE ON guarded.r FOR EACH ROW EXECUTE FUNCTION guarded.tell()",
    )
    with as_role(server, "guarded_user") as user:
        told += listened(user)
        with pytest.raises(DENIED):
            user.execute("INSERT INTO r VALUES (2, 'guarded_user', 1, 'z') ON CONFLICT (id) DO UPDATE SET v = 1")
    assert told == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE r SET v = v + 1 WHERE leak(s)",
        "UPDATE r SET v = leak(s)::int",
        "UPDATE r SET v = v + 1 RETURNING leak(s)",
        "DELETE FROM r WHERE leak(s)",
        "DELETE FROM r RETURNING leak(s)",
        "SELECT id FROM r WHERE leak(s) FOR UPDATE",
        "MERGE INTO r USING (VALUES (1)) n (i) ON id = i AND leak(s) WHEN MATCHED THEN UPDATE SET v = 0",
        "MERGE INTO r USING (VALUES (1)) n (i) ON id = i WHEN MATCHED AND leak(s) THEN UPDATE SET v = 0",
        "MERGE INTO r USING (VALUES (1)) n (i) ON id = i WHEN MATCHED AND leak(s) THEN DELETE",
    ],
)
def test_a_row_hidden_while_it_is_waited_for_is_not_asked(server, table, statement):
    with as_role(server, "guarded_owner", autocommit=False) as owner, as_role(server, "guarded_user") as user:
        told = listened(user)
        pid = user.info.backend_pid
        owner.execute("UPDATE r SET o = 'guarded_owner', s = 'hidden now' WHERE id = 1")
        waiter = threading.Thread(target=user.execute, args=(statement,))
        waiter.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
        with server.connect() as watcher:
            watcher.autocommit = True
            deadline = time.monotonic() + 30
            while watcher.execute(waiting, (pid,)).fetchone() != (1,) and time.monotonic() < deadline:
                time.sleep(0.01)
        owner.commit()
        waiter.join(30)
        assert not waiter.is_alive()
        # What it was called with before the wait was in sight then.
        assert set(told) <= {"LEAK one"}
    assert server.execute("SELECT id, s, v FROM guarded.r ORDER BY 1") == [(1, "hidden now", 10), (2, "two", 20)]


def test_lock_table_of_a_view_holds_off_who_writes_below(server, table):
    server.execute("CREATE VIEW guarded.inner AS SELECT * FROM guarded.r", "CREATE VIEW guarded.outer AS SELECT * FROM guarded.inner WHERE id < 5")
    with server.connect() as locker, as_role(server, "guarded_owner") as writer:
        locker.execute("BEGIN")
        locker.execute("LOCK TABLE guarded.outer IN SHARE MODE")
        writer.execute("SET lock_timeout = '50ms'")
        with pytest.raises(errors.LockNotAvailable):
            writer.execute("INSERT INTO r VALUES (3, 'x', 1, 'y')")
        locker.execute("ROLLBACK")
        assert writer.execute("INSERT INTO r VALUES (3, 'x', 1, 'y')").rowcount == 1
        locker.execute("BEGIN")
        writer.execute("BEGIN")
        writer.execute("UPDATE r SET v = 2 WHERE id = 3")
        with pytest.raises(errors.LockNotAvailable):
            locker.execute("LOCK TABLE guarded.outer NOWAIT")
        locker.execute("ROLLBACK")
        writer.execute("ROLLBACK")
