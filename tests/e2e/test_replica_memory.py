"""Replicas with less memory than the database takes: rows leave memory, and come back from the newest checkpoint of the primary
that the replica has adopted.
"""

from __future__ import annotations

import re
import urllib.request

import psycopg
import pytest
from harness import LogsteadServer, wait_until
from test_replica import Judges, ReplicaServer, metrics_port, pair
from transfers import Bank

pytestmark = pytest.mark.logstead_only

METRICS = ("--metrics-listen", "127.0.0.1:0")
ROWS = 30_000
# A row takes some 1.1 kB in memory.
FILLING = 1_000
# Less than half of what the rows take.
SMALL = ("--memory", "20MB")


def count(server: LogsteadServer, name: str) -> int:
    """One of the server's counters."""
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port(server)}/metrics", timeout=10) as response:
        text = response.read().decode()
    return int(float(re.search(rf"^\w*{name}_total(?:{{.*}})? (\S+)$", text, re.M)[1]))


def restarted(replica: ReplicaServer, *arguments: str) -> None:
    """The replica again, with these arguments too."""
    replica.kill()
    replica.arguments += arguments
    replica.start()


@pytest.mark.parametrize("where", ("file", "dev-bucket"))
def test_a_replica_has_less_memory_than_the_database_takes(where, tmp_path):
    """Reads of everything, reads of single rows and a snapshot that is held for long, while rows are changed at the primary."""
    with pair(where, tmp_path, arguments=("--checkpoint-interval", "1s")) as (primary, (replica,)):
        primary.execute(
            "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, filling text)",
            f"INSERT INTO t SELECT g, 0, repeat(chr(97 + g % 26), {FILLING}) FROM generate_series(1, {ROWS}) g",
            "CHECKPOINT",
        )
        restarted(replica, *SMALL, *METRICS)
        replica.follows(primary)
        whole = "SELECT count(*), sum(n), sum(length(filling)), min(id), max(id) FROM t"
        expected = [(ROWS, 0, ROWS * FILLING, 1, ROWS)]
        for _ in range(2):
            assert replica.execute(whole) == expected
        assert count(replica, "rows_evicted") > ROWS / 2
        with replica.connect() as old:
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            assert old.execute("SELECT sum(n) FROM t WHERE id % 100 = 0").fetchall() == [(0,)]
            changed = 0
            for first in range(1, ROWS, 3_000):
                primary.execute(f"UPDATE t SET n = n + 1 WHERE id BETWEEN {first} AND {first + 199}")
                primary.execute(f"DELETE FROM t WHERE id = {first + 2_000}", "CHECKPOINT")
                changed += 1
                replica.follows(primary)
                got = replica.execute(f"SELECT n, filling FROM t WHERE id IN ({first}, {first + 199}, {first + 1_000}, {first + 2_000}) ORDER BY id")
                assert [(n, len(filling)) for n, filling in got] == [(1, FILLING), (1, FILLING), (0, FILLING)]
            assert replica.execute(whole) == primary.execute(whole) == [(ROWS - changed, changed * 200, (ROWS - changed) * FILLING, 1, ROWS)]
            assert old.execute(whole).fetchall() == expected
        assert replica.execute("SELECT state, restarts FROM logstead_replica") == [("following", 0)], replica.output_text()[-3000:]
        assert count(replica, "rows_loaded") > 2 * ROWS


@pytest.mark.parametrize("stream", (False, True), ids=("home", "stream"))
def test_every_answer_is_a_state_of_the_primary_while_rows_come_and_go(tmp_path, seed, stream):
    """Whatever a checkpoint has leaves the replica's memory at once; the primary is killed in the middle."""
    with pair("file", tmp_path, arguments=("--checkpoint-interval", "200ms")) as (primary, (replica,)):
        more = ("--primary-conninfo", f"host={primary.host} port={primary.port} user=postgres") if stream else ()
        restarted(replica, "--evict-always", *METRICS, *more)
        bank = Bank(seed, clients=3, readers=1).open(primary)
        replica.follows(primary)
        with Judges(bank, [replica]) as judges:
            for _ in range(2):
                bank.start(primary)
                goal, evicted = bank.acknowledged() + 60, count(replica, "rows_evicted") + 60

                def there() -> bool:
                    bank.assert_right()
                    assert not judges.wrong, judges.wrong[:10]
                    return bank.acknowledged() >= goal and count(replica, "rows_evicted") >= evicted

                wait_until(there, timeout_s=120, what="transfers")
                pid = primary.process.pid
                primary.restart_after_kill()
                bank.ended(pid)
                wait_until(lambda: bank.acknowledged() > goal, timeout_s=120, what="transfers after the start")
                bank.stop()
            bank.check(primary)
            replica.follows(primary)
            assert judges.answers > 20
        for table in ("account", "ledger", "counter"):
            query = f"SELECT * FROM {table} ORDER BY 1, 2"
            assert replica.execute(query) == primary.execute(query)
        assert count(replica, "rows_evicted") > 100


@pytest.mark.long
def test_a_snapshot_that_keeps_too_much_ends(tmp_path):
    """What an old snapshot sees stays in memory. When there is no room for anything else the replica begins again without it."""
    with pair("file", tmp_path, arguments=("--checkpoint-interval", "1s")) as (primary, (replica,)):
        primary.execute(
            "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, filling text)",
            f"INSERT INTO t SELECT g, 0, repeat('x', {FILLING}) FROM generate_series(1, 20000) g",
            "CHECKPOINT",
        )
        restarted(replica, *SMALL)
        replica.follows(primary)
        with replica.connect() as old:
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            assert old.execute("SELECT sum(n) FROM t").fetchall() == [(0,)]
            for first in range(1, 20_001, 1_000):
                primary.execute(f"UPDATE t SET n = n + 1 WHERE id BETWEEN {first} AND {first + 999}", "CHECKPOINT")
            wait_until(lambda: "begins again" in replica.output_text(), timeout_s=90, what="the replica to begin again")
            with pytest.raises(psycopg.errors.AdminShutdown):
                old.execute("SELECT sum(n) FROM t")
        replica.follows(primary)
        assert replica.execute("SELECT sum(n), (SELECT restarts FROM logstead_replica) FROM t") == [(20_000, 1)]


def test_a_dropped_table_is_too_old_or_whole(tmp_path):
    """Who reads a table that was dropped since gets all its rows, or is told that they are gone."""
    with pair("file", tmp_path, arguments=("--checkpoint-interval", "200ms")) as (primary, (replica,)):
        restarted(replica, "--evict-always", *METRICS)
        primary.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 5000)", "CHECKPOINT")
        replica.follows(primary)
        with replica.connect() as old:
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            assert old.execute("SELECT count(*) FROM t").fetchall() == [(5000,)]
            wait_until(lambda: count(replica, "rows_evicted") >= 5000, what="an eviction")
            primary.execute("DROP TABLE t", "CREATE TABLE u (id int)", "CHECKPOINT", "INSERT INTO u VALUES (1)", "CHECKPOINT")
            replica.follows(primary)
            try:
                assert old.execute("SELECT count(*) FROM t").fetchall() == [(5000,)]
            except psycopg.errors.SnapshotTooOld:
                pass
        # It follows on, and others have noticed nothing.
        primary.execute("INSERT INTO u VALUES (2)")
        replica.follows(primary)
        assert replica.execute("SELECT count(*), (SELECT restarts FROM logstead_replica) FROM u") == [(2, 0)]
