"""Memory that is warm after a promotion and after a replacement: what the server before had in memory is brought in first.

The database is larger than memory, and what is read often lies behind what is not: without the list the warm-up would fill memory
with the wrong rows. Counted are rows that were brought in, never times.
"""

from __future__ import annotations

import time

import pytest
from harness import LogsteadServer, wait_until
from test_promotion import is_primary, promote
from test_replace import replace
from test_replica import ReplicaServer, pair
from test_replica_memory import METRICS, count

pytestmark = pytest.mark.logstead_only

# A row takes some 1.1 kB in memory: together more than half as much again as there is.
COLD, HOT, FILLING = 25_000, 3_000, 1_000
SMALL = ("--memory", "20MB", *METRICS, "--set", "autovacuum=off")
ALL_HOT = "SELECT count(*), sum(length(filling)) FROM hot"
BY_KEY = "SELECT sum(length(hot.filling)) FROM generate_series(1, 3000, 100) g JOIN hot ON hot.id = g"


def fill(server: LogsteadServer) -> None:
    for table, rows in (("cold", COLD), ("hot", HOT)):
        server.execute(
            f"CREATE TABLE {table} (id int PRIMARY KEY, filling text)",
            f"INSERT INTO {table} SELECT g, repeat(chr(97 + g % 26), {FILLING}) FROM generate_series(1, {rows}) g",
            f"ANALYZE {table}",
        )
    server.execute("CHECKPOINT")


def warmed(server: LogsteadServer, times: int) -> None:
    """Waits until the server has brought in what there is room for, for so many times in its output."""
    said = "rows are in memory as far as there is room"
    wait_until(lambda: server.output_text().count(said) >= times, timeout_s=120, what="the warm-up")


def read_hot(server: LogsteadServer) -> int:
    """Reads the table that is read often; tells how many rows had to be brought in."""
    # The catalog's rows, for the plan.
    server.execute(f"EXPLAIN {ALL_HOT}", f"EXPLAIN {BY_KEY}")
    before = count(server, "rows_loaded")
    assert server.execute(ALL_HOT) == [(HOT, HOT * FILLING)]
    assert server.execute(BY_KEY) == [(30 * FILLING,)]
    return count(server, "rows_loaded") - before


def read_often(server: LogsteadServer) -> None:
    """Reads that table until all of it stays in memory, and once more after the evictor has come by last."""
    evicted = -1
    while evicted != count(server, "rows_evicted"):
        evicted = count(server, "rows_evicted")
        read_hot(server)
        time.sleep(0.5)
    assert read_hot(server) == 0


def prewarm(server: LogsteadServer) -> tuple:
    columns = "prewarm, chunks_to_prewarm, chunks_prewarmed, chunks_prewarm_skipped"
    return server.execute(f"SELECT {columns} FROM logstead_recovery")[0]


def check(server: LogsteadServer, autoprewarm: str) -> None:
    """What a server shows of it, and has, that has taken another one's place."""
    state, listed, loaded, skipped = prewarm(server)
    prewarmed = count(server, "prewarmed_chunks")
    missing = read_hot(server)
    if autoprewarm == "off":
        assert (state, listed, loaded, skipped, prewarmed) == (None, None, None, None, 0)
        assert missing > HOT / 2, "nothing tells it what was read"
        return
    assert state == "ended" and prewarmed == loaded
    assert HOT / 64 < loaded and loaded + skipped <= listed, (listed, loaded, skipped)
    assert missing == 0
    # It has left room: nothing had to go for it.
    assert count(server, "rows_evicted") == 0


@pytest.mark.parametrize("where", ("file", "dev-bucket"))
@pytest.mark.parametrize("autoprewarm", ("on", "off"))
def test_memory_is_warm_after_a_promotion(where, autoprewarm, tmp_path):
    """The replica's sessions have read one table; the promoted server has it in memory."""
    if (where, autoprewarm) == ("dev-bucket", "off"):
        pytest.skip("the same as with a directory")
    lease = ("--lease-duration", "3s")
    with pair(where, tmp_path, arguments=lease) as (primary, (replica,)):
        fill(primary)
        replica.kill()
        replica.arguments += (*SMALL, *lease, "--set", f"autoprewarm={autoprewarm}")
        replica.start()
        replica.follows(primary)
        warmed(replica, 1)
        read_often(replica)
        assert prewarm_at_replica(replica) is None
        assert primary.stop() == 0
        assert promote(replica).returncode == 0, replica.output_text()
        wait_until(lambda: is_primary(replica), what="the promoted server")
        warmed(replica, 2)
        check(replica, autoprewarm)
        replica.execute("INSERT INTO hot VALUES (0, '')")
        # Nothing is listed for a start.
        replica.kill()
        assert replica.output_text().count("brought in what was in memory before") == (1 if autoprewarm == "on" else 0)


def prewarm_at_replica(replica: ReplicaServer):
    """A replica has nobody's list."""
    rows = replica.execute("SELECT prewarm FROM logstead_recovery")
    return rows[0][0] if rows else None


@pytest.mark.parametrize("autoprewarm", ("on", "off"))
def test_memory_is_warm_after_a_replacement(autoprewarm, tmp_path):
    """The process that takes over has in memory what the other one had there."""
    server = LogsteadServer(tmp_path / "server")
    try:
        server.start()
        fill(server)
        assert server.stop() == 0
        server.arguments += SMALL
        server.start()
        warmed(server, 1)
        read_often(server)
        replace(server, "--set", f"autoprewarm={autoprewarm}")
        warmed(server, 1)
        check(server, autoprewarm)
        assert server.stop() == 0
    finally:
        server.kill()


def test_a_dropped_table_is_passed_over(tmp_path):
    """What was in memory at the replica and is dropped in the log that it reads at last."""
    with pair("file", tmp_path, arguments=("--lease-duration", "3s")) as (primary, (replica,)):
        primary.execute(
            "CREATE TABLE gone AS SELECT g AS id FROM generate_series(1, 2000) g",
            "CREATE TABLE stays AS SELECT g AS id FROM generate_series(1, 2000) g",
            "CHECKPOINT",
        )
        replica.follows(primary)
        assert replica.execute("SELECT count(*) FROM gone", "SELECT count(*) FROM stays") == [(2000,)]
        primary.execute("DROP TABLE gone")
        primary.kill()
        assert promote(replica).returncode == 0, replica.output_text()
        wait_until(lambda: is_primary(replica), what="the promoted server")
        wait_until(lambda: prewarm(replica)[0] == "ended", what="the warm-up")
        assert replica.execute("SELECT count(*) FROM stays") == [(2000,)]
        assert "damaged" not in replica.output_text()
