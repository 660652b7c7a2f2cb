#!/usr/bin/env python3
"""What things cost against their size: each of them at several sizes, and the exponent that fits (1: in proportion, 2: its square, 0: it does not hang on the size).

    rows       a transaction's rows: insert, update, delete, rollback, and what the collector does after the update
    values     one large value: insert, read, update
    sessions   idle sessions: connecting so many, and 1,000 point selects of another one beside them
    locks      rows that one transaction locks; and clients that queue for one row, until the last one had it

The cost is the server's processor time, which says more than elapsed time on a machine that does other things too. Each size is measured `--repeat` times, and the
least counts. The exponent is the slope of a straight line through the logarithms.

    ./test e2e --collect-only        once, to set up the Python environment
    ~/.cache/logstead/venv/bin/python bench/growth.py                 everything
    ~/.cache/logstead/venv/bin/python bench/growth.py rows locks      some of it
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/e2e"))

from harness import LogsteadServer, Server  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
# Statements per measurement of what takes microseconds.
SELECTS = 1000
# How long nothing must happen before a server counts as quiet, and how long that is waited for.
QUIET_S, QUIET_S_MAX = 1.0, 120.0


def spent(server: Server) -> float:
    """Seconds of processor time that the server has used."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def settle(server: Server) -> None:
    """Waits until the server does next to nothing."""
    end = time.monotonic() + QUIET_S_MAX
    while time.monotonic() < end:
        before = spent(server)
        time.sleep(QUIET_S)
        if spent(server) - before <= 0.05 * QUIET_S:
            return


class Costs:
    """What was measured, by what and size."""

    def __init__(self, server: Server):
        self.server = server
        self.least: dict[str, dict[int, float]] = {}

    @contextmanager
    def of(self, what: str, size: int) -> Iterator[None]:
        """Measures what is done inside."""
        before = spent(self.server)
        yield
        seconds = spent(self.server) - before
        sizes = self.least.setdefault(what, {})
        sizes[size] = min(seconds, sizes.get(size, math.inf))


def exponent(sizes: dict[int, float]) -> float | None:
    """The slope of log(cost) over log(size). What took less than two ticks of the clock says nothing."""
    points = [(math.log(size), math.log(seconds)) for size, seconds in sizes.items() if seconds >= 2 / TICKS]
    if len(points) < 2:
        return None
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    over = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / over


def rows(server: Server, costs: Costs, size: int) -> None:
    with server.connect(autocommit=True) as one:
        one.execute("DROP TABLE IF EXISTS r")
        one.execute("CREATE TABLE r (id int PRIMARY KEY, v int, pad text)")
        settle(server)
        insert = "INSERT INTO r SELECT g, g, 'some forty bytes that are stored with it' FROM generate_series(%s::int, %s) g"
        with costs.of("insert", size):
            one.execute(insert, (1, size))
        settle(server)
        with costs.of("update, and the collector behind it", size):
            one.execute("UPDATE r SET v = v + 1")
            settle(server)
        with costs.of("insert, rolled back", size):
            one.execute("BEGIN")
            one.execute(insert, (size + 1, 2 * size))
            one.execute("ROLLBACK")
            settle(server)
        with server.connect() as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT count(*) FROM r")
            one.execute("UPDATE r SET v = v + 1")
            settle(server)
            with costs.of("the collector after a snapshot's end", size):
                reader.rollback()
                settle(server)
        with costs.of("delete, and the collector behind it", size):
            one.execute("DELETE FROM r")
            settle(server)


def values(server: Server, costs: Costs, size: int) -> None:
    with server.connect(autocommit=True) as one:
        one.execute("DROP TABLE IF EXISTS v")
        one.execute("CREATE TABLE v (id int PRIMARY KEY, b bytea)")
        for number in range(3):
            value = os.urandom(size)
            with costs.of("insert", size):
                one.execute("INSERT INTO v VALUES (%s, %b)", (number, value))
            with costs.of("read", size):
                (found,) = one.execute("SELECT b FROM v WHERE id = %s", (number,), binary=True).fetchone()
            assert found == value
            with costs.of("update", size):
                one.execute("UPDATE v SET b = b || '\\x00'::bytea WHERE id = %s", (number,))
            settle(server)


