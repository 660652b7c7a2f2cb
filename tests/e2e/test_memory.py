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
    """Inserts until the budget is used up; how many rows stand."""
    rows = 0
    while insert(connection, rows, 500) is None:
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
        rows = fill(one)
        # Other sessions read, in order and by key, and what failed has left nothing.
        assert two.execute("SELECT count(*), max(id) FROM m").fetchone() == (rows, rows - 1)
        assert two.execute("SELECT length(pad) FROM m WHERE id = 7").fetchone() == (900,)
        # A transaction whose insert failed can be rolled back, and a savepoint before it saves it.
        with two.transaction(force_rollback=True):
            with pytest.raises(psycopg.errors.OutOfMemory), two.transaction():
                two.execute("INSERT INTO m SELECT g, repeat('y', 2000) FROM generate_series(-9000, -1) g")
            assert two.execute("SELECT count(*) FROM m").fetchone() == (rows,)
        # Deletes work; when the collector has been there, inserts do too.
        assert two.execute("DELETE FROM m WHERE id < %s", (rows // 2,)).rowcount == rows // 2
        wait_until(lambda: insert(one, 0, 500) is None, what="inserting works again")
        for first in range(500, rows // 4 // 500 * 500, 500):
            wait_until(lambda: insert(one, first, 500) is None, what="inserting goes on")
        # At the end again, a truncated table frees all at once.
        first = rows
        while insert(one, first, 500) is None:
            first += 500
        one.execute("TRUNCATE m")
        wait_until(lambda: insert(one, 0, 5000) is None, what="the truncated rows' memory is free")
        one.execute("DROP TABLE m")
    assert private_server.stop() == 0


@pytest.mark.timeout(300)
def test_what_fits_before_a_stop_fits_after_it(private_server):
    start(private_server)
    with private_server.connect(autocommit=True) as one:
        one.execute("CREATE TABLE m (id int PRIMARY KEY, pad text)")
        rows = fill(one)
    private_server.kill()
    start(private_server)
    assert private_server.execute("SELECT count(*), max(id) FROM m") == [(rows, rows - 1)]
    private_server.kill()
    # A budget that the rows do not fit in is refused with what they need, not with a kill.
    private_server.start(arguments=("--memory", "16MB", "--workers", "2"), wait=False)
    assert private_server.process.wait(60) == 1
    assert '"memory"' in private_server.output_text(), private_server.output_text()
    start(private_server)
    assert private_server.execute("SELECT count(*) FROM m") == [(rows,)]
    assert private_server.stop() == 0


@pytest.mark.timeout(300)
def test_nobody_idle_keeps_dropped_rows(private_server):
    """Neither plans of idle sessions nor a snapshot that was taken before."""
    start(private_server)
    with private_server.connect() as old, private_server.connect(autocommit=True) as one:
        one.prepare_threshold = old.prepare_threshold = 0
        one.execute("CREATE TABLE m (id int PRIMARY KEY, pad text)")
        one.execute("CREATE TABLE other (id int)")
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT * FROM other").fetchall()
        for turn in range(4):
            first = 0
            while insert(one, first, 500) is None:
                first += 500
            # The table dropped in the turn before is freed behind the statement's back, too.
            more = first
            wait_until(
                lambda: more > 10_000 or insert(one, more, 500) is None,
                what=f"turn {turn}: the dropped rows' memory is free",
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
