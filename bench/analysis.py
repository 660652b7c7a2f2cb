#!/usr/bin/env python3
"""Long statements, Logstead and (where it says so) PostgreSQL 15 side by side.

    tpch     the 22 queries like TPC-H's (bench/tpch.py), one client, beside PostgreSQL: the median time of each, and the geometric mean of the quotients
    beside   transactions (TPC-B-like, or with --script tpcc those of bench/tpcc.py) alone, and while other clients run some of those queries in a loop:
             throughput, latencies, and queries done
    idle     memory of the server per connection that has done a little and waits for its client, at 1,000 and 10,000 connections, beside PostgreSQL
    point    planning a select by key: microseconds of the server per statement that is planned anew, as EXPLAIN counts them and as clients see them;
             planning a join of ten catalog tables

    ./test e2e --collect-only        once, to set up the Python environment
    ~/.cache/logstead/venv/bin/python bench/analysis.py tpch --scale 0.05
"""

from __future__ import annotations

import argparse
import json
import math
import re
import resource
import socket
import statistics
import struct
import sys
import threading
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/e2e"))

import document  # noqa: E402
import pgbench  # noqa: E402
import psycopg  # noqa: E402
import tpcc  # noqa: E402
import tpch  # noqa: E402
from harness import LogsteadServer, PostgresServer, Server  # noqa: E402

MIB = 1 << 20
# How much memory sorts and hash tables of either server may take.
WORK_MEM = "64MB"
# One text is sent to COPY in pieces of about so many bytes.
PIECE_BYTES = 1 << 18
# As tools ask for everything about all tables at once.
CATALOG_JOIN = """
SELECT n.nspname, c.relname, a.attname, t.typname, pg_get_expr(d.adbin, d.adrelid), i.relname, am.amname, con.conname, r.rolname FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum LEFT JOIN pg_index x ON x.indrelid = c.oid
LEFT JOIN pg_class i ON i.oid = x.indexrelid LEFT JOIN pg_am am ON am.oid = i.relam
LEFT JOIN pg_constraint con ON con.conrelid = c.oid AND con.conindid = i.oid LEFT JOIN pg_roles r ON r.oid = c.relowner
WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2, a.attnum
"""


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def servers(options, root: Path, more: dict[str, str] | None = None) -> list[Server]:
    """Those that were asked for, started."""
    made: list[Server] = []
    for name in options.servers.split(","):
        if name == "logstead":
            server: Server = LogsteadServer(root / name)
            server.start(options.arguments)
        else:
            # JIT costs more than it saves in statements of some milliseconds, and Logstead runs a statement on one core.
            settings = {**pgbench.POSTGRES_SETTINGS, "work_mem": WORK_MEM, "jit": "off", **(more or {})}
            server = PostgresServer(root / name, settings)
            server.start()
        made.append(server)
    return made


def load(made: list[Server], scale: float) -> None:
    """The tables, in all servers."""
    lines: dict[str, list[str]] = {table: [] for table in tpch.TABLES}
    for table, line in tpch.rows(scale):
        lines[table].append(line)
    for server in made:
        began = time.monotonic()
        with server.connect(autocommit=True) as connection:
            for table, columns in tpch.TABLES.items():
                connection.execute(f"CREATE TABLE {table} ({columns})")
                with connection.cursor().copy(f"COPY {table} FROM STDIN") as into:
                    piece: list[str] = []
                    held = 0
                    for line in lines[table]:
                        piece.append(line)
                        held += len(line)
                        if held >= PIECE_BYTES:
                            into.write("".join(piece))
                            piece, held = [], 0
                    into.write("".join(piece))
            for index in tpch.INDEXES:
                connection.execute(index)
            connection.execute("VACUUM ANALYZE" if server.name == "postgres" else "ANALYZE")
            connection.execute("CHECKPOINT")
        say(f"{server.name}: scale {scale} loaded in {time.monotonic() - began:.1f} s")


def prepared(server: Server) -> psycopg.Connection:
    """A connection for long statements."""
    connection = server.connect(autocommit=True)
    connection.execute(f"SET work_mem = '{WORK_MEM}'")
    if server.name == "postgres":
        connection.execute("SET max_parallel_workers_per_gather = 0")
    return connection


