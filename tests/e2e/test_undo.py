"""What a statement that was ended, or a ROLLBACK, has written is undone behind the session.

It has its answer before, and nobody sees anything else than a slow rollback. Rows of `keyed` take long to write and as
long to undo: an index computes a key of 128 KiB for each. So what a statement wrote in a second or two is still being
undone when the next question comes, and each test first looks that it is.
"""

import hashlib
import threading
import time

import psycopg
import pytest
from harness import TIMEOUT_S, wait_until

pytestmark = pytest.mark.logstead_only

KEYED = (
    "CREATE TABLE keyed (id int PRIMARY KEY, t text, n int)",
    "CREATE INDEX keyed_t ON keyed (md5(repeat(t, 4000)))",
)
SOME = "INSERT INTO keyed SELECT g, md5(g::text), 0 FROM generate_series(1, {}) g"
FILL = SOME.format(10000000)


@pytest.fixture(scope="module")
def _one_worker(server_kind, tmp_path_factory):
    server = server_kind(tmp_path_factory.mktemp("undo"))
    server.start(("--workers", "1"))
    yield server
    server.kill()


@pytest.fixture
def one_worker(_one_worker):
    """A server with one worker and an empty table `keyed`."""
    with _one_worker.connect(autocommit=True) as connection:
        for statement in KEYED:
            connection.execute(statement)
        yield _one_worker
        wait_until(lambda: undoing(connection) == 0, what="the end of the undoing")
        connection.execute("DROP TABLE keyed")


def undoing(connection) -> int:
    """How many transactions are undone behind their sessions."""
    return connection.execute("SELECT sum(undoing)::int FROM logstead_workers").fetchone()[0]


def left(connection) -> int:
    """How many writes they have left."""
    return connection.execute("SELECT sum(writes_to_undo)::int FROM logstead_workers").fetchone()[0]


def pid_of(connection) -> int:
    return connection.info.backend_pid


def fill(connection, seconds: float = 3.0) -> int:
    """As many rows as take so long to write, on this machine; how many."""
    begun = time.monotonic()
    connection.execute(SOME.format(50))
    rows = max(50, int(50 * seconds / (time.monotonic() - begun)))
    connection.execute("INSERT INTO keyed SELECT g, md5(g::text), 0 FROM generate_series(51, %s) g", (rows,))
    return rows


