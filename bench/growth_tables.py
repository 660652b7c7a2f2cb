#!/usr/bin/env python3
"""What a DDL statement costs among few and among many tables: time, processor time of the server, memory and the time of a start, with the exponent of each kind.

The database grows to each size in turn, in batches of 100 CREATE TABLE with a primary key. At each size every kind of statement is run `--repeat` times;
shown is the median of the elapsed time, and the server's processor time per statement, which says more on a busy machine. The exponent is the slope of
log(processor time) over log(tables) from the first size beyond 0 to the last: 0 is no dependence, 1 is a cost in proportion to the tables. At the largest
size the server is stopped and started again, and then everything is dropped.

    ./test e2e --collect-only        once, to set up the Python environment
    ~/.cache/logstead/venv/bin/python bench/growth_tables.py [--sizes 0,4000,13000,50000,150000] [--server logstead]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/e2e"))

import psycopg  # noqa: E402

from harness import LogsteadServer, PostgresServer, Server  # noqa: E402

BATCH = 100
# Each pair makes something and takes it away again: the number of tables stays. {n} is a number that is never used again.
KINDS = {
    "create table": "CREATE TABLE x{n} (id int PRIMARY KEY, v text)",
    "alter add column": "ALTER TABLE x{n} ADD COLUMN w int",
    "create index": "CREATE INDEX ON x{n} (v)",
    "comment": "COMMENT ON TABLE x{n} IS 'text'",
    "grant": "GRANT SELECT ON x{n} TO PUBLIC",
    "foreign key": "ALTER TABLE x{n} ADD FOREIGN KEY (w) REFERENCES x{n}",
    "create view": "CREATE VIEW y{n} AS SELECT id, v FROM x{n}",
    "drop view": "DROP VIEW y{n}",
    "create function": "CREATE FUNCTION f{n}(int) RETURNS int LANGUAGE sql AS 'SELECT $1'",
    "drop function": "DROP FUNCTION f{n}(int)",
    "drop table": "DROP TABLE x{n}",
    "create temporary": "CREATE TEMPORARY TABLE z{n} (id int PRIMARY KEY, v text)",
    "drop temporary": "DROP TABLE z{n}",
}


def processor_s(server: Server) -> float:
    """Processor time that the server's processes have used."""
    total = 0
    group = os.getpgid(server.process.pid)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.getpgid(int(entry.name)) != group:
                continue
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (ProcessLookupError, FileNotFoundError, PermissionError):
            continue
        # Its own and that of children which have ended.
        total += sum(int(fields[at]) for at in (11, 12, 13, 14))
    return total / os.sysconf("SC_CLK_TCK")


def resident_mb(server: Server) -> float:
    """Resident memory of the server's first process."""
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def connect(server: Server) -> psycopg.Connection:
    return psycopg.connect(host=server.host, port=server.port, user="postgres", dbname="postgres", autocommit=True)


def grow(connection: psycopg.Connection, start: int, end: int) -> None:
    for first in range(start, end, BATCH):
        connection.execute("; ".join(f"CREATE TABLE t{n} (id int PRIMARY KEY, v text)" for n in range(first, min(first + BATCH, end))))


def measure(server: Server, connection: psycopg.Connection, repeat: int, number: int) -> dict:
    """Each kind's elapsed time and processor time, in milliseconds."""
    result = {}
    for kind, sql in KINDS.items():
        elapsed = []
        before = processor_s(server)
        for n in range(repeat):
            begun = time.perf_counter()
            connection.execute(sql.format(n=number + n))
            elapsed.append(time.perf_counter() - begun)
        used = processor_s(server) - before
        result[kind] = {"elapsed_ms": statistics.median(elapsed) * 1000, "processor_ms": used / repeat * 1000}
    return result


def exponent(points: list[tuple[int, float]]) -> float | None:
    """Slope of log(cost) over log(size)."""
    points = [(math.log(size), math.log(cost)) for size, cost in points if size > 0 and cost > 0]
    if len(points) < 2:
        return None
    x, y = statistics.mean(p[0] for p in points), statistics.mean(p[1] for p in points)
    spread = sum((a - x) ** 2 for a, _ in points)
    return sum((a - x) * (b - y) for a, b in points) / spread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="0,4000,13000,50000,150000")
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("--server", choices=["logstead", "postgres"], default="logstead")
    parser.add_argument("--json", type=Path, help="writes the figures there, too")
    parser.add_argument("--keep", action="store_true", help="leaves out dropping all tables at the end")
    args = parser.parse_args()
    sizes = [int(size) for size in args.sizes.split(",")]
    with tempfile.TemporaryDirectory(prefix="growth-tables-") as directory:
        server = {"logstead": LogsteadServer, "postgres": PostgresServer}[args.server](Path(directory))
        server.start()
        try:
            figures = run(server, sizes, args.repeat, args.keep)
        finally:
            server.kill()
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")


def run(server: Server, sizes: list[int], repeat: int, keep: bool) -> dict:
    connection = connect(server)
    at, number, by_size = 0, 0, {}
    for size in sizes:
        begun, used = time.perf_counter(), processor_s(server)
        grow(connection, at, size)
        filled, used = time.perf_counter() - begun, processor_s(server) - used
        at = max(at, size)
        by_size[size] = measure(server, connection, repeat, number)
        number += repeat
        print(f"{size} tables: filled in {filled:.1f} s ({used:.1f} s of processor), {resident_mb(server):.0f} MB", flush=True)
    print(f"\n{'ms of processor (elapsed)':26}" + "".join(f"{size:>18}" for size in sizes) + f"{'exponent':>10}")
    exponents = {}
    for kind in KINDS:
        cells = [by_size[size][kind] for size in sizes]
        exponents[kind] = exponent([(size, cell["processor_ms"]) for size, cell in zip(sizes, cells)])
        shown = "-" if exponents[kind] is None else f"{exponents[kind]:.2f}"
        print(f"{kind:26}" + "".join(f"{c['processor_ms']:9.2f} ({c['elapsed_ms']:6.2f})" for c in cells) + f"{shown:>10}")
    memory = resident_mb(server)
    connection.close()
    server.stop(600)
    begun = time.perf_counter()
    if isinstance(server, LogsteadServer):
        server.start(timeout_s=600)
    else:
        server.start()
    connection = connect(server)
    count = connection.execute("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 't%' AND relnamespace = 2200").fetchone()[0]
    started = time.perf_counter() - begun
    assert count == at, (count, at)
    print(f"\nstart with {at} tables, to the first answer: {started:.1f} s; memory before {memory:.0f} MB, after {resident_mb(server):.0f} MB")
    dropped = None
    if not keep:
        begun = time.perf_counter()
        for first in range(0, at, BATCH):
            connection.execute("; ".join(f"DROP TABLE t{n}" for n in range(first, min(first + BATCH, at))))
        dropped = time.perf_counter() - begun
        print(f"all dropped in {dropped:.1f} s")
    connection.close()
    return {"sizes": by_size, "exponents": exponents, "start_s": started, "memory_mb": memory, "dropped_s": dropped}


if __name__ == "__main__":
    main()