def same(ours: list, theirs: list) -> bool:
    """Do two servers say the same? Floats and the last digits of quotients aside, exactly."""
    if len(ours) != len(theirs):
        return False
    return all(all(str(a).rstrip() == str(b).rstrip() or close(a, b) for a, b in zip(x, y, strict=True)) for x, y in zip(ours, theirs, strict=True))


def close(a, b) -> bool:
    """The same number."""
    try:
        return math.isclose(float(a), float(b), rel_tol=1e-9)
    except (TypeError, ValueError):
        return False


def run_tpch(options, root: Path) -> list[dict]:
    """Each query in turn, the servers one after the other."""
    made = servers(options, root)
    found: list[dict] = []
    connections: dict[str, psycopg.Connection] = {}
    try:
        load(made, options.scale)
        connections = {server.name: prepared(server) for server in made}
        for number in options.queries or tpch.QUERIES:
            text = tpch.query(number, options.scale)
            one: dict = {"query": number}
            answers = {}
            for repetition in range(options.repeat + 1):
                for server in made if repetition % 2 == 0 else reversed(made):
                    began = time.monotonic()
                    answers[server.name] = connections[server.name].execute(text).fetchall()
                    if repetition:
                        one.setdefault(server.name, []).append(round((time.monotonic() - began) * 1000, 2))
            if len(made) == 2:
                one["same answer"] = same(*answers.values())
                one["quotient"] = round(statistics.median(one["logstead"]) / statistics.median(one["postgres"]), 3)
            found.append(one)
            medians = " ".join(f"{server.name} {statistics.median(one[server.name]):8.1f} ms" for server in made)
            print(f"Q{number:<2} {medians} " + (f"{one['quotient']:6.2f}" + ("" if one["same answer"] else " ANSWERS DIFFER") if len(made) == 2 else ""), flush=True)
    finally:
        # PostgreSQL waits for its clients.
        for connection in connections.values():
            connection.close()
        for server in made:
            server.stop(timeout_s=120)
    if len(made) == 2:
        mean = math.exp(statistics.fmean(math.log(one["quotient"]) for one in found))
        slower = [one["query"] for one in found if one["quotient"] > 1]
        print(f"geometric mean of Logstead's time over PostgreSQL's: {mean:.2f}; slower in {slower}")
        found.append({"geometric mean": mean})
    return found


class Analysts:
    """Clients that run queries in a loop, each beginning with another one."""

    def __init__(self, server: Server, clients: int, numbers: list[int], scale: float):
        self.done = 0
        self.failed: list[str] = []
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.connections = [prepared(server) for _ in range(clients)]
        texts = [tpch.query(number, scale) for number in numbers]
        self.threads = [
            threading.Thread(target=self.loop, args=(connection, texts[at % len(texts) :] + texts[: at % len(texts)]))
            for at, connection in enumerate(self.connections)
        ]
        for thread in self.threads:
            thread.start()

    def loop(self, connection: psycopg.Connection, texts: list[str]) -> None:
        """Until told otherwise."""
        while not self.stopping.is_set():
            for text in texts:
                try:
                    connection.execute(text).fetchall()
                except psycopg.errors.QueryCanceled:
                    return
                except psycopg.Error as error:
                    self.failed.append(str(error))
                    return
                with self.lock:
                    self.done += 1
                if self.stopping.is_set():
                    return

    def stop(self) -> int:
        """Ends them; queries done so far."""
        done = self.done
        self.stopping.set()
        while any(thread.is_alive() for thread in self.threads):
            for connection in self.connections:
                connection.cancel()
            time.sleep(0.05)
        for connection in self.connections:
            connection.close()
        if self.failed:
            raise SystemExit(f"a query failed: {self.failed[0]}")
        return done