def times_out(connection, statement: str, seconds: float = 3.0) -> None:
    """Runs a statement until its time is up."""
    connection.execute(f"SET statement_timeout = '{seconds}s'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(statement)


class Running:
    """A statement that runs in a thread of its own."""

    def __init__(self, connection, *statements: str):
        self.connection = connection
        self.error = None
        self.rows = None
        self.thread = threading.Thread(target=self._run, args=(statements,))
        self.thread.start()

    def _run(self, statements) -> None:
        try:
            for statement in statements:
                cursor = self.connection.execute(statement)
                self.rows = cursor.fetchall() if cursor.description else None
        except psycopg.Error as error:
            self.error = error

    def ended(self):
        """Waits for its end: its rows."""
        self.thread.join(TIMEOUT_S)
        assert not self.thread.is_alive(), "the statement did not end"
        if self.error:
            raise self.error
        return self.rows


def blockers(connection, pid: int) -> list:
    return connection.execute("SELECT pg_blocking_pids(%s)", (pid,)).fetchone()[0]


def waits_for(connection, pid: int, holder: int) -> None:
    """Comes back when one waits for the other."""
    wait_until(lambda: blockers(connection, pid) == [holder], what="a wait")


def test_a_cancelled_statement_is_answered_while_it_is_undone(one_worker):
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        times_out(session, FILL)
        assert undoing(other) == 1
        assert left(other) > 0
        # Who only reads does not wait, and sees nothing of it.
        assert session.execute("SELECT count(*) FROM keyed").fetchone() == (0,)
        assert other.execute("SELECT count(*) FROM keyed").fetchone() == (0,)
        assert undoing(other) == 1
        session.execute("SET statement_timeout = 0")
        # The same key: the session waits for its own former transaction.
        session.execute("INSERT INTO keyed VALUES (1, 'x', 1)")
        assert undoing(other) == 0
        assert left(other) == 0
        assert other.execute("SELECT * FROM keyed").fetchall() == [(1, "x", 1)]


def test_a_wait_for_the_former_transaction_is_seen_and_can_be_cancelled(one_worker):
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        pid = pid_of(session)
        times_out(session, FILL)
        session.execute("SET statement_timeout = 0; SET lock_timeout = '10ms'")
        # It is no lock of another's that it waits for: lock_timeout does not end it.
        insert = Running(session, "INSERT INTO keyed VALUES (1, 'x', 1)")
        state = "SELECT state, wait_event_type, wait_event FROM pg_stat_activity WHERE pid = %s"
        wait_until(lambda: other.execute(state, (pid,)).fetchone() == ("active", "Lock", "transactionid"), what="a wait")
        other.execute("SELECT pg_cancel_backend(%s)", (pid,))
        with pytest.raises(psycopg.errors.QueryCanceled):
            insert.ended()
        assert undoing(other) == 1
        session.execute("INSERT INTO keyed VALUES (1, 'x', 1)")
        assert undoing(other) == 0


def test_names_are_free_when_all_is_undone(one_worker):
    """ROLLBACK of a block that made a table, and the table again: by the session, and by another that waits."""
    with (
        one_worker.connect(autocommit=True) as session,
        one_worker.connect(autocommit=True) as second,
        one_worker.connect(autocommit=True) as other,
    ):
        session.execute("BEGIN")
        session.execute("CREATE TABLE made AS SELECT g FROM generate_series(1, 10000) g")
        times_out(session, FILL)
        session.execute("ROLLBACK")
        assert undoing(other) == 1
        assert other.execute("SELECT to_regclass('made')").fetchone() == (None,)
        create = Running(second, "CREATE TABLE made (theirs int)")
        waits_for(other, pid_of(second), pid_of(session))
        assert undoing(other) == 1
        session.execute("SET statement_timeout = 0")
        create.ended()
        assert undoing(other) == 0
        with pytest.raises(psycopg.errors.DuplicateTable):
            session.execute("CREATE TABLE made (ours int)")
        second.execute("DROP TABLE made")
        session.execute("CREATE TABLE made AS SELECT 1 AS ours")
        assert other.execute("SELECT ours FROM made").fetchall() == [(1,)]
        session.execute("DROP TABLE made")


def test_a_cancelled_create_table_as_and_its_name(one_worker):
    create = "CREATE TABLE made AS SELECT g, md5(g::text) FROM generate_series(1, 100000000) g"
    with one_worker.connect(autocommit=True) as session:
        for _ in range(2):
            times_out(session, create)
        times_out(session, create.replace("TABLE", "MATERIALIZED VIEW"))
        session.execute("SET statement_timeout = 0")
        session.execute("CREATE TABLE made AS SELECT 7 AS n")
        assert session.execute("SELECT n FROM made").fetchall() == [(7,)]
        session.execute("DROP TABLE made")


@pytest.mark.parametrize("end", ["ROLLBACK", pytest.param("COMMIT", marks=pytest.mark.long)])
def test_rows_that_were_updated(one_worker, end):
    """They are as they were for who reads; who writes one of them waits and finds it so."""
    with (
        one_worker.connect(autocommit=True) as session,
        one_worker.connect(autocommit=True) as second,
        one_worker.connect(autocommit=True) as other,
    ):
        rows = fill(session)
        session.execute("BEGIN")
        session.execute("UPDATE keyed SET t = t || 'x', n = 1")
        if end == "COMMIT":
            with pytest.raises(psycopg.errors.DivisionByZero):
                session.execute("SELECT 1 / 0")
        session.execute(end)
        assert undoing(other) == 1
        asked = "SELECT count(*), sum(n), count(*) FILTER (WHERE t LIKE '%x') FROM keyed"
        assert other.execute(asked).fetchone() == (rows, 0, 0)
        assert session.execute(asked).fetchone() == (rows, 0, 0)
        # The last one that is undone.
        update = Running(second, "UPDATE keyed SET n = n + 10 WHERE id = 1 RETURNING t LIKE '%x', n")
        waits_for(other, pid_of(second), pid_of(session))
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("SELECT * FROM keyed WHERE id = 1 FOR UPDATE NOWAIT")
        assert undoing(other) == 1
        assert update.ended() == [(False, 10)]
        assert undoing(other) == 0
        assert session.execute(asked).fetchone() == (rows, 10, 0)
        # Entries of keys that were undone are gone, those of before are there.
        other.execute("SET enable_seqscan = off")
        found = "SELECT count(*) FROM keyed WHERE md5(repeat(t, 4000)) = md5(repeat(md5('1') || %s, 4000))"
        assert other.execute(found, ("",)).fetchone() == (1,)
        assert other.execute(found, ("x",)).fetchone() == (0,)


def test_a_key_that_was_inserted_is_anothers_in_the_end(one_worker):
    with (
        one_worker.connect(autocommit=True) as session,
        one_worker.connect(autocommit=True) as second,
        one_worker.connect(autocommit=True) as other,
    ):
        times_out(session, FILL)
        insert = Running(second, "INSERT INTO keyed VALUES (1, 'theirs', 2)")
        waits_for(other, pid_of(second), pid_of(session))
        assert undoing(other) == 1
        insert.ended()
        session.execute("SET statement_timeout = 0")
        with pytest.raises(psycopg.errors.UniqueViolation):
            session.execute("INSERT INTO keyed VALUES (1, 'ours', 1)")
        assert other.execute("SELECT * FROM keyed").fetchall() == [(1, "theirs", 2)]


def test_locks_of_tables_are_held_to_the_end(one_worker):
    with (
        one_worker.connect(autocommit=True) as session,
        one_worker.connect(autocommit=True) as second,
        one_worker.connect(autocommit=True) as other,
    ):
        times_out(session, FILL)
        lock = Running(second, "BEGIN", "LOCK TABLE keyed", "SELECT sum(undoing)::int FROM logstead_workers")
        waits_for(other, pid_of(second), pid_of(session))
        assert undoing(other) == 1
        assert lock.ended() == [(0,)]
        second.execute("ROLLBACK")


def test_advisory_locks_of_the_transaction_are_held_to_the_end(one_worker):
    with (
        one_worker.connect(autocommit=True) as session,
        one_worker.connect(autocommit=True) as second,
        one_worker.connect(autocommit=True) as other,
    ):
        session.execute("BEGIN")
        session.execute("SELECT pg_advisory_xact_lock(7), pg_advisory_lock(8)")
        times_out(session, FILL)
        session.execute("ROLLBACK")
        tried = "SELECT pg_try_advisory_xact_lock(7), sum(undoing)::int FROM logstead_workers"
        assert other.execute(tried).fetchone() == (False, 1)
        held = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND granted"
        assert other.execute(held, (7,)).fetchall() == [(pid_of(session),)]
        lock = Running(second, "SELECT pg_advisory_lock(7)", "SELECT sum(undoing)::int FROM logstead_workers")
        waits_for(other, pid_of(second), pid_of(session))
        assert lock.ended() == [(0,)]
        assert other.execute(held, (7,)).fetchall() == [(pid_of(second),)]
        # The session's own stays.
        assert other.execute(held, (8,)).fetchall() == [(pid_of(session),)]


def test_who_has_advisory_locks_of_the_transaction_or_temporary_tables_waits_with_whatever_it_runs(one_worker):
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        session.execute("BEGIN")
        session.execute("SELECT pg_advisory_xact_lock(7)")
        times_out(session, FILL)
        session.execute("ROLLBACK")
        assert undoing(other) == 1
        session.execute("SET statement_timeout = 0")
        assert undoing(session) == 0
        session.execute("CREATE TEMP TABLE mine (n int) ON COMMIT DELETE ROWS")
        session.execute("BEGIN")
        session.execute("INSERT INTO mine VALUES (1)")
        times_out(session, FILL)
        session.execute("ROLLBACK")
        assert undoing(other) == 1
        session.execute("SET statement_timeout = 0")
        assert session.execute("SELECT count(*) FROM mine").fetchone() == (0,)
        assert undoing(other) == 0


def test_waits_for_a_former_transaction_are_no_deadlock(one_worker):
    """One waits for a key of what is undone, and has an advisory lock that the session wants meanwhile."""
    with (
        one_worker.connect(autocommit=True) as session,
        one_worker.connect(autocommit=True) as second,
        one_worker.connect(autocommit=True) as other,
    ):
        second.execute("SELECT pg_advisory_lock(9)")
        times_out(session, FILL, 1.5)
        session.execute("SET statement_timeout = 0")
        insert = Running(second, "INSERT INTO keyed VALUES (1, 'theirs', 2)", "SELECT pg_advisory_unlock(9)")
        waits_for(other, pid_of(second), pid_of(session))
        lock = Running(session, "SELECT pg_advisory_lock(9)")
        waits_for(other, pid_of(session), pid_of(second))
        assert undoing(other) == 1
        assert insert.ended() == [(True,)]
        lock.ended()
        session.execute("SELECT pg_advisory_unlock(9)")


def test_back_to_a_savepoint_is_undone_before_the_answer(one_worker):
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        session.execute("INSERT INTO keyed VALUES (0, 'x', 0)")
        session.execute("BEGIN")
        session.execute("SAVEPOINT s")
        times_out(session, FILL)
        session.execute("ROLLBACK TO s")
        assert undoing(other) == 0
        other.execute("INSERT INTO keyed VALUES (1, 'theirs', 2)")
        session.execute("COMMIT")
        assert other.execute("SELECT count(*) FROM keyed").fetchone() == (2,)


def fails_behind_a_savepoint(session, *before: str) -> None:
    """Leaves the session in a failed block, with much to undo behind its savepoint `s`."""
    session.execute("BEGIN")
    for statement in before:
        session.execute(statement)
    session.execute("SAVEPOINT s")
    # Long enough for some questions while it is undone.
    times_out(session, FILL)
    assert session.info.transaction_status == psycopg.pq.TransactionStatus.INERROR


@pytest.mark.parametrize("end", ["ROLLBACK TO s", "ROLLBACK", "COMMIT"])
def test_behind_a_savepoint_the_answer_comes_first(one_worker, end):
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        fails_behind_a_savepoint(session, "INSERT INTO keyed VALUES (0, 'x', 0)")
        assert undoing(other) == 1
        assert left(other) > 0
        # Nothing but a Sync; and what is refused.
        with session.pipeline():
            pass
        for refused in ("SELECT 1", "RELEASE s", "SAVEPOINT t"):
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                session.execute(refused)
        with pytest.raises(psycopg.errors.InvalidSavepointSpecification):
            session.execute("ROLLBACK TO nobody")
        assert session.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        assert undoing(other) == 1
        session.execute(end)
        if end == "ROLLBACK TO s":
            assert undoing(other) == 0
            assert session.execute("SELECT count(*) FROM keyed").fetchone() == (1,)
            session.execute("INSERT INTO keyed VALUES (1, 'x', 1)")
            session.execute("COMMIT")
            assert other.execute("SELECT id FROM keyed ORDER BY id").fetchall() == [(0,), (1,)]
        else:
            assert undoing(other) == 1
            assert session.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            assert session.execute("SELECT count(*) FROM keyed").fetchone() == (0,)


def test_a_rollback_to_a_savepoint_can_be_cancelled(one_worker):
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        pid = pid_of(session)
        fails_behind_a_savepoint(session, "INSERT INTO keyed VALUES (0, 'x', 0)")
        back = Running(session, "ROLLBACK TO s")
        # The session undoes it itself.
        wait_until(lambda: undoing(other) == 0, what="the session to take it back")
        other.execute("SELECT pg_cancel_backend(%s)", (pid,))
        with pytest.raises(psycopg.errors.QueryCanceled):
            back.ended()
        assert session.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        assert undoing(other) == 1
        session.execute("ROLLBACK TO s")
        assert undoing(other) == 0
        session.execute("INSERT INTO keyed VALUES (1, 'x', 1)")
        session.execute("COMMIT")
        assert other.execute("SELECT id FROM keyed ORDER BY id").fetchall() == [(0,), (1,)]


def test_who_leaves_a_failed_block(one_worker):
    with one_worker.connect(autocommit=True) as other:
        session = one_worker.connect(autocommit=True)
        pid = pid_of(session)
        fails_behind_a_savepoint(session, "INSERT INTO keyed VALUES (0, 'x', 0)")
        session.close()
        shown = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
        assert other.execute(shown, (pid,)).fetchone() == (1,)
        other.execute("INSERT INTO keyed VALUES (0, 'theirs', 1)")
        wait_until(lambda: other.execute(shown, (pid,)).fetchone() == (0,), what="the end of the session")
        assert undoing(other) == 0
        assert other.execute("SELECT id, n FROM keyed").fetchall() == [(0, 1)]


def test_who_waits_for_what_failed_behind_a_savepoint(one_worker):
    """For a row written since: until it is undone. For one of before: until the block ends; that may be a circle."""
    with (
        one_worker.connect(autocommit=True) as session,
        one_worker.connect(autocommit=True) as second,
        one_worker.connect(autocommit=True) as other,
    ):
        second.execute("INSERT INTO keyed VALUES (-1, 'x', 0), (-2, 'x', 0)")
        second.execute("SELECT pg_advisory_lock(9)")
        session.execute("BEGIN")
        session.execute("UPDATE keyed SET n = 1 WHERE id = -1")
        session.execute("SAVEPOINT s")
        session.execute("UPDATE keyed SET n = 1 WHERE id = -2")
        times_out(session, FILL)
        since = Running(second, "UPDATE keyed SET n = n + 10 WHERE id = -2 RETURNING n", "SELECT pg_advisory_unlock(9)")
        waits_for(other, pid_of(second), pid_of(session))
        assert undoing(other) == 1
        # It is no circle: what is waited for is undone first.
        session.execute("ROLLBACK TO s; SELECT pg_advisory_lock(9)")
        assert since.ended() == [(True,)]
        session.execute("SELECT pg_advisory_unlock(9)")
        second.execute("SELECT pg_advisory_lock(9)")
        times_out(session, FILL)
        before = Running(second, "UPDATE keyed SET n = n + 10 WHERE id = -1 RETURNING n", "SELECT pg_advisory_unlock(9)")
        waits_for(other, pid_of(second), pid_of(session))
        session.execute("ROLLBACK TO s")
        assert undoing(other) == 0
        assert blockers(other, pid_of(second)) == [pid_of(session)]
        with pytest.raises(psycopg.errors.DeadlockDetected):
            session.execute("SELECT pg_advisory_lock(9)")
        session.execute("COMMIT")
        assert before.ended() == [(True,)]
        assert other.execute("SELECT id, n FROM keyed ORDER BY id").fetchall() == [(-2, 10), (-1, 10)]


def test_table_locks_since_the_savepoint(one_worker):
    """They are free when the part is undone, though its block goes on, and in nobody's way then."""
    with (
        one_worker.connect(autocommit=True) as session,
        one_worker.connect(autocommit=True) as second,
        one_worker.connect(autocommit=True) as other,
    ):
        fails_behind_a_savepoint(session, "SELECT 1")
        locks = Running(second, "BEGIN", "LOCK TABLE keyed")
        waits_for(other, pid_of(second), pid_of(session))
        assert undoing(other) == 1
        locks.ended()
        assert undoing(other) == 0
        assert session.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with one_worker.connect(autocommit=True) as third:
            waits = Running(third, "BEGIN", "LOCK TABLE keyed", "SELECT count(*) FROM keyed", "COMMIT")
            waits_for(other, pid_of(third), pid_of(second))
            second.execute("ROLLBACK")
            waits.ended()
        session.execute("ROLLBACK TO s")
        session.execute("COMMIT")


def test_a_cancel_while_a_handler_waits_for_the_undoing(one_worker):
    """The handler does not run; the statement is undone behind the session, or behind the block's savepoint."""
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        pid = pid_of(session)
        rows = fill(session)
        session.execute("TRUNCATE keyed")
        body = (
            "DO $$ BEGIN"
            "  BEGIN"
            f"    {SOME.format(rows)};"
            "    PERFORM pg_advisory_lock(5);"
            "    PERFORM 1 / 0;"
            "  EXCEPTION WHEN division_by_zero THEN INSERT INTO keyed VALUES (-1, 'handled', 1);"
            "  END;"
            "END $$"
        )
        locked = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 5 AND granted"
        for block in (False, True):
            if block:
                session.execute("BEGIN")
                session.execute("INSERT INTO keyed VALUES (0, 'x', 0)")
                session.execute("SAVEPOINT s")
            runs = Running(session, body)
            wait_until(lambda: other.execute(locked).fetchone() == (1,), what="the error")
            other.execute("SELECT pg_cancel_backend(%s)", (pid,))
            with pytest.raises(psycopg.errors.QueryCanceled):
                runs.ended()
            assert undoing(other) == 1
            if block:
                session.execute("ROLLBACK TO s")
                assert undoing(other) == 0
                session.execute("COMMIT")
            session.execute("SELECT pg_advisory_unlock(5)")
            wait_until(lambda: undoing(other) == 0, what="the end of the undoing")
            found = other.execute("SELECT id FROM keyed").fetchall()
            assert found == ([(0,)] if block else [])


def test_an_error_that_nobody_handles_is_undone_behind_the_session(one_worker):
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        body = f"DO $$ BEGIN BEGIN {FILL}; EXCEPTION WHEN others OR division_by_zero THEN NULL; END; END $$"
        times_out(session, body)
        assert undoing(other) == 1
        session.execute("SET statement_timeout = 0")
        session.execute("INSERT INTO keyed VALUES (1, 'x', 1)")
        assert other.execute("SELECT id FROM keyed").fetchall() == [(1,)]


def test_handlers_of_bodies_go_on_with_what_was_undone(one_worker):
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        session.execute(
            "DO $$ BEGIN"
            "  BEGIN"
            "    INSERT INTO keyed SELECT g, md5(g::text), 0 FROM generate_series(1, 300) g;"
            "    PERFORM 1 / 0;"
            "  EXCEPTION WHEN division_by_zero THEN INSERT INTO keyed VALUES (1, 'ours', 1);"
            "  END;"
            "END $$"
        )
        assert undoing(other) == 0
        assert other.execute("SELECT * FROM keyed").fetchall() == [(1, "ours", 1)]


def test_a_procedure_that_rolls_back_goes_on(one_worker):
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        session.execute(
            "DO $$ BEGIN"
            "  INSERT INTO keyed SELECT g, md5(g::text), 0 FROM generate_series(1, 300) g;"
            "  ROLLBACK;"
            "  INSERT INTO keyed VALUES (1, 'ours', (SELECT sum(undoing) FROM logstead_workers));"
            "END $$"
        )
        assert other.execute("SELECT * FROM keyed").fetchall() == [(1, "ours", 0)]


def test_a_session_ends_when_all_is_undone(one_worker):
    with one_worker.connect(autocommit=True) as other:
        session = one_worker.connect(autocommit=True)
        pid = pid_of(session)
        times_out(session, FILL)
        session.close()
        shown = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
        assert undoing(other) == 1
        assert other.execute(shown, (pid,)).fetchone() == (1,)
        wait_until(lambda: other.execute(shown, (pid,)).fetchone() == (0,), what="the end of the session")
        assert undoing(other) == 0


def test_the_id_is_that_of_an_aborted_transaction_at_once(one_worker):
    """As in PostgreSQL; of one whose block may go on behind a savepoint, when that is rolled back."""
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        session.execute("BEGIN")
        xid = session.execute("SELECT txid_current()").fetchone()[0]
        session.execute("SAVEPOINT s")
        times_out(session, FILL)
        status = "SELECT txid_status(%s), sum(undoing)::int FROM logstead_workers"
        assert other.execute(status, (xid,)).fetchone() == ("in progress", 1)
        session.execute("ROLLBACK")
        assert other.execute(status, (xid,)).fetchone() == ("aborted", 1)
        wait_until(lambda: undoing(other) == 0, what="the end of the undoing")
        assert other.execute(status, (xid,)).fetchone() == ("aborted", 0)


@pytest.mark.long
def test_several_sessions_at_once(one_worker):
    """Each waits for its own former transaction only; all are undone."""
    sessions = [one_worker.connect(autocommit=True) for _ in range(3)]
    with one_worker.connect(autocommit=True) as other:
        runs = []
        for at, session in enumerate(sessions):
            session.execute("SET statement_timeout = '1500ms'")
            fill = f"INSERT INTO keyed SELECT g, md5(g::text), 0 FROM generate_series({at}0000001, {at}9999999) g"
            runs.append(Running(session, fill))
        for run in runs:
            with pytest.raises(psycopg.errors.QueryCanceled):
                run.ended()
        assert 1 <= undoing(other) <= 3
        for at, session in enumerate(sessions):
            session.execute("SET statement_timeout = 0")
            session.execute(f"INSERT INTO keyed VALUES ({at}0000001, 'again', {at})")
        assert undoing(other) == 0
        assert other.execute("SELECT n FROM keyed ORDER BY n").fetchall() == [(0,), (1,), (2,)]
    for session in sessions:
        session.close()


def test_a_commit_that_is_refused(one_worker):
    """Of a transaction that could not have run before or after another; and of one with a constraint that was put off."""
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        session.execute("CREATE TABLE pair (id int PRIMARY KEY, n int)")
        session.execute("INSERT INTO pair VALUES (1, 1), (2, 1)")
        session.execute("CREATE TABLE child (id int REFERENCES pair DEFERRABLE INITIALLY DEFERRED)")
        rows = fill(session, seconds=1.0)
        for connection, id in ((session, 1), (other, 2)):
            connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
            connection.execute("SELECT sum(n) FROM pair")
            connection.execute("UPDATE pair SET n = n + 1 WHERE id = %s", (id,))
        session.execute("UPDATE keyed SET t = t || 'x'")
        other.execute("COMMIT")
        with pytest.raises(psycopg.errors.SerializationFailure):
            session.execute("COMMIT")
        assert undoing(other) == 1
        assert other.execute("SELECT sum(n) FROM pair").fetchone() == (3,)
        wait_until(lambda: undoing(other) == 0, what="the end of the undoing")
        session.execute("BEGIN")
        session.execute("INSERT INTO child VALUES (3)")
        session.execute("UPDATE keyed SET t = t || 'x'")
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            session.execute("COMMIT")
        assert undoing(other) == 1
        session.execute("DROP TABLE child, pair")
        assert undoing(other) == 0
        asked = "SELECT count(*), count(*) FILTER (WHERE t LIKE '%x') FROM keyed"
        assert other.execute(asked).fetchone() == (rows, 0)


@pytest.mark.parametrize("what", ["transaction", "part"])
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_the_server_ends_in_the_middle(server_kind, tmp_path, how, what):
    """Nothing of it comes back, nothing that was committed before or meanwhile is lost. A stop does not wait for it."""
    server = server_kind(tmp_path / how)
    server.start(("--workers", "1", "--shutdown-grace", "0"))
    with server.connect(autocommit=True) as other:
        for statement in KEYED:
            other.execute(statement)
        other.execute("INSERT INTO keyed SELECT -g, md5(g::text), 0 FROM generate_series(1, 100) g")
        session = server.connect(autocommit=True)
        session.execute("BEGIN")
        session.execute("UPDATE keyed SET n = 1, t = t || 'x'")
        session.execute("CREATE TABLE made AS SELECT 1")
        session.execute("SAVEPOINT s")
        times_out(session, FILL, seconds=5.0 if how == "stop" else 3.0)
        if what == "transaction":
            session.execute("ROLLBACK")
        assert undoing(other) == 1
        other.execute("INSERT INTO keyed VALUES (-1000, 'meanwhile', 0)")
        if how == "kill":
            other.execute("CHECKPOINT")
            assert undoing(other) == 1
    if how == "kill":
        server.kill()
    else:
        assert server.stop() == 0
        assert "writes of transactions that were rolled back are left as they are" in server.output_text()
    server.start(("--workers", "1"))
    with server.connect(autocommit=True) as other:
        asked = "SELECT count(*), sum(n), count(*) FILTER (WHERE t LIKE '%x'), count(*) FILTER (WHERE id > 0) FROM keyed"
        assert other.execute(asked).fetchone() == (101, 0, 0, 0)
        assert other.execute("SELECT to_regclass('made')").fetchone() == (None,)
        other.execute("SET enable_seqscan = off")
        found = "SELECT id FROM keyed WHERE md5(repeat(t, 4000)) = md5(repeat(%s, 4000))"
        assert other.execute(found, ("meanwhile",)).fetchall() == [(-1000,)]
        assert other.execute(found, (hashlib.md5(b"7").hexdigest(),)).fetchall() == [(-7,)]
        other.execute("INSERT INTO keyed SELECT g, md5(g::text), 0 FROM generate_series(1, 200) g")
        assert other.execute(asked).fetchone() == (301, 0, 0, 200)
        assert sorted(other.execute(found, (hashlib.md5(b"7").hexdigest(),)).fetchall()) == [(-7,), (7,)]
    server.stop()


def test_locks_of_its_own_undoing_are_no_others(one_worker):
    """lock_timeout is for what others hold: a session waits for its former transaction without it."""
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        session.execute("CREATE TABLE emptied (id int)")
        session.execute("SET lock_timeout = '50ms'")
        session.execute("BEGIN")
        session.execute("TRUNCATE emptied")
        rows = fill(session)
        session.execute("ROLLBACK")
        assert undoing(other) == 1
        assert session.execute("SELECT count(*) FROM emptied").fetchone() == (0,)
        # EXPLAIN that makes something.
        session.execute("BEGIN")
        session.execute("CREATE TABLE made (id int)")
        session.execute(SOME.format(rows))
        session.execute("ROLLBACK")
        assert undoing(other) == 1
        session.execute("EXPLAIN ANALYZE CREATE TABLE made AS SELECT 1 AS id")
        assert session.execute("SELECT id FROM made").fetchone() == (1,)
        # What comes behind a ROLLBACK within a body, and what its commit does.
        session.execute("CREATE TEMP TABLE own (id int) ON COMMIT DELETE ROWS")
        session.execute(
            f"DO $$ BEGIN INSERT INTO own VALUES (1); {SOME.format(rows)}; ROLLBACK; INSERT INTO own VALUES (2); END $$"
        )
        assert session.execute("SELECT count(*) FROM own").fetchone() == (0,)
        session.execute("DROP TABLE emptied, made")


def test_a_rollback_within_a_message_is_no_part_of_a_circle(one_worker):
    with one_worker.connect(autocommit=True) as session, one_worker.connect(autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(1)")
        session.execute("BEGIN")
        rows = fill(session)
        session.execute(f"INSERT INTO keyed SELECT g, md5(g::text), 0 FROM generate_series({rows + 1}, {3 * rows}) g")
        locks = Running(other, "BEGIN", "LOCK TABLE keyed", "COMMIT", "SELECT pg_advisory_unlock(1)")
        wait_until(lambda: other.info.transaction_status == psycopg.pq.TransactionStatus.ACTIVE, what="the lock is asked for")
        session.execute("ROLLBACK; SELECT pg_advisory_lock(1)")
        assert locks.ended() == [(True,)]
        session.execute("SELECT pg_advisory_unlock(1)")


def test_what_comes_behind_a_rollback_in_a_body_waits(one_worker):
    with (
        one_worker.connect(autocommit=True) as session,
        one_worker.connect(autocommit=True) as other,
        one_worker.connect(autocommit=True) as watch,
    ):
        rows = fill(session)
        session.execute("TRUNCATE keyed")
        other.execute("SELECT pg_advisory_lock(1)")
        body = Running(
            session,
            f"""DO $$ DECLARE told text; BEGIN
                PERFORM pg_advisory_xact_lock(2);
                {SOME.format(rows)};
                ROLLBACK;
                told := pg_advisory_lock(1)::text;
            END $$""",
            "SELECT pg_advisory_unlock(1)",
        )
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 2 AND granted"
        wait_until(lambda: watch.execute(held).fetchone() == (1,), what="the body has its lock")
        wants = Running(other, "SELECT pg_advisory_lock(2)", "SELECT pg_advisory_unlock(1)", "SELECT pg_advisory_unlock(2)")
        assert wants.ended() == [(True,)]
        assert body.ended() == [(True,)]
