#!/usr/bin/env python3
"""What checkpoints, restarts and too little memory cost, Logstead and (where it says so) PostgreSQL 15 side by side.

    checkpoints   TPC-B-like transactions with `checkpoint_interval` 0 and 2 s, alternating: throughput, latencies, and processor time of the server per
                  transaction, which says more than throughput on a machine that does other things too
    recovery      kill -9, start, first query, full speed, over the log's tail and over the size of the data
    memory        YCSB-like rows of 1,000 bytes, zipfian, read-only and half updates, over data:memory from 0.5 to 10, beside PostgreSQL
    space         bytes on disk per byte of rows while every row is updated over and over
    load          rows per second of COPY, beside PostgreSQL

In `memory` both servers run in a memory control group of the same size, which counts their processes and the system's cache of
their files, so neither borrows what the machine has more of; that needs root. Logstead is given three quarters of it as `memory`,
PostgreSQL a quarter as shared_buffers, as its manual advises.

    ./test e2e --collect-only        once, to set up the Python environment
    ~/.cache/logstead/venv/bin/python bench/storage.py recovery --scales 10,50 --tails 0,256
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/e2e"))

import document  # noqa: E402
import objectstores  # noqa: E402
import pgbench  # noqa: E402
from harness import LogsteadServer, PostgresServer, Server  # noqa: E402

MIB = 1 << 20
CLIENTS = 16
# How long a start may take before it counts as failed.
START_S = 600.0
# A row of YCSB: ten fields of a hundred bytes.
ROW_BYTES = 1000


def size_on_disk(directory: Path) -> int:
    """Bytes that the files below take on disk."""
    return sum(file.stat().st_blocks * 512 for file in directory.rglob("*") if file.is_file())


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def row(server: Server, statement: str) -> dict:
    """The only row of a query, by column."""
    with server.connect(autocommit=True) as connection:
        cursor = connection.execute(statement)
        found = cursor.fetchone()
        return {column.name: str(value) for column, value in zip(cursor.description, found, strict=True)}


def tpcb(server: Server, seconds: int, script: str = "tpcb-like") -> dict:
    """One run of pgbench; transactions per second and the 50th, 99th and 99.9th percentile in ms."""
    found = pgbench.run_once(server, script, CLIENTS, seconds, 2)
    spread = document.latency(found["latencies"])
    return {"tps": found["tps"], **{which: spread[which] / 1e6 for which in ("p50", "p99", "p99.9", "max")}}


def cpu_s(server: Server) -> dict[str, float]:
    """Processor time of the server's threads so far, by their names without numbers."""
    spent: dict[str, float] = {}
    for thread in Path(f"/proc/{server.process.pid}/task").iterdir():
        try:
            head, _, rest = (thread / "stat").read_text().rpartition(")")
        except OSError:  # It has ended.
            continue
        name = head.partition("(")[2].rstrip("0123456789- ")
        ticks = sum(int(field) for field in rest.split()[11:13])
        spent[name] = spent.get(name, 0.0) + ticks / os.sysconf("SC_CLK_TCK")
    return spent


def checkpoints(options, root: Path) -> list[dict]:
    """With and without."""
    server = LogsteadServer(root / "logstead")
    done = []
    server.start()
    # Each start would measure anew which way of writing the log is the quickest, and may come to another answer.
    way = server.execute("SHOW logstead.write_way")[0][0]
    server.run("pgbench", "-i", "-q", "-s", options.scale, timeout_s=3600)
    server.execute("CHECKPOINT")
    for repetition in range(options.repeat):
        for interval in ("0", "2s") if repetition % 2 == 0 else ("2s", "0"):
            server.stop(timeout_s=120)
            server.start(["--checkpoint-interval", interval, "--write-way", way], timeout_s=START_S)
            tpcb(server, 2)
            before = cpu_s(server)
            done.append({"interval": interval, "write way": way, **tpcb(server, options.seconds)})
            spent = {name: spent - before.get(name, 0.0) for name, spent in cpu_s(server).items()}
            done[-1]["cpu us"] = sum(spent.values()) * 1e6 / (done[-1]["tps"] * options.seconds)
            done[-1]["checkpoints' part of a core"] = spent.get("checkpoints", 0.0) / options.seconds
            if interval != "0":
                done[-1]["last checkpoint"] = row(server, "SELECT * FROM logstead_checkpoints")
            say(json.dumps(done[-1]))
    server.stop(timeout_s=120)
    for interval in ("0", "2s"):
        same = [one for one in done if one["interval"] == interval]
        whiches = ("tps", "p50", "p99", "p99.9", "cpu us", "checkpoints' part of a core")
        print(f"interval {interval:3}", {which: round(statistics.median(one[which] for one in same), 3) for which in whiches})
    return done