def beside(options, root: Path) -> list[dict]:
    """Alternating."""
    made = servers(options, root)
    found: list[dict] = []
    numbers = options.queries or [1, 3, 6, 9, 13, 18]
    try:
        load(made, options.scale)
        script, env = options.script, {}
        if options.script == "tpcc":
            script, env = tpcc.scripts(root, options.bench_scale), tpcc.ENVIRONMENT
        for server in made:
            if options.script == "tpcc":
                tpcc.load(server, options.bench_scale)
            else:
                server.run("pgbench", "-i", "-q", "-s", options.bench_scale, timeout_s=3600)
            server.execute("CHECKPOINT")
            pgbench.run_once(server, script, options.clients, 3, 2, env)
        for repetition in range(options.repeat):
            for server in made:
                for analysts in (0, options.analysts) if repetition % 2 == 0 else (options.analysts, 0):
                    group = Analysts(server, analysts, numbers, options.scale)
                    began = time.monotonic()
                    done = pgbench.run_once(server, script, options.clients, options.seconds, 2, env)
                    queries = group.stop()
                    spread = document.latency(done["latencies"])
                    found.append(
                        {
                            "server": server.name, "analysts": analysts, "tps": round(done["tps"]), "queries per s": round(queries / (time.monotonic() - began), 2),
                            **{f"{which} ms": round(spread[which] / 1e6, 2) for which in ("p50", "p99", "max")},
                        }
                    )  # fmt: skip
                    say(json.dumps(found[-1]))
        if options.script == "tpcc":
            for server in made:
                tpcc.check(server)
    finally:
        for server in made:
            server.stop(timeout_s=120)
    for server in made:
        tps = {
            analysts: statistics.median(one["tps"] for one in found if (one["server"], one["analysts"]) == (server.name, analysts))
            for analysts in (0, options.analysts)
        }
        queries = statistics.median(one["queries per s"] for one in found if (one["server"], one["analysts"]) == (server.name, options.analysts))
        kept = tps[options.analysts] / tps[0] * 100
        print(f"{server.name:9} {tps[0]:8.0f} tps alone, {tps[options.analysts]:8.0f} beside {options.analysts} analysts: {kept:5.1f} % kept, {queries} queries per s")
    return found


def memory(server: Server) -> int:
    """Bytes of memory that the server's processes take: proportional set sizes."""
    pids = [server.process.pid]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == server.process.pid:
                    pids.append(int(entry.name))
            except OSError:  # It has ended.
                pass
    total = 0
    for pid in pids:
        try:
            total += sum(int(kib) * 1024 for kib in re.findall(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE))
        except OSError:
            pass
    return total


def idle_client(server: Server, work: list[bytes]) -> socket.socket:
    """A connection without a library, which would take more memory than what is measured."""
    stream = socket.create_connection((server.host, server.port), 60)
    body = struct.pack("!i", 196608) + b"user\0postgres\0database\0postgres\0\0"
    stream.sendall(struct.pack("!i", len(body) + 4) + body)
    until_ready(stream)
    for message in work:
        stream.sendall(message)
        until_ready(stream)
    return stream


def until_ready(stream: socket.socket) -> None:
    """Reads to the end of ReadyForQuery, which is the last thing a server says."""
    answer = b""
    while not (len(answer) >= 6 and answer[-6:-1] == b"Z\0\0\0\x05"):
        piece = stream.recv(65536)
        if not piece or (answer or piece)[:1] == b"E":
            raise SystemExit(f"a connection was refused: {(answer + piece)!r}")
        answer += piece


def message(kind: bytes, body: bytes) -> bytes:
    """A message of the protocol."""
    return kind + struct.pack("!i", len(body) + 4) + body


def idle(options, root: Path) -> list[dict]:
    """More and more connections; each runs a prepared select and an update as drivers send them, then does nothing."""
    wanted = [int(count) for count in options.connections.split(",")]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    options.arguments = [*options.arguments, "--max-connections", str(max(wanted) + 50)]
    made = servers(options, root, {"max_connections": str(max(wanted) + 50)})
    found: list[dict] = []
    parse = message(b"P", b"s\0SELECT v FROM kept WHERE id = $1\0\0\0")
    bind = message(b"B", b"\0s\0\0\0\0\x01\0\0\0\x011\0\0") + message(b"E", b"\0\0\0\0\0")
    work = [parse + bind + message(b"S", b""), message(b"Q", b"UPDATE kept SET v = v WHERE id = 2\0")]
    try:
        for server in made:
            server.execute("CREATE TABLE kept (id int PRIMARY KEY, v text)", "INSERT INTO kept SELECT g, repeat('x', 100) FROM generate_series(1, 1000) g")
            streams = [idle_client(server, work) for _ in range(20)]
            time.sleep(1)
            before = memory(server)
            for count in wanted:
                if server.name == "postgres" and count > options.postgres_connections:
                    continue
                streams += [idle_client(server, work) for _ in range(len(streams), count + 20)]
                time.sleep(3)
                each = (memory(server) - before) / count
                found.append({"server": server.name, "connections": count, "KiB each": round(each / 1024, 1), "MiB in all": round(memory(server) / MIB)})
                print(found[-1], flush=True)
            # They are still answered.
            streams[-1].sendall(work[1])
            until_ready(streams[-1])
            for stream in streams:
                stream.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for server in made:
            server.stop(timeout_s=120)
    return found


