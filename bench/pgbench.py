#!/usr/bin/env python3
"""pgbench's TPC-B-like and select-only scripts, Logstead and PostgreSQL 15 side by side.

Both servers keep their data on the same file system with the same durability (a commit is answered when it is on disk), both
are given the same clients. Runs are paired and interleaved: every repetition measures all servers one after the other,
in alternating order, so that a slow minute of the machine hits both. The table shows medians; all raw numbers go to
a JSON file together with the machine, the configuration and the commit.

    ./test e2e --collect-only        once, to set up the Python environment
    ~/.cache/logstead/venv/bin/python bench/pgbench.py [--seconds 10] [--repeat 3] [--clients 1,4,16,64]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/e2e"))

from harness import LogsteadServer, PostgresServer, Server  # noqa: E402

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


def run_once(server: Server, script: str, clients: int, seconds: int, threads: int) -> dict[str, float]:
    """One run: transactions per second and the average latency, as pgbench reports them."""
    done = server.run(
        "pgbench", "-n", "-M", "prepared", "-b", script, "-c", clients, "-j", min(threads, clients), "-T", seconds,
        timeout_s=seconds + 300,
    )  # fmt: skip
    return {
        "tps": float(re.search(r"tps = ([\d.]+)", done.stdout).group(1)),
        "latency_ms": float(re.search(r"latency average = ([\d.]+) ms", done.stdout).group(1)),
        "failed": int(re.search(r"number of failed transactions: (\d+)", done.stdout).group(1)),
    }


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return {
        "cpu": model.group(1) if model else platform.processor(),
        "cores": str(os.cpu_count()),
        "memory_mb": str(int(memory.group(1)) // 1024 if memory else 0),
        "kernel": platform.release(),
    }


def commit() -> str:
    """The commit that is measured; marked if the work tree differs from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True)
        return done.stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+changes" if git("status", "--porcelain") else "")


def table(results: list[dict]) -> str:
    """Medians side by side."""
    lines = [f"{'script':8} {'clients':>7} {'Logstead tps':>13} {'PostgreSQL tps':>15} {'ratio':>6}   {'Logstead ms':>11} {'PostgreSQL ms':>13}"]
    for key in dict.fromkeys((one["script"], one["clients"]) for one in results):
        median = {}
        for server in ("logstead", "postgres"):
            runs = [one for one in results if (one["script"], one["clients"]) == key and one["server"] == server]
            median[server] = {
                field: statistics.median(one[field] for one in runs) if runs else float("nan") for field in ("tps", "latency_ms")
            }
        ours, theirs = median["logstead"], median["postgres"]
        lines.append(
            f"{key[0]:8} {key[1]:7} {ours['tps']:13.0f} {theirs['tps']:15.0f} {ours['tps'] / theirs['tps']:6.2f}"
            f"   {ours['latency_ms']:11.3f} {theirs['latency_ms']:13.3f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=10, help="length of one run")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of each pair")
    parser.add_argument("--scale", type=int, default=10, help="pgbench's scale factor")
    parser.add_argument("--clients", default="1,4,16,64", help="numbers of clients, by commas")
    parser.add_argument("--scripts", default="tpcb,select", help="tpcb, select or both")
    parser.add_argument("--servers", default="logstead,postgres", help="logstead, postgres or both")
    parser.add_argument("--threads", type=int, default=2, help="threads of pgbench itself")
    parser.add_argument("--directory", type=Path, default=REPOSITORY / "bench/results", help="where data and results go")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)

    results: list[dict] = []
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
                            results.append({"script": script, "clients": clients, "server": server.name, "repetition": repetition, **found})
                            print(f"{script} {clients:3} clients, {server.name:8}: {found['tps']:9.0f} tps", file=sys.stderr)
            versions = {server.name: server.execute("SELECT version()")[0][0] for server in servers}
        finally:
            for server in servers:
                server.stop(timeout_s=120)

    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    report = {
        "when": now.isoformat(), "commit": commit(), "machine": machine(), "versions": versions,
        "configuration": {**{key: str(value) for key, value in vars(options).items()}, "postgres": POSTGRES_SETTINGS},
        "results": results,
    }  # fmt: skip
    file = options.directory / f"pgbench-{now:%Y%m%dT%H%M%SZ}.json"
    file.write_text(json.dumps(report, indent=1) + "\n")
    about = report["machine"]
    print(f"pgbench -M prepared, scale {options.scale}, {options.repeat} x {options.seconds} s each, medians; commit {report['commit']}")
    print(f"{about['cores']} cores ({about['cpu']}), {about['memory_mb']} MB, Linux {about['kernel']}; clients on the same machine")
    if len(servers) == 2:
        print(table(results))
    print(f"raw numbers: {file}")


if __name__ == "__main__":
    main()