def speed_after(server: Server, goal: float, limit_s: float) -> tuple[float, list[float]]:
    """Seconds from now until a second's select-only throughput reaches the goal, and the throughput of each second."""
    began = time.monotonic()
    seconds: list[float] = []
    while time.monotonic() - began < limit_s:
        seconds.append(pgbench.run_once(server, "select-only", CLIENTS, 1, 2)["tps"])
        if seconds[-1] >= goal:
            break
    return time.monotonic() - began, seconds


def recovery(options, root: Path) -> list[dict]:
    """Over sizes and tails."""
    if options.store:
        with objectstores.start(options.store, root / "store") as store:
            os.environ.update(store.environment)
            return recoveries(options, root, ["--home", store.url("log"), "--set", "machine_is_never_copied=on"])
    return recoveries(options, root, [])


def recoveries(options, root: Path, home: list[str]) -> list[dict]:
    """In a home."""
    done = []
    for scale in map(int, options.scales.split(",")):
        server = LogsteadServer(root / f"scale-{scale}")
        server.arguments = [f"{argument}-{scale}" if argument.count("/") > 2 else argument for argument in home]
        server.start(options.arguments)
        fill(server, scale)
        server.execute("CHECKPOINT")
        goal = 0.9 * tpcb(server, 3, "select-only")["tps"]
        for tail_mib in map(int, options.tails.split(",")):
            # A tail of 0 stands for what is left with a checkpoint every 2 s under load.
            interval = "0" if tail_mib else "2s"
            server.stop(timeout_s=600)
            server.start([*options.arguments, "--checkpoint-interval", interval], timeout_s=START_S)
            grown, began = 0, log_bytes(server)
            while True:
                tpcb(server, options.seconds)
                grown = (log_bytes(server) - began) / MIB
                if grown >= tail_mib:
                    break
            server.kill()
            before = time.monotonic()
            server.start([*options.arguments, "--checkpoint-interval", "2s"], timeout_s=START_S)
            listening = time.monotonic() - before
            with server.connect(autocommit=True) as connection:
                connection.execute("SELECT abalance FROM pgbench_accounts WHERE aid = %s", (scale * 50_000,)).fetchone()
                first = time.monotonic() - before
            full, by_second = speed_after(server, goal, 60)
            wrong = server.execute(
                "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(bbalance) FROM pgbench_branches)"
                " AND (SELECT sum(delta) FROM pgbench_history) = (SELECT sum(tbalance) FROM pgbench_tellers)"
            )[0][0] is not True
            if wrong:
                raise SystemExit("the balances do not agree after recovery")
            done.append(
                {
                    "scale": scale, "data MiB": round(size_on_disk(server.data) / MIB), "log MiB": round(grown), "listening s": round(listening, 3),
                    "first query s": round(first, 3), "full speed s": round(first + full, 1), "by second": by_second,
                    "recovery": row(server, "SELECT * FROM logstead_recovery"),
                }
            )  # fmt: skip
            say(json.dumps(done[-1]))
        server.stop(timeout_s=600)
    for one in done:
        print({key: value for key, value in one.items() if key not in ("recovery", "by second")})
    return done


def fill(server: Server, scale: int) -> None:
    """pgbench's tables. Many rows come in steps: what a transaction has changed stays in memory until it ends."""
    if scale <= 200:
        server.run("pgbench", "-i", "-q", "-s", scale, timeout_s=7200)
        return
    server.run("pgbench", "-i", "-q", "-I", "dtp", "-s", scale)
    server.execute(
        f"INSERT INTO pgbench_branches (bid, bbalance) SELECT g, 0 FROM generate_series(1, {scale}) g",
        f"INSERT INTO pgbench_tellers (tid, bid, tbalance) SELECT g, (g - 1) / 10 + 1, 0 FROM generate_series(1, {scale * 10}) g",
    )
    for branch in range(scale):
        first = branch * 100_000
        server.execute(
            f"INSERT INTO pgbench_accounts (aid, bid, abalance, filler) SELECT g, {branch + 1}, 0, '' FROM generate_series({first + 1}, {first + 100_000}) g"
        )
        if branch % 100 == 0:
            say(f"{branch} of {scale}")


