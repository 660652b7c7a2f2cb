"""Statements beside a table that is written anew, again and again: they wait, or are planned anew, and none fails."""

from __future__ import annotations

import random
import threading

import psycopg
from harness import TIMEOUT_S

ROWS = 300
REWRITES = 60


def test_statements_beside_a_table_that_is_written_anew(server, seed):
    server.execute(
        "CREATE TABLE rw_p (id int PRIMARY KEY, v int)",
        "CREATE TABLE rw_q (pid int REFERENCES rw_p ON UPDATE CASCADE ON DELETE CASCADE, n int)",
        "CREATE INDEX ON rw_q (pid)",
        f"INSERT INTO rw_p SELECT g, 0 FROM generate_series(1, {ROWS}) g",
        f"INSERT INTO rw_q SELECT g, 0 FROM generate_series(1, {ROWS}) g",
    )
    over = threading.Event()
    failures: list[str] = []
    counts = [0] * 6

    def client(number: int) -> None:
        rng = random.Random(seed + number)
        with server.connect(autocommit=True) as connection:
            while not over.is_set():
                try:
                    connection.execute(f"INSERT INTO rw_q SELECT id, {number} FROM rw_p WHERE id = {rng.randrange(1, ROWS)}")
                    connection.execute(f"DELETE FROM rw_q WHERE pid = {rng.randrange(1, ROWS)} AND n = {number}")
                    counts[number] += 1
                except psycopg.Error as error:
                    failures.append(f"{error.sqlstate}: {error}")

    threads = [threading.Thread(target=client, args=(number,)) for number in range(len(counts))]
    for thread in threads:
        thread.start()
    with server.connect(autocommit=True) as connection:
        for number in range(REWRITES):
            connection.execute(f"ALTER TABLE rw_q ALTER n TYPE {('bigint', 'int')[number % 2]}")
    over.set()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert not failures, failures[:3]
    assert all(counts), counts
    server.execute("DROP TABLE rw_q, rw_p")
