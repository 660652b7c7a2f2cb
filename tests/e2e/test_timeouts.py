"""Time limits that end a session: its transaction is rolled back, and who waits for its locks goes on."""

import time

import psycopg
import pytest
from harness import TIMEOUT_S, wait_until


@pytest.fixture
def table(server):
    """A table with two rows."""
    with server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE timeouts (id int PRIMARY KEY, n int)")
        connection.execute("INSERT INTO timeouts VALUES (1, 1), (2, 2)")
        yield
        connection.execute("DROP TABLE timeouts")


def is_over(connection) -> str | None:
    """What the server said when it closed the connection, if it has."""
    try:
        connection.execute("SELECT 1")
    except psycopg.Error as error:
        return str(error) if connection.closed else None
    return None


@pytest.mark.parametrize("failed", [False, True], ids=["open", "failed"])
def test_idle_in_transaction_ends_the_session_and_frees_its_locks(server, table, failed):
    idle = server.connect(autocommit=True)
    with server.connect(autocommit=True) as other:
        idle.execute("SET idle_in_transaction_session_timeout = '300ms'")
        idle.execute("BEGIN")
        idle.execute("UPDATE timeouts SET n = 100 WHERE id = 1")
        idle.execute("SELECT * FROM timeouts WHERE id = 2 FOR SHARE")
        if failed:
            # Its locks are free already; the session ends all the same.
            with pytest.raises(psycopg.errors.DivisionByZero):
                idle.execute("SELECT 1 / 0")
        other.execute(f"SET statement_timeout = '{int(TIMEOUT_S)}s'")
        other.execute("UPDATE timeouts SET n = n + 1")
        assert other.execute("SELECT n FROM timeouts ORDER BY id").fetchall() == [(2,), (3,)]
    # Not a statement: the silence would begin anew.
    time.sleep(1.0)
    said = is_over(idle)
    assert said and "terminating connection due to idle-in-transaction timeout" in said


def test_a_client_that_talks_is_not_idle(server, table):
    with server.connect(autocommit=True) as busy:
        busy.execute("SET idle_in_transaction_session_timeout = '3s'")
        busy.execute("SET idle_session_timeout = '3s'")
        busy.execute("BEGIN")
        for _ in range(8):
            time.sleep(0.5)
            busy.execute("UPDATE timeouts SET n = n + 1 WHERE id = 1")
        busy.execute("COMMIT")
        assert busy.execute("SELECT n FROM timeouts WHERE id = 1").fetchone() == (9,)