def log_bytes(server: Server) -> int:
    """Bytes that were written to the log since the start."""
    return int(server.execute("SELECT sum(bytes) FROM logstead_commit")[0][0])


class Group:
    """A memory control group of a given size (cgroup v1 or v2)."""

    def __init__(self, name: str, limit_bytes: int):
        v1, v2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
        self.path = (v1 if v1.is_dir() else v2) / f"logstead-bench-{os.getpid()}-{name}"
        self.path.mkdir()
        limit = self.path / ("memory.limit_in_bytes" if v1.is_dir() else "memory.max")
        limit.write_text(str(limit_bytes))

    def wrapper(self) -> list[str]:
        """Runs a command line within, from its first byte on."""
        members = self.path / "cgroup.procs"
        members.chmod(0o666)
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(members)]

    def remove(self) -> None:
        """When nothing is in it any more."""
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)


def forget(directory: Path) -> None:
    """What the system has cached of the files below is charged to whoever reads them next."""
    for file in directory.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# What a field holds at first: what compresses well, and what does not (hexadecimal digits: to half of it, and no more).
FIELDS = {
    "plain": "repeat(chr(97 + ((g + {n}) % 26)::int), 100)",
    "random": "substr(md5(g * 10 + {n} || 'a') || md5(g * 10 + {n} || 'b') || md5(g * 10 + {n} || 'c') || md5(g * 10 + {n} || 'd'), 1, 100)",
}

READ = "\\set id permute(random_zipfian(1, {rows}, 1.001), {rows})\nSELECT field0 FROM usertable WHERE ycsb_key = :id;\n"
UPDATE = "\\set id permute(random_zipfian(1, {rows}, 1.001), {rows})\nUPDATE usertable SET field1 = repeat(chr(97 + (random() * 25)::int), 100) WHERE ycsb_key = :id;\n"


def memory(options, root: Path) -> list[dict]:
    """Data larger than memory, in steps."""
    done = []
    limit = options.memory_mib * MIB
    for ratio in map(float, options.ratios.split(",")):
        rows = int(limit * ratio / ROW_BYTES)
        for name in ("logstead", "postgres"):
            directory = root / f"{name}-{ratio}"
            if name == "logstead":
                server: Server = LogsteadServer(directory)
                arguments = ["--memory", f"{options.memory_mib * 3 // 4}MB"]
            else:
                settings = {**pgbench.POSTGRES_SETTINGS, "shared_buffers": f"{options.memory_mib // 4}MB"}
                server, arguments = PostgresServer(directory, settings), []
            server.start(arguments)
            fields = ", ".join(f"field{n} text" for n in range(10))
            server.execute(f"CREATE TABLE usertable (ycsb_key bigint PRIMARY KEY, {fields})")
            began = time.monotonic()
            values = ", ".join(FIELDS[options.rows].format(n=n) for n in range(10))
            step = 10_000
            for first in range(1, rows + 1, step):
                server.execute(f"INSERT INTO usertable SELECT g, {values} FROM generate_series({first}, {min(first + step - 1, rows)}) g")
            server.execute("CHECKPOINT")
            loaded = time.monotonic() - began
            server.stop(timeout_s=600)
            group = Group(f"{name}-{ratio}", limit)
            try:
                forget(server.data)
                server.wrapper = group.wrapper()
                server.start(arguments, timeout_s=START_S)
                for mix, weights in (("reads", (1, 0)), ("half updates", (1, 1))):
                    found = ycsb(server, rows, weights, options.seconds)
                    done.append({"server": name, "ratio": ratio, "rows": rows, "mix": mix, "load s": round(loaded, 1), **found})
                    done[-1]["disk MiB"] = round(size_on_disk(server.data) / MIB)
                    say(json.dumps(done[-1]))
                server.stop(timeout_s=600)
            finally:
                server.kill()
                group.remove()
    for one in done:
        print(one)
    return done


