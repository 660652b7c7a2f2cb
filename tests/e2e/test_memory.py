"""The memory budget: at its end statements that need more get 53200, the server goes on, and there is a way back."""

from __future__ import annotations

import psycopg
import pytest
from harness import wait_until

pytestmark = pytest.mark.logstead_only

BUDGET_MB = 48
PAD = "x" * 900


def start(server, *arguments):
    server.start(arguments=("--memory", f"{BUDGET_MB}MB", "--workers", "2", *arguments))


def insert(connection, first: int, count: int) -> str | None:
    """Inserts rows in one statement; the SQLSTATE if it failed."""
    try:
        connection.execute(
            "INSERT INTO m SELECT g, %s FROM generate_series(%s::int, %s) g", (PAD, first, first + count - 1)
        )
    except psycopg.Error as error:
        assert not connection.closed, error
        assert error.sqlstate == "53200", error
        assert f"{BUDGET_MB} MB" in error.diag.message_detail, error
        return error.sqlstate
    return None


def fill(connection) -> int:
    """Inserts in one transaction, of which nothing can leave memory, until the budget is used up; how many rows it had by then."""
    rows = 0
    connection.execute("BEGIN")
    while insert(connection, 100_000 + rows, 500) is None:
        rows += 500
        assert rows < BUDGET_MB << 10, "the budget was never used up"
    assert rows > 10_000
    return rows


@pytest.mark.timeout(300)
def test_the_way_back_from_the_end_of_the_budget(private_server):
    start(private_server)
    with private_server.connect(autocommit=True) as one, private_server.connect(autocommit=True) as two:
        assert one.execute("SHOW memory").fetchone() == (f"{BUDGET_MB}MB",)
        one.execute("CREATE TABLE m (id int PRIMARY KEY, pad text)")
        for first in range(0, 5000, 500):
            assert insert(one, first, 500) is None
        fill(one)
        # Other sessions read, in order and by key, and what failed has left nothing.
        assert two.execute("SELECT count(*), max(id) FROM m").fetchone() == (5000, 4999)
        assert two.execute("SELECT length(pad) FROM m WHERE id = 7").fetchone() == (900,)
        # Deletes work, and so does everything once the transaction is given up.
        assert two.execute("DELETE FROM m WHERE id >= 4000").rowcount == 1000
        one.execute("ROLLBACK")
        wait_until(lambda: insert(one, 4000, 500) is None, what="inserting works again")
        for first in range(4500, 10_000, 500):
            wait_until(lambda: insert(one, first, 500) is None, what="inserting goes on")
        assert two.execute("SELECT count(*), max(id) FROM m").fetchone() == (10_000, 9_999)
        one.execute("TRUNCATE m")
        wait_until(lambda: insert(one, 0, 5000) is None, what="the truncated rows' memory is free")
        one.execute("DROP TABLE m")
    assert private_server.stop() == 0


@pytest.mark.timeout(120)
def test_a_load_that_does_not_fit_fails_and_leaves_nothing(private_server):
    """In one statement, again over what the first has left, which has to come in; it says what to do, and others are served meanwhile."""
    start(private_server)
    load = "INSERT INTO m SELECT g, %s FROM generate_series(1, 200000) g"
    with private_server.connect(autocommit=True) as one, private_server.connect(autocommit=True) as two:
        one.execute("CREATE TABLE m (id int PRIMARY KEY, pad text)")
        for _ in range(2):
            with pytest.raises(psycopg.errors.OutOfMemory) as refused:
                one.execute(load, (PAD,))
            assert "split a large load" in refused.value.diag.message_hint
            assert two.execute("SELECT count(*) FROM m").fetchone() == (0,)
        # Split, as much is loaded.
        for first in range(0, 60_000, 2000):
            wait_until(lambda: insert(one, first, 2000) is None, what="parts of it fit")
        assert two.execute("SELECT count(*), max(id) FROM m").fetchone() == (60_000, 59_999)
        # Behind a savepoint that part alone is undone.
        one.execute("BEGIN")
        one.execute("DELETE FROM m WHERE id = 1")
        one.execute("SAVEPOINT s")
        with pytest.raises(psycopg.errors.OutOfMemory):
            one.execute(load.replace("(1, 200000)", "(1000001, 1200000)"), (PAD,))
        one.execute("ROLLBACK TO s")
        one.execute("COMMIT")
        assert two.execute("SELECT count(*) FROM m WHERE length(pad) = 900").fetchone() == (59_999,)
    assert private_server.stop() == 0