def test_waiting_for_a_lock_is_not_idle(server, table):
    with server.connect(autocommit=True) as holder, server.connect(autocommit=True) as waiter:
        holder.execute("BEGIN")
        holder.execute("SELECT * FROM timeouts FOR SHARE")
        # The client itself may idle between BEGIN and DELETE, on a busy machine.
        waiter.execute("SET idle_in_transaction_session_timeout = '1s'")
        waiter.execute("SET lock_timeout = '3s'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            with waiter.transaction():
                waiter.execute("DELETE FROM timeouts")
        holder.execute("COMMIT")
        waiter.execute("DELETE FROM timeouts")


def test_idle_session_ends(server):
    idle = server.connect(autocommit=True)
    idle.execute("SET idle_session_timeout = '300ms'")
    pid = idle.info.backend_pid
    time.sleep(1.0)
    said = is_over(idle)
    assert said and "terminating connection due to idle-session timeout" in said
    with server.connect(autocommit=True) as other:
        query = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
        wait_until(lambda: other.execute(query, (pid,)).fetchone() == (0,), what="the session is gone")


def test_sleeping_takes_its_time_and_nobody_elses(server):
    with server.connect(autocommit=True) as sleeper, server.connect(autocommit=True) as other:
        began = time.monotonic()
        sleeper.execute("SELECT pg_sleep(0.4), pg_sleep_for('300 ms')")
        assert time.monotonic() - began >= 0.7
        sleeper.execute("SELECT pg_sleep_until(clock_timestamp() + interval '0.2 s')")
        assert time.monotonic() - began >= 0.9
        began = time.monotonic()
        assert sleeper.execute("SELECT pg_sleep(-1), pg_sleep('NaN'), pg_sleep(NULL)").fetchone() == ("", "", None)
        assert time.monotonic() - began < TIMEOUT_S / 2
        # In whatever statement it is asked for.
        sleeper.execute("CREATE TEMP TABLE slept (a int, b bool DEFAULT (pg_sleep(0.2) IS NULL))")
        sleeper.execute("PREPARE slow (bool) AS SELECT $1")
        for text in (
            "COPY (SELECT pg_sleep(0.2)) TO STDOUT",
            "COPY slept (a) FROM STDIN",
            "EXPLAIN ANALYZE SELECT pg_sleep(0.2)",
            "CREATE TEMP TABLE slept_as AS SELECT pg_sleep(0.2) IS NULL AS a",
            "SELECT pg_sleep(0.2) IS NULL AS a INTO TEMP slept_into",
            "EXECUTE slow (pg_sleep(0.2) IS NULL)",
            "EXPLAIN EXECUTE slow (pg_sleep(0.2) IS NULL)",
        ):
            began = time.monotonic()
            if text.startswith("COPY"):
                with sleeper.cursor().copy(text) as copy:
                    if "FROM" in text:
                        copy.write("1\n")
                    else:
                        list(copy)
            else:
                sleeper.execute(text)
            assert time.monotonic() - began >= 0.2, text
        # What a failed statement has asked for nobody sleeps.
        sleeper.execute("BEGIN; DECLARE later CURSOR FOR SELECT 1; SAVEPOINT s")
        with pytest.raises(psycopg.errors.DivisionByZero):
            sleeper.execute("EXPLAIN ANALYZE SELECT pg_sleep(3600), 1 / (i - 1) FROM generate_series(1, 1) i")
        sleeper.execute("ROLLBACK TO s")
        began = time.monotonic()
        sleeper.execute("FETCH later; COMMIT")
        assert time.monotonic() - began < TIMEOUT_S / 2
        # More sleepers than workers, and everybody else goes on.
        sleepers = [server.connect(autocommit=True) for _ in range(20)]
        for one in sleepers:
            one.pgconn.send_query(b"SELECT pg_sleep(3600)")
        assert other.execute("SELECT 1").fetchone() == (1,)
        for one in sleepers:
            one.cancel()
            assert one.pgconn.get_result().error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"57014"
            one.close()


def test_sleep_ends_with_the_statement_but_not_with_lock_timeout(server):
    with server.connect(autocommit=True) as sleeper:
        sleeper.execute("SET lock_timeout = '50ms'")
        sleeper.execute("SELECT pg_sleep(0.3)")
        sleeper.execute("SET statement_timeout = '300ms'")
        began = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            sleeper.execute("SELECT pg_sleep(3600)")
        assert time.monotonic() - began < TIMEOUT_S / 2
        assert sleeper.execute("SELECT 1").fetchone() == (1,)


def test_copy_from_stdin_has_the_time_of_one_statement(server, table):
    with server.connect(autocommit=True) as copier:
        copier.execute("SET statement_timeout = '600ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            with copier.cursor().copy("COPY timeouts FROM STDIN") as copy:
                # Each wait is shorter than the limit; all together are longer.
                for number in range(10, 20):
                    copy.write(f"{number}\t0\n")
                    time.sleep(0.2)
        copier.execute("SET statement_timeout = 0")
        assert copier.execute("SELECT count(*) FROM timeouts").fetchone() == (2,)


def test_statement_timeout_is_of_the_statement_however_many_functions_it_calls(server, table):
    # Without a limit these take seconds at least, and succeed.
    many = "FROM generate_series(10, 3000000) i"
    with server.connect(autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION timeouts_same(i int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN i; END'"
        )
        connection.execute(
            "CREATE FUNCTION timeouts_fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
        )
        connection.execute(
            "CREATE TRIGGER fired BEFORE INSERT ON timeouts FOR EACH ROW EXECUTE FUNCTION timeouts_fired()"
        )
        connection.execute("SET statement_timeout = '300ms'")
        for statement in (f"SELECT count(timeouts_same(i)) {many}", f"INSERT INTO timeouts SELECT i, i {many}"):
            with pytest.raises(psycopg.errors.QueryCanceled, match="due to statement timeout"):
                connection.execute(statement)
        connection.execute("SET statement_timeout = 0")
        assert connection.execute("SELECT timeouts_same(n) FROM timeouts WHERE id = 1").fetchone() == (1,)
        connection.execute("DROP TRIGGER fired ON timeouts")
        connection.execute("DROP FUNCTION timeouts_same, timeouts_fired")