def ycsb(server: Server, rows: int, weights: tuple[int, int], seconds: int) -> dict:
    """Reads and updates by key; half of the time warms up."""
    with tempfile.TemporaryDirectory(prefix="ycsb-") as directory:
        files = []
        for text, weight, name in zip((READ, UPDATE), weights, ("read", "update"), strict=True):
            file = Path(directory) / f"{name}.sql"
            file.write_text(text.format(rows=rows))
            files += ["-f", f"{file}@{weight}"] if weight else []
        latencies: list[int] = []
        for part in ("warm", "log"):
            logs = ["-l", "--log-prefix", Path(directory) / "log"] if part == "log" else []
            done = server.run("pgbench", "-n", "-M", "prepared", "-c", CLIENTS, "-j", 2, "-T", seconds, *files, *logs, timeout_s=seconds + 600)
        for file in Path(directory).glob("log.*"):
            latencies += [int(line.split(b" ", 3)[2]) * 1000 for line in file.read_bytes().splitlines()]
        spread = document.latency(latencies)
        tps = float(re.search(r"tps = ([\d.]+)", done.stdout).group(1))
        return {"tps": round(tps), **{which: round(spread[which] / 1e6, 3) for which in ("p50", "p99", "p99.9", "max")}}


def space(options, root: Path) -> list[dict]:
    """While rows are updated at random."""
    server = LogsteadServer(root / "space")
    server.start(["--checkpoint-interval", "2s"])
    server.run("pgbench", "-i", "-q", "-s", options.scale, timeout_s=3600)
    server.execute("CHECKPOINT")
    done = []
    for _ in range(options.repeat + 1):
        objects = row(server, "SELECT total_bytes, live_bytes FROM logstead_checkpoints")
        done.append({"disk MiB": round(size_on_disk(server.data) / MIB), **objects})
        say(json.dumps(done[-1]))
        tpcb(server, options.seconds)
    rows = server.execute("SELECT count(*) FROM pgbench_accounts")[0][0]
    server.stop(timeout_s=120)
    print({"rows": rows, "steps": done})
    return done


def copy(server: Server, data: bytes) -> None:
    """One COPY from a client."""
    with server.connect() as connection, connection.cursor().copy("COPY t FROM STDIN") as into:
        for at in range(0, len(data), MIB):
            into.write(data[at : at + MIB])


def load(options, root: Path) -> list[dict]:
    """COPY of pgbench's accounts by several clients."""
    done = []
    for name, server in (("logstead", LogsteadServer(root / "load")), ("postgres", PostgresServer(root / "load-pg", pgbench.POSTGRES_SETTINGS))):
        server.start()
        for clients in (1, 4):
            rows = options.scale * 100_000
            own = rows // clients
            text = [
                "".join(f"{n}\t{n // 100_000}\t0\t\n" for n in range(first, first + own)).encode() for first in range(0, own * clients, own)
            ]
            rates = []
            for _ in range(options.repeat):
                server.execute("DROP TABLE IF EXISTS t", "CREATE TABLE t (aid int PRIMARY KEY, bid int, abalance int, filler char(84))")
                began = time.monotonic()
                threads = [threading.Thread(target=copy, args=(server, data)) for data in text]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                rates.append(round(own * clients / (time.monotonic() - began)))
                if server.execute("SELECT count(*) FROM t")[0][0] != own * clients:
                    raise SystemExit(f"{name}: rows are missing")
            done.append({"server": name, "clients": clients, "rows per s": statistics.median(rates), "all": rates})
            print(done[-1])
        server.stop(timeout_s=120)
    return done


PARTS = {"checkpoints": checkpoints, "recovery": recovery, "memory": memory, "space": space, "load": load}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--seconds", type=int, default=8, help="length of one run")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions")
    parser.add_argument("--scale", type=int, default=10, help="pgbench's scale factor")
    parser.add_argument("--scales", default="10,50", help="recovery: sizes of the data, as scale factors")
    parser.add_argument("--tails", default="0,256,1024", help="recovery: MiB of log behind the checkpoint; 0: as checkpoints every 2 s leave it")
    parser.add_argument("--memory-mib", type=int, default=512, help="memory: size of the control group")
    parser.add_argument("--rows", choices=FIELDS, default="plain", help="memory: what the rows hold")
    parser.add_argument("--ratios", default="0.5,1,2,5,10", help="memory: data divided by memory")
    parser.add_argument("--store", choices=objectstores.ALL, help="recovery: with the log in this object store, on loopback")
    parser.add_argument("--arguments", type=str.split, default=[], help="recovery: more arguments of the server")
    parser.add_argument("--directory", type=Path, default=REPOSITORY / "bench/results", help="where data and results go")
    document.measure("storage", PARTS, parser.parse_args())


if __name__ == "__main__":
    main()
