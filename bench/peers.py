#!/usr/bin/env python3
"""Logstead beside PostgreSQL, SQLite and RocksDB: the same work, the same disk, the same durability, in one run.

Two comparisons. `tpcb`: pgbench's TPC-B-like transaction, over the wire for servers, in the process for SQLite. `update`: one row of
a hundred thousand is read and written back by its key, in the process for all. Every commit is on disk when it counts:
synchronous_commit = on, SQLite's WAL with synchronous = FULL, RocksDB's writes with sync, Logstead's default. Repetitions
alternate. Peers that are not there are left out, and named.

What the comparison leaves out: SQLite and RocksDB run from Python here, a few microseconds a statement beside a write of a hundred;
RocksDB's read and write are not one transaction, and each of its clients has rows of its own, so it loses none.

    pip install -r bench/requirements.txt        for RocksDB
    ~/.cache/logstead/venv/bin/python bench/peers.py [--seconds 5] [--repeat 3] [--clients 1,16]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/e2e"))

import document  # noqa: E402
import pgbench  # noqa: E402
from harness import LogsteadServer, PostgresServer  # noqa: E402

try:
    import rocksdict
except ImportError:
    rocksdict = None

UPDATE_ROWS = 100_000
FIELDS_BYTES = 80
# A client that finds SQLite's only writer at work waits for it.
SQLITE_BUSY_S = 60
ACCOUNTS, TELLERS = 100_000, 10

# What a client does once; it returns when the change is on disk.
Step = Callable[[], None]


def drive(make_client: Callable[[int], tuple[Step, Callable[[], None]]], clients: int, seconds: float) -> tuple[float, list[int]]:
    """Runs clients in threads, each doing one step after the other; gives seconds and every step's nanoseconds."""
    begin = threading.Barrier(clients + 1)
    found: list[list[int]] = [[] for _ in range(clients)]
    errors: list[BaseException] = []

    def client(number: int) -> None:
        try:
            step, close = make_client(number)
            step()
            begin.wait()
            end = time.monotonic_ns() + int(seconds * 1e9)
            while (began := time.monotonic_ns()) < end:
                step()
                found[number].append(time.monotonic_ns() - began)
            close()
        except BaseException as error:
            errors.append(error)
            begin.abort()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        begin.wait()
    except threading.BrokenBarrierError:
        pass
    began = time.monotonic()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return time.monotonic() - began, [latency for each in found for latency in each]


