#!/usr/bin/env python3
"""Latency of SELECT 1 from 16 sessions beside each statement that computes for long, and how soon that ends when it is cancelled.

Usage: bench/beside.py HOST PORT [NAME...]     (needs psycopg 3; the statements are those of tests/e2e/test_interrupts.py)

The server should have one worker, so that every session shares it. Prints a line for each statement: SELECT 1 answered meanwhile, p50, p99
and the longest in milliseconds, and the time from pg_cancel_backend to the statement's end. The clients are threads of one process, which
wait for each other: read the figures beside those of another build on the same machine, not as the server's own.
"""

import sys
import threading
import time
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/e2e"))
from test_interrupts import STATEMENTS  # noqa: E402

SESSIONS = 16
BESIDE_S = 3.0
GIVEN_UP_S = 60.0


def connect(host: str, port: int) -> psycopg.Connection:
    """A session without a transaction block."""
    return psycopg.connect(host=host, port=port, user="postgres", dbname="postgres", autocommit=True)


def asks(connection: psycopg.Connection, over: threading.Event, took: list[float]) -> None:
    """SELECT 1, one after the other, each with its time."""
    while not over.is_set():
        began = time.perf_counter()
        connection.execute("SELECT 1")
        took.append(time.perf_counter() - began)


def computes(connection: psycopg.Connection, statement: str, ended: list[float]) -> None:
    """Runs a statement to its end, whatever that is."""
    try:
        connection.execute(statement)
    except psycopg.Error:
        pass
    ended.append(time.perf_counter())


def beside(host: str, port: int, statement: str | None) -> str:
    """A line of figures beside one statement, or beside none."""
    long, canceller = connect(host, port), connect(host, port)
    pid = long.execute("SELECT pg_backend_pid()").fetchone()[0]
    over, took, ended = threading.Event(), [], []
    others = [threading.Thread(target=asks, args=(connect(host, port), over, took), daemon=True) for _ in range(SESSIONS)]
    runs = threading.Thread(target=computes, args=(long, statement or "SELECT 1", ended), daemon=True)
    for thread in (runs, *others):
        thread.start()
    time.sleep(BESIDE_S)
    told = time.perf_counter()
    canceller.execute("SELECT pg_cancel_backend(%s)", (pid,))
    runs.join(GIVEN_UP_S)
    over.set()
    for thread in others:
        thread.join(GIVEN_UP_S)
    took.sort()
    quantile = lambda part: took[min(len(took) - 1, int(len(took) * part))] * 1e3  # noqa: E731
    end = f"{max(0.0, ended[0] - told) * 1e3:9.1f}" if ended else "    never"
    return f"{len(took):8} {quantile(0.5):9.2f} {quantile(0.99):9.2f} {took[-1] * 1e3:9.2f} {end}"


def main() -> None:
    """Makes the table, then a line for each statement."""
    host, port, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:] or list(STATEMENTS)
    with connect(host, port) as connection:
        connection.execute("DROP TABLE IF EXISTS big")
        connection.execute("CREATE TABLE big (id int PRIMARY KEY, a int, t text, n numeric)")
        connection.execute("INSERT INTO big SELECT g, g % 1000, md5(g::text), g FROM generate_series(1, 50000) g")
    print(f"{'beside':14} {'answers':>8} {'p50 ms':>9} {'p99 ms':>9} {'max ms':>9} {'cancel ms':>9}")
    for name in (None, *names):
        print(f"{name or '-':14} {beside(host, port, STATEMENTS.get(name))}", flush=True)


if __name__ == "__main__":
    main()
