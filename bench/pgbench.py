#!/usr/bin/env python3
"""pgbench's TPC-B-like and select-only scripts, Logstead and PostgreSQL 15 side by side.

Both servers keep their data on the same file system with the same durability (a commit is answered when it is on disk), both
are given the same clients. Runs are paired and interleaved: every repetition measures all servers one after the other,
in alternating order, so that a slow minute of the machine hits both. Latencies are of every transaction, from pgbench's log. The table
shows medians over the repetitions; everything goes to a JSON file together with the machine, the configuration and the
commit, which `logstead bench report` draws.

    ./test e2e --collect-only        once, to set up the Python environment
    ~/.cache/logstead/venv/bin/python bench/pgbench.py [--seconds 10] [--repeat 3] [--clients 1,16,64]
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/e2e"))

import document  # noqa: E402
from harness import LogsteadServer, PostgresServer, Server  # noqa: E402

NAMES = {"logstead": "Logstead", "postgres": "PostgreSQL"}
SCRIPTS = {"tpcb": "tpcb-like", "select": "select-only"}
# PostgreSQL as an operator would run it on a small machine; fsync, synchronous_commit and full_page_writes stay on.
POSTGRES_SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "max_connections": "200",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
}


def run_once(server: Server, script: str | list[str], clients: int, seconds: int, threads: int, env: dict | None = None) -> dict:
    """One run of a builtin script, or of those that arguments of pgbench name: transactions per second as pgbench reports them, and the latency of each
    transaction."""
    with tempfile.TemporaryDirectory(prefix="pgbench-log-") as directory:
        done = server.run(
            "pgbench", "-n", "-M", "prepared", *(["-b", script] if isinstance(script, str) else script), "-c", clients, "-j", min(threads, clients), "-T", seconds,
            "-l", "--log-prefix", Path(directory) / "log", timeout_s=seconds + 300, env=env,
        )  # fmt: skip
        # Client, transaction, microseconds, script, and when.
        latencies = [
            int(line.split(b" ", 3)[2]) * 1000
            for file in Path(directory).iterdir()
            for line in file.read_bytes().splitlines()
            if line.split(b" ", 3)[2].isdigit()
        ]
    failed = int(re.search(r"number of failed transactions: (\d+)", done.stdout).group(1))
    if failed:
        raise SystemExit(f"{server.name}: {failed} transactions failed:\n{done.stderr}")
    return {"tps": float(re.search(r"tps = ([\d.]+)", done.stdout).group(1)), "latencies": latencies}


def table(runs: list[dict]) -> str:
    """Medians side by side."""
    heads = ("Logstead tps", "PostgreSQL tps", "ratio", "p50 ms", "p50 ms", "ratio", "p99 ms", "p99 ms", "ratio")
    lines = [f"{'script':12} {'clients':>7} " + " ".join(f"{head:>14}" for head in heads)]
    for section, clients in dict.fromkeys((one["section"], one["x"]["value"]) for one in runs):

        def median(series: str, section=section, clients=clients) -> tuple[float, ...]:
            same = [one for one in runs if (one["section"], one["x"]["value"], one["series"]) == (section, clients, series)]
            found = [one["transactions"][0] for one in same]
            return (
                statistics.median(one["per_second"] for one in found),
                *(statistics.median(one["whole_latency_ns"][which] / 1e6 for one in found) for which in ("p50", "p99")),
            )

        cells = [
            f"{value:14.2f}"
            for ours, theirs in zip(median(NAMES["logstead"]), median(NAMES["postgres"]), strict=True)
            for value in (ours, theirs, ours / theirs if theirs else float("nan"))
        ]
        lines.append(f"{section:12} {clients:7.0f} " + " ".join(cells))
    return "\n".join(lines)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=10, help="length of one run")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of each pair")
    parser.add_argument("--scale", type=int, default=10, help="pgbench's scale factor")
    parser.add_argument("--clients", default="1,16,64", help="numbers of clients, by commas")
    parser.add_argument("--scripts", default="tpcb,select", help="tpcb, select or both")
    parser.add_argument("--servers", default="logstead,postgres", help="logstead, postgres or both")
    parser.add_argument("--threads", type=int, default=2, help="threads of pgbench itself")
    parser.add_argument("--directory", type=Path, default=REPOSITORY / "bench/results", help="where data and results go")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)

    runs: list[dict] = []
    with tempfile.TemporaryDirectory(prefix="pgbench-", dir=options.directory) as root:
        os.chmod(root, 0o755)
        kinds = {"logstead": LogsteadServer, "postgres": PostgresServer}
        servers: list[Server] = []
        try:
            for name in options.servers.split(","):
                directory = Path(root) / name
                server = kinds[name](directory, POSTGRES_SETTINGS) if name == "postgres" else kinds[name](directory)
                server.start()
                servers.append(server)
                print(f"{name}: loading scale {options.scale}", file=sys.stderr)
                server.run("pgbench", "-i", "-q", "-s", options.scale, timeout_s=1800)
                server.execute("CHECKPOINT" if name == "postgres" else "SELECT 1")
            for script in options.scripts.split(","):
                for clients in map(int, options.clients.split(",")):
                    for repetition in range(options.repeat):
                        for server in servers if repetition % 2 == 0 else reversed(servers):
                            found = run_once(server, SCRIPTS[script], clients, options.seconds, options.threads)
                            done = document.run(
                                SCRIPTS[script], NAMES[server.name], "pgbench", options.seconds, len(found["latencies"]), found["latencies"],
                                x=("clients", clients), repetition=repetition, clients=clients,
                                configuration={"scale": str(options.scale), "protocol": "prepared"},
                            )  # fmt: skip
                            # pgbench's own figure leaves out the time to connect.
                            done["transactions"][0]["per_second"] = found["tps"]
                            runs.append(done)
                            p99 = done["transactions"][0]["whole_latency_ns"]["p99"] / 1e6
                            print(f"{script} {clients:3} clients, {server.name:8}: {found['tps']:9.0f} tps, p99 {p99:.2f} ms", file=sys.stderr)
            versions = {server.name: server.execute("SELECT version()")[0][0] for server in servers}
        finally:
            for server in servers:
                server.stop(timeout_s=120)

    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    file = options.directory / f"pgbench-{now:%Y%m%dT%H%M%SZ}.json"
    document.write(
        file, "pgbench", runs, when=now.isoformat(), versions=versions,
        configuration={**{key: str(value) for key, value in vars(options).items()}, "postgres": POSTGRES_SETTINGS},
    )  # fmt: skip
    print(f"pgbench -M prepared, scale {options.scale}, {options.repeat} x {options.seconds} s each, medians")
    print(document.machine()["description"])
    if len(servers) == 2:
        print(table(runs))
    print(f"raw numbers: {file}")


if __name__ == "__main__":
    main()