def sqlite_open(file: Path) -> sqlite3.Connection:
    """A connection whose commits are durable."""
    connection = sqlite3.connect(file, timeout=SQLITE_BUSY_S, isolation_level=None, check_same_thread=False)
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise SystemExit(f"SQLite has no WAL here: journal mode {mode}")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def sqlite_tpcb(file: Path, scale: int) -> Callable[[int], tuple[Step, Callable[[], None]]]:
    """pgbench's tables and its TPC-B-like transaction."""
    db = sqlite_open(file)
    db.executescript(
        """CREATE TABLE branches (bid INTEGER PRIMARY KEY, bbalance INTEGER, filler TEXT);
        CREATE TABLE tellers (tid INTEGER PRIMARY KEY, bid INTEGER, tbalance INTEGER, filler TEXT);
        CREATE TABLE accounts (aid INTEGER PRIMARY KEY, bid INTEGER, abalance INTEGER, filler TEXT);
        CREATE TABLE history (tid INTEGER, bid INTEGER, aid INTEGER, delta INTEGER, mtime TEXT, filler TEXT);"""
    )
    filler = " " * 84
    db.execute("BEGIN")
    db.executemany("INSERT INTO branches VALUES (?, 0, '')", ((n,) for n in range(scale)))
    db.executemany("INSERT INTO tellers VALUES (?, ?, 0, '')", ((n, n // TELLERS) for n in range(scale * TELLERS)))
    db.executemany("INSERT INTO accounts VALUES (?, ?, 0, ?)", ((n, n // ACCOUNTS, filler) for n in range(scale * ACCOUNTS)))
    db.execute("COMMIT")
    db.close()

    def client(number: int) -> tuple[Step, Callable[[], None]]:
        own, chance = sqlite_open(file), random.Random(number)

        def step() -> None:
            account, teller, branch = chance.randrange(scale * ACCOUNTS), chance.randrange(scale * TELLERS), chance.randrange(scale)
            delta = chance.randint(-5000, 5000)
            own.execute("BEGIN IMMEDIATE")
            own.execute("UPDATE accounts SET abalance = abalance + ? WHERE aid = ?", (delta, account))
            own.execute("SELECT abalance FROM accounts WHERE aid = ?", (account,)).fetchone()
            own.execute("UPDATE tellers SET tbalance = tbalance + ? WHERE tid = ?", (delta, teller))
            own.execute("UPDATE branches SET bbalance = bbalance + ? WHERE bid = ?", (delta, branch))
            own.execute("INSERT INTO history VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP, '')", (teller, branch, account, delta))
            own.execute("COMMIT")

        return step, own.close

    return client


def sqlite_update(file: Path) -> Callable[[int], tuple[Step, Callable[[], None]]]:
    """Rows of ten numbers in a text, one of them changed."""
    db = sqlite_open(file)
    db.execute("CREATE TABLE rows (key INTEGER PRIMARY KEY, " + ", ".join(f"f{n} INTEGER" for n in range(10)) + ")")
    db.execute("BEGIN")
    db.executemany("INSERT INTO rows VALUES (?" + ", 1" * 10 + ")", ((n,) for n in range(UPDATE_ROWS)))
    db.execute("COMMIT")
    db.close()

    def client(number: int) -> tuple[Step, Callable[[], None]]:
        own, chance = sqlite_open(file), random.Random(number)
        statements = [f"UPDATE rows SET f{n} = f{n} + 1 WHERE key = ?" for n in range(10)]

        def step() -> None:
            own.execute("BEGIN IMMEDIATE")
            own.execute(statements[chance.randrange(10)], (chance.randrange(UPDATE_ROWS),))
            own.execute("COMMIT")

        return step, own.close

    return client


def rocks_update(directory: Path, clients: int) -> tuple[Callable[[int], tuple[Step, Callable[[], None]]], Callable[[], None]]:
    """The same rows as 80 bytes under an 8-byte key."""
    db = rocksdict.Rdict(str(directory), rocksdict.Options(raw_mode=True))
    for key in range(UPDATE_ROWS):
        db[key.to_bytes(8, "big")] = bytes(FIELDS_BYTES)
    sync = rocksdict.WriteOptions()
    sync.sync = True

    def client(number: int) -> tuple[Step, Callable[[], None]]:
        chance = random.Random(number)

        def step() -> None:
            key = (chance.randrange(UPDATE_ROWS // clients) * clients + number).to_bytes(8, "big")
            at = chance.randrange(FIELDS_BYTES // 8) * 8
            row = db[key]
            value = int.from_bytes(row[at : at + 8], "big") + 1
            db.put(key, row[:at] + value.to_bytes(8, "big") + row[at + 8 :], write_opt=sync)

        return step, lambda: None

    return client, db.close


def embedded_update(directory: Path, clients: int, seconds: float) -> dict:
    """`logstead bench ycsb`, as many sessions as clients."""
    workers = min(clients, os.cpu_count() or 1)
    result = directory / "result.json"
    subprocess.run(
        [
            LogsteadServer.binary(), "bench", "ycsb", "--read-ratio", "0", "--table-size", str(UPDATE_ROWS),
            "--workers", str(workers), "--in-flight", str(max(clients // workers, 1)), "--seconds", str(seconds),
            "--warmup", "0.2", "--home", str(directory / "log"), "--json", str(result),
        ],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return json.loads(result.read_text())["runs"][0]


def table(runs: list[dict]) -> str:
    """Medians."""
    lines = [f"{'comparison':44} {'clients':>7} {'engine':28} {'per s':>10} {'p50 ms':>9} {'p99 ms':>9}"]
    for section, clients, series in dict.fromkeys((one["section"], one["x"]["value"], one["series"]) for one in runs):
        same = [one for one in runs if (one["section"], one["x"]["value"], one["series"]) == (section, clients, series)]
        totals = [one["transactions"][-1] for one in same]
        rate = statistics.median(one["per_second"] for one in totals)
        p50, p99 = (statistics.median(one["whole_latency_ns"][which] / 1e6 for one in totals) for which in ("p50", "p99"))
        lines.append(f"{section:44} {clients:7.0f} {series:28} {rate:10.0f} {p50:9.3f} {p99:9.3f}")
    return "\n".join(lines)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=5, help="length of one run")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, alternating")
    parser.add_argument("--scale", type=int, default=10, help="scale of TPC-B")
    parser.add_argument("--clients", default="1,16", help="numbers of clients, by commas")
    parser.add_argument("--directory", type=Path, default=REPOSITORY / "bench/results", help="where data and results go")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    if rocksdict is None:
        print("RocksDB is left out: pip install -r bench/requirements.txt", file=sys.stderr)

    runs: list[dict] = []
    tpcb, update = "TPC-B-like transactions", "updates by key, in the process"
    with tempfile.TemporaryDirectory(prefix="peers-", dir=options.directory) as root_name:
        root = Path(root_name)
        root.chmod(0o755)
        servers = [LogsteadServer(root / "logstead"), PostgresServer(root / "postgres", pgbench.POSTGRES_SETTINGS)]
        try:
            for server in servers:
                server.start()
                print(f"{server.name}: loading scale {options.scale}", file=sys.stderr)
                server.run("pgbench", "-i", "-q", "-s", options.scale, timeout_s=1800)
            sqlite = sqlite_tpcb(root / "tpcb.sqlite", options.scale)
            sqlite_rows = sqlite_update(root / "update.sqlite")

            def over_the_wire(server, clients: int) -> dict:
                found = pgbench.run_once(server, "tpcb-like", clients, options.seconds, 2)
                latencies = found["latencies"]
                done = document.run(tpcb, f"{pgbench.NAMES[server.name]}, wire", "pgbench", options.seconds, len(latencies), latencies)
                done["transactions"][0]["per_second"] = found["tps"]
                return done

            def in_process(section: str, series: str, client, clients: int) -> dict:
                seconds, latencies = drive(client, clients, options.seconds)
                return document.run(section, series, "python", seconds, len(latencies), latencies)

            def rocks(directory: Path, clients: int) -> dict:
                client, close = rocks_update(directory, clients)
                try:
                    return in_process(update, "RocksDB", client, clients)
                finally:
                    close()

            for clients in map(int, options.clients.split(",")):
                for repetition in range(options.repeat):
                    own = root / f"run-{clients}-{repetition}"
                    own.mkdir()
                    steps: list[Callable[[], dict]] = [
                        *(lambda server=server: over_the_wire(server, clients) for server in servers),
                        lambda: in_process(tpcb, "SQLite, in the process", sqlite, clients),
                        lambda: embedded_update(own, clients, options.seconds) | {"section": update, "series": "Logstead"},
                        lambda: in_process(update, "SQLite", sqlite_rows, clients),
                        *([lambda: rocks(own / "rocks", clients)] if rocksdict else []),
                    ]
                    for step in steps if repetition % 2 == 0 else reversed(steps):
                        done = step() | {"x": {"name": "clients", "value": float(clients)}, "repetition": repetition}
                        runs.append(done)
                        rate = done["transactions"][-1]["per_second"]
                        print(f"{clients:3} clients, {done['section']}, {done['series']}: {rate:.0f} per s", file=sys.stderr)
            versions = {server.name: server.execute("SELECT version()")[0][0] for server in servers}
            versions["sqlite"] = sqlite3.sqlite_version
        finally:
            for server in servers:
                server.stop(timeout_s=120)
    file = options.directory / f"peers-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.json"
    document.write(file, "peers", runs, versions=versions, configuration={key: str(value) for key, value in vars(options).items()})
    print(document.machine()["description"])
    print(table(runs))
    print(f"raw numbers: {file}")


if __name__ == "__main__":
    main()