def planning_us(connection: psycopg.Connection, query: str) -> float:
    """Microseconds that the server says planning took."""
    told = connection.execute(f"EXPLAIN (SUMMARY) {query}").fetchall()
    return next(float(line.partition(": ")[2].split()[0]) * 1000 for (line,) in told if line.startswith("Planning Time"))


def point(options, root: Path) -> list[dict]:
    """Each statement has another text, so that nothing is found in a cache of plans."""
    made = servers(options, root)
    found: list[dict] = []
    count = 20_000
    try:
        for server in made:
            columns = ", ".join(f"c{n} int" for n in range(8))
            server.execute(f"CREATE TABLE points (id int PRIMARY KEY, {columns})", "INSERT INTO points SELECT g FROM generate_series(1, 1000) g", "ANALYZE points")
            with server.connect(autocommit=True) as connection:
                times = [planning_us(connection, f"SELECT c{n % 8}, id AS a{n} FROM points WHERE id = {n}") for n in range(500)]
                joins = [planning_us(connection, CATALOG_JOIN) for _ in range(100)]
                one = {
                    "server": server.name, "planning us": round(statistics.median(times[100:]), 1), "catalog join us": round(statistics.median(joins[20:]), 1),
                }  # fmt: skip
            with server.connect(autocommit=True, prepare_threshold=None) as connection:
                for kind in ("kept", "planned"):
                    took = []
                    # Every name is another statement.
                    for n in range(count):
                        text = f"SELECT c1 AS a{n if kind == 'planned' else 0} FROM points WHERE id = 7"
                        began = time.perf_counter_ns()
                        connection.execute(text)
                        took.append(time.perf_counter_ns() - began)
                    one[f"{kind} us"] = round(statistics.median(took) / 1000, 1)
            one["parsed and planned us"] = round(one["planned us"] - one["kept us"], 1)
            found.append(one)
            print(one, flush=True)
    finally:
        for server in made:
            server.stop(timeout_s=120)
    return found


PARTS = {"tpch": run_tpch, "beside": beside, "idle": idle, "point": point}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--scale", type=float, default=0.05, help="tpch, beside: scale of the data")
    parser.add_argument("--queries", type=lambda text: [int(part) for part in text.split(",")], help="tpch, beside: which, by commas")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions")
    parser.add_argument("--seconds", type=int, default=10, help="beside: length of one run")
    parser.add_argument("--clients", type=int, default=16, help="beside: clients that run transactions")
    parser.add_argument("--analysts", type=int, default=2, help="beside: clients that run queries")
    parser.add_argument("--bench-scale", type=int, default=10, help="beside: pgbench's scale factor, or warehouses")
    parser.add_argument("--script", default="tpcb-like", help="beside: one of pgbench's, or tpcc")
    parser.add_argument("--connections", default="1000,10000", help="idle: how many, by commas")
    parser.add_argument("--postgres-connections", type=int, default=1000, help="idle: PostgreSQL is not asked for more")
    parser.add_argument("--servers", default="logstead,postgres", help="logstead, postgres or both")
    parser.add_argument("--arguments", type=str.split, default=[], help="more arguments of Logstead")
    parser.add_argument("--directory", type=Path, default=REPOSITORY / "bench/results", help="where data and results go")
    document.measure("analysis", PARTS, parser.parse_args())


if __name__ == "__main__":
    main()
