"""Chunks that leave the primary's memory once their log is durable (`evict_to_log`), with much less memory than is written between
two checkpoints: they come back from a replica with `page_service`, or from the log, whoever is stopped or killed.
"""

from __future__ import annotations

import os
import random
import re
import signal
import urllib.request
from contextlib import contextmanager

import psycopg
import pytest
from harness import LogsteadServer, wait_until
from objectserver import go_on
from test_page_service import HOMES, services
from test_replica import metrics_port
from transfers import Bank

pytestmark = pytest.mark.logstead_only

MEMORY_MB = 24
ROWS = 48_000
# A row takes some 500 bytes in memory: all of them do not fit.
FILLING = 400
# Far apart: only what memory asks for, and what is asked for by hand.
ARGUMENTS = ("--memory", f"{MEMORY_MB}MB", "--set", "checkpoint_interval=1h", "--metrics-listen", "127.0.0.1:0")


def counted(server: LogsteadServer) -> dict[str, int]:
    """What has left and come back."""
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port(server)}/metrics", timeout=10) as response:
        text = response.read().decode()
    names = ("chunks_evicted_to_log_total", "chunks_in_log", "chunks_from_page_services_total", "chunks_from_log_total", "log_readings_total")
    return {name: int(float(re.search(rf"^\w*?_{name}(?:{{.*}})? (\S+)$", text, re.M)[1])) for name in names}


class Sheets:
    """A table that is changed all over, again and again, and what is in it."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.round = 0

    def make(self, server: LogsteadServer) -> None:
        server.execute("CREATE TABLE sheet (id int PRIMARY KEY, n int NOT NULL, filling text NOT NULL)")
        for first in range(0, ROWS, 3_000):
            server.execute(
                f"INSERT INTO sheet SELECT g, 0, repeat(chr(97 + g % 26), {FILLING}) FROM generate_series({first}, {first + 2_999}) g"
            )
        server.execute("CHECKPOINT")

    def change(self, server: LogsteadServer) -> None:
        """Every row, in an order of its own: more than memory holds of changes."""
        self.round += 1
        firsts = list(range(0, ROWS, 600))
        self.rng.shuffle(firsts)
        with server.connect(autocommit=True) as connection:
            for first in firsts:
                where = f"WHERE id >= {first} AND id < {first + 600}"
                connection.execute(f"UPDATE sheet SET n = n + 1, filling = reverse(filling) {where}")

    def check(self, server: LogsteadServer) -> None:
        query = "SELECT count(*), sum(n), min(n), max(n), sum(length(filling)) FROM sheet"
        assert server.execute(query) == [(ROWS, ROWS * self.round, self.round, self.round, ROWS * FILLING)]
        key = self.rng.randrange(ROWS)
        assert server.execute(f"SELECT n FROM sheet WHERE id = {key}") == [(self.round,)]


@contextmanager
def small(where: str, tmp_path, seed: int, *arguments: str):
    """A primary with little memory and its replica, a sheets, and transfers."""
    with services(where, tmp_path, *ARGUMENTS, *arguments) as both:
        sheets = Sheets(seed)
        sheets.make(both.primary)
        bank = Bank(seed, clients=2, readers=1).open(both.primary)
        yield both, sheets, bank


def is_ready(both) -> None:
    """The replica is asked for rows, from its first checkpoint on."""
    wait_until(lambda: both.checkpoints()["page_services"] == 1, timeout_s=60, what="the replica's stream")


def stopped_with_something_in_the_log(both, sheets: Sheets) -> None:
    """Stops the replica in the middle, and has the log read for what only that has. The replica may just have written a checkpoint that
    has all of it, and nobody needs the log: then it goes on, and everything is changed again.
    """
    for _ in range(10):
        sheets.change(both.primary)
        before = counted(both.primary)
        os.kill(both.replica.process.pid, signal.SIGSTOP)
        sheets.check(both.primary)
        after = counted(both.primary)
        if after["chunks_from_log_total"] > before["chunks_from_log_total"]:
            return
        os.kill(both.replica.process.pid, signal.SIGCONT)
    raise AssertionError(f"the log was never read: {after}")


@pytest.mark.parametrize("where", HOMES)
def test_what_only_the_log_has_leaves_memory_and_comes_back(where, tmp_path, seed):
    """From the replica; from the log while that is stopped, or gone; and after kill -9 of the primary nothing is
    missing.
    """
    with small(where, tmp_path, seed) as (both, sheets, bank):
        primary, replica = both.primary, both.replica
        is_ready(both)
        bank.start(primary)
        # A checkpoint of the replica may have all just before it is asked for something: then it is changed again.
        for _ in range(20):
            sheets.change(primary)
            sheets.check(primary)
            at_first = counted(primary)
            if at_first["chunks_evicted_to_log_total"] > 100 and at_first["chunks_from_page_services_total"] > 50:
                break
        assert at_first["chunks_evicted_to_log_total"] > 100, at_first
        assert at_first["chunks_from_page_services_total"] > 50, at_first
        go_on(primary, bank, 20)
        # It is stopped in the middle: who misses something waits a moment, then the log is read.
        stopped_with_something_in_the_log(both, sheets)
        go_on(primary, bank, 20)
        os.kill(replica.process.pid, signal.SIGCONT)
        replica.follows(primary)
        sheets.change(primary)
        sheets.check(primary)
        # With none at all a checkpoint has it soon.
        sheets.change(primary)
        replica.kill()
        sheets.check(primary)
        go_on(primary, bank, 20)
        wait_until(lambda: counted(primary)["chunks_in_log"] == 0, timeout_s=120, what="a checkpoint that has what has left")
        replica.start()
        is_ready(both)
        sheets.change(primary)
        pid = primary.process.pid
        primary.kill()
        bank.ended(pid)
        bank.stop()
        primary.start()
        sheets.check(primary)
        bank.check(primary)
        assert replica.stop() == 0
        assert primary.stop() == 0
        both.assert_clean()


def test_nothing_leaves_that_way_where_it_is_off(tmp_path, seed):
    """Then a checkpoint makes room, as without a replica."""
    with small("file", tmp_path, seed, "--set", "evict_to_log=off") as (both, sheets, _):
        is_ready(both)
        sheets.change(both.primary)
        sheets.check(both.primary)
        assert set(counted(both.primary).values()) == {0}
        with pytest.raises(psycopg.Error):
            both.primary.execute("SET evict_to_log = on")