def sessions(server: Server, costs: Costs, size: int) -> None:
    server.execute("DROP TABLE IF EXISTS s", "CREATE TABLE s (id int PRIMARY KEY)", "INSERT INTO s SELECT generate_series(1, 1000)")
    idle = []
    try:
        with costs.of("connecting them", size):
            for _ in range(size):
                idle.append(server.connect(autocommit=True))
        settle(server)
        with server.connect(autocommit=True) as one, costs.of(f"{SELECTS} selects beside them", size):
            for number in range(SELECTS):
                one.execute("SELECT id FROM s WHERE id = %s", (number + 1,))
    finally:
        for connection in idle:
            connection.close()


def locks(server: Server, costs: Costs, size: int) -> None:
    server.execute("DROP TABLE IF EXISTS l", "CREATE TABLE l (id int PRIMARY KEY, v int)", f"INSERT INTO l SELECT g, 0 FROM generate_series(1, {size}) g")
    settle(server)
    with server.connect() as one, costs.of("rows that are locked", size):
        one.execute("SELECT count(*) FROM (SELECT 1 FROM l FOR UPDATE) x")
        one.rollback()


def queue(server: Server, costs: Costs, size: int) -> None:
    server.execute("DROP TABLE IF EXISTS q", "CREATE TABLE q (id int PRIMARY KEY, v int)", "INSERT INTO q VALUES (1, 0)")
    waiting = [server.connect(autocommit=True) for _ in range(size)]
    threads = [threading.Thread(target=one.execute, args=("UPDATE q SET v = v + 1 WHERE id = 1",)) for one in waiting]
    try:
        with server.connect() as first:
            first.execute("SELECT 1 FROM q FOR UPDATE")
            with costs.of("clients that queue for one row", size):
                for thread in threads:
                    thread.start()
                time.sleep(1)
                first.rollback()
                for thread in threads:
                    thread.join()
        assert server.execute("SELECT v FROM q") == [(size,)]
    finally:
        for one in waiting:
            one.close()


# Name: what is measured, and at which sizes.
MEASURED: dict[str, list[tuple[Callable[[Server, Costs, int], None], list[int]]]] = {
    "rows": [(rows, [30_000, 100_000, 300_000])],
    "values": [(values, [1 << 20, 4 << 20, 16 << 20, 64 << 20])],
    "sessions": [(sessions, [100, 400, 1600])],
    "locks": [(locks, [30_000, 100_000, 300_000]), (queue, [50, 200, 800])],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"some of {', '.join(MEASURED)}")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0, help="all sizes times this")
    parser.add_argument("--out", type=Path, help="a file for the figures, as JSON")
    options = parser.parse_args()
    if unknown := set(options.what) - set(MEASURED):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    figures = {}
    with tempfile.TemporaryDirectory() as directory:
        server = LogsteadServer(Path(directory) / "server")
        server.start()
        try:
            for name in options.what or MEASURED:
                costs = Costs(server)
                for measure, sizes in MEASURED[name]:
                    for size in (max(int(size * options.scale), 1) for size in sizes):
                        print(f"{name} {size}", file=sys.stderr, flush=True)
                        for _ in range(options.repeat):
                            measure(server, costs, size)
                figures[name] = costs.least
        finally:
            server.stop()
    print("| cost of | at sizes | seconds of processor time | exponent |\n|---|---|---|---|")
    for name, costs in figures.items():
        for what, least in costs.items():
            fitted = exponent(least)
            told = "too little to tell" if fitted is None else f"{fitted:.2f}"
            print(f"| {name}: {what} | {', '.join(f'{n:,}' for n in least)} | {', '.join(f'{s:.2f}' for s in least.values())} | {told} |")
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