@pytest.mark.timeout(300)
def test_rows_beyond_the_budget_are_served_by_any_budget(private_server):
    """Statement by statement nothing is refused, and what one budget held another one serves."""
    start(private_server)
    rows = BUDGET_MB * 1500
    with private_server.connect(autocommit=True) as one:
        one.execute("CREATE TABLE m (id int PRIMARY KEY, pad text)")
        for first in range(0, rows, 500):
            assert insert(one, first, 500) is None
    private_server.kill()
    start(private_server)
    assert private_server.execute("SELECT count(*), max(id) FROM m") == [(rows, rows - 1)]
    assert private_server.execute("SELECT count(pad) FROM m") == [(rows,)]
    assert private_server.stop() == 0
    private_server.start(arguments=("--memory", "24MB", "--workers", "2"))
    assert private_server.execute("SELECT count(pad), max(id) FROM m") == [(rows, rows - 1)]
    assert private_server.stop() == 0


@pytest.mark.timeout(300)
def test_nobody_idle_keeps_dropped_rows(private_server):
    """Neither plans of idle sessions nor a snapshot that was taken before, which keeps everything newer in memory."""
    start(private_server)
    with private_server.connect() as old, private_server.connect(autocommit=True) as one:
        one.prepare_threshold = old.prepare_threshold = 0
        one.execute("CREATE TABLE m (id int PRIMARY KEY, pad text)")
        one.execute("CREATE TABLE other (id int)")
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT * FROM other").fetchall()
        for turn in range(4):
            # The table dropped in the turn before is freed behind the statement's back, too.
            for first in range(0, 20_000, 500):
                wait_until(
                    lambda: insert(one, first, 500) is None, what=f"turn {turn}: the dropped rows' memory is free"
                )
            assert one.execute("SELECT length(pad) FROM m WHERE id = %s", (7,)).fetchone() == (900,)
            one.execute("UPDATE m SET pad = pad WHERE id < %s", (0,))
            one.execute("DELETE FROM m WHERE id < %s", (500,))
            one.execute("TRUNCATE m")
            wait_until(lambda: insert(one, 0, 10_000) is None, what="the truncated rows' memory is free")
            one.execute("TRUNCATE m")
            wait_until(lambda: insert(one, 0, 10_000) is None, what="the truncated rows' memory is free")
            one.execute("DROP TABLE m; CREATE TABLE m (id int PRIMARY KEY, pad text)", prepare=False)
        old.rollback()
    assert private_server.stop() == 0


@pytest.mark.timeout(300)
def test_statements_share_the_budget_with_rows(private_server):
    """Sorts and hash tables count too, give back what they took, and small statements go on."""
    start(private_server)
    with private_server.connect(autocommit=True) as one, private_server.connect(autocommit=True) as two:
        one.execute("SET work_mem = '1GB'")
        for statement in (
            "SELECT count(p) FROM (SELECT repeat('x', 800) || g AS p FROM generate_series(1, %s) g ORDER BY p OFFSET 0) s",
            "SELECT count(*) FROM (SELECT DISTINCT repeat('x', 800) || g FROM generate_series(1, %s) g) s",
            "SELECT count(*) FROM (SELECT repeat('x', 800) || g FROM generate_series(1, %s) g GROUP BY 1) s",
        ):
            for _ in range(3):
                with pytest.raises(psycopg.errors.OutOfMemory) as refused:
                    one.execute(statement, (100_000,), prepare=False)
                assert f"{BUDGET_MB} MB" in refused.value.diag.message_detail
                assert two.execute("SELECT count(*) FROM generate_series(1, 10) g").fetchone() == (10,)
            assert one.execute(statement, (5_000,)).fetchone() == (5_000,)
    assert private_server.stop() == 0


@pytest.mark.timeout(300)
def test_updates_under_a_long_snapshot_stay_within_the_budget(private_server):
    """Ten times the budget in versions, of which an old snapshot keeps one per row."""
    start(private_server)
    with private_server.connect() as old, private_server.connect(autocommit=True) as one:
        one.execute("CREATE TABLE u (id int PRIMARY KEY, n int, pad text)")
        one.execute("INSERT INTO u SELECT g, 0, %s FROM generate_series(1, 100) g", (PAD,))
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert old.execute("SELECT sum(n) FROM u").fetchone() == (0,)
        for number in range(1, BUDGET_MB * 10 * 10 + 1):
            one.execute("UPDATE u SET n = %s", (number,))
        assert old.execute("SELECT sum(n), count(*) FROM u").fetchone() == (0, 100)
        assert one.execute("SELECT min(n), max(n) FROM u").fetchone() == (number, number)
        old.rollback()
    assert private_server.stop() == 0
