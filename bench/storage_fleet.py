#!/usr/bin/env python3
"""A storage fleet of six nodes in three zones on this machine: what a commit takes, and what crosses the network.

    commits     latency and throughput of updates of one row: a local disk, a fleet (near, zones 0.5 ms apart, one slow node, a dead
                zone), and PostgreSQL 15 with one of two synchronous standbys
    network     requests and bytes from server to nodes for each transaction (Aurora, table 1)
    recovery    from the start of a server that was killed under load until its first answer
    repair      a node is emptied beside updates: how long until it has everything again, per GiB, and what the updates lose

`commits` has a yardstick for each fleet: 4 KiB appended to each of its six nodes by themselves (`logstead bench bare --way quorum`), done when
four have it.

    ./test e2e --collect-only        once, to set up the Python environment
    ~/.cache/logstead/venv/bin/python bench/storage_fleet.py commits --seconds 5

All of it shares the processors of one machine: read the figures beside one another. Nodes pretend to be far away (`--distance`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/e2e"))
sys.path.insert(0, str(REPOSITORY / "bench"))

from fleet import Fleet  # noqa: E402
from harness import LogsteadServer, PostgresServer, Server, wait_until  # noqa: E402
from objectserver import ObjectServer  # noqa: E402
from replication import POSTGRES, WRITE, WRITERS, PostgresStandby  # noqa: E402

# Zones b and c are so far from the server, in microseconds.
ZONE_DISTANCE_US = 500
SLOW_DISTANCE_US = 20_000


@contextmanager
def fleet_server(root: Path, kind: str):
    """A server on a fleet of some kind."""
    with ExitStack() as stack:
        fleet = Fleet(root / "fleet")
        for number, node in enumerate(fleet.nodes):
            distance = ZONE_DISTANCE_US if kind != "near" and node.zone != "a" else 0
            if kind == "slow node" and number == 0:
                distance = SLOW_DISTANCE_US
            node.arguments = ("--distance", str(distance))
        stack.callback(fleet.kill)
        fleet.start()
        server = ObjectServer(root / "server", fleet.url(), {})
        stack.callback(server.kill)
        server.start()
        if kind == "dead zone":
            for node in fleet.zone("c"):
                node.kill()
        yield server, fleet


@contextmanager
def postgres_server(root: Path):
    """PostgreSQL whose commits wait for one of two standbys."""
    with ExitStack() as stack:
        primary = PostgresServer(root / "primary", POSTGRES)
        stack.callback(primary.kill)
        primary.start()
        for number in range(2):
            standby = PostgresStandby(root / f"standby{number}", primary)
            stack.callback(standby.kill)
            standby.start()
        count = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        wait_until(lambda: primary.execute(count) == [(2,)], timeout_s=120, what="the streams")
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'", "SELECT pg_reload_conf()")
        yield primary


def run(server: Server, root: Path, clients: int, seconds: int) -> tuple[float, list[float]]:
    """Transactions per second, and each one's milliseconds."""
    script, prefix = root / "write.sql", root / f"log{clients}"
    script.write_text(WRITE)
    command = ["pgbench", "-n", "-M", "prepared", "-c", str(clients), "-T", str(seconds), "-l", "--log-prefix", str(prefix)]
    done = server.run(*command, "-f", str(script), timeout_s=seconds + 120)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("tps")]
    took = [int(line.split()[2]) / 1e3 for path in root.glob(f"{prefix.name}.*") for line in path.read_text().splitlines()]
    return float(line.split()[2]), sorted(took)


def yardstick(fleet: Fleet, root: Path, seconds: int) -> list[float]:
    """Milliseconds of bare appends, p50 and p99: each to all nodes that are up, done when four have it."""
    report = root / "bare.json"
    command = [LogsteadServer.binary(), "bench", "bare", "--way", "quorum", "--home", fleet.url("yardstick"), "--seconds", str(seconds)]
    subprocess.run([*command, "--workers", "1", "--json", str(report)], check=True, stdout=subprocess.DEVNULL)
    (run,) = json.loads(report.read_text())["runs"]
    latency = run["transactions"][0]["commit_latency_ns"]
    return [latency[at] / 1e6 for at in ("p50", "p99")]


def measure_commits(options) -> None:
    print(f"{'home':28} {'clients':>7} {'tps':>8} {'p50 ms':>8} {'p99 ms':>8}")
    kinds = ("local disk", "fleet, near", "fleet, zones apart", "fleet, slow node", "fleet, dead zone", "postgres, one of two")
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="fleet-", dir=options.directory) as directory, ExitStack() as stack:
            os.chmod(directory, 0o755)
            root = Path(directory)
            if kind == "local disk":
                server: Server = LogsteadServer(root / "server")
                stack.callback(server.kill)
                server.start()
            elif kind.startswith("postgres"):
                server = stack.enter_context(postgres_server(root))
            else:
                server, fleet = stack.enter_context(fleet_server(root, kind.partition(", ")[2]))
                if "dead" not in kind:
                    p50, p99 = yardstick(fleet, root, options.seconds)
                    print(f"{kind + ': bare appends':28} {1:7} {'':8} {p50:8.2f} {p99:8.2f}", flush=True)
            server.execute(*WRITERS.split("; "))
            for clients in (1, 16):
                run(server, root, clients, 2)
                for path in root.glob(f"log{clients}.*"):
                    path.unlink()
                tps, took = run(server, root, clients, options.seconds)
                at = lambda share: took[min(len(took) - 1, int(len(took) * share))]  # noqa: E731
                print(f"{kind:28} {clients:7} {tps:8.0f} {at(0.5):8.2f} {at(0.99):8.2f}", flush=True)


def measure_network(options) -> None:
    kind = "sum({}) FILTER (WHERE kind = '{}')"
    sums = ", ".join(kind.format(what, of) for of in ("append", "put") for what in ("requests", "bytes"))
    sums = f"SELECT {sums} FROM logstead_cost"
    print(f"{'clients':>7} {'tps':>8} {'appends/tx':>11} {'bytes/tx':>9} {'other writes/tx':>16} {'bytes/tx':>9}  to all six nodes")
    with tempfile.TemporaryDirectory(prefix="fleet-", dir=options.directory) as directory:
        root = Path(directory)
        with fleet_server(root, "near") as (server, _):
            server.execute(*WRITERS.split("; "))
            for clients in (1, 16):
                before = server.execute(sums)[0]
                tps, took = run(server, root, clients, options.seconds)
                after = server.execute(sums)[0]
                each = [float(later - earlier) / len(took) for earlier, later in zip(before, after, strict=True)]
                print(f"{clients:7} {tps:8.0f} {each[0]:11.2f} {each[1]:9.0f} {each[2]:16.3f} {each[3]:9.0f}", flush=True)


def measure_recovery(options) -> None:
    with tempfile.TemporaryDirectory(prefix="fleet-", dir=options.directory) as directory:
        root = Path(directory)
        with fleet_server(root, "zones apart") as (server, _):
            server.execute(*WRITERS.split("; "))
            for _ in range(5):
                tps, _ = run(server, root, 16, options.seconds)
                server.kill()
                begun = time.monotonic()
                server.start()
                server.execute("SELECT count(*) FROM written")
                print(f"at {tps:.0f} transactions per second: {time.monotonic() - begun:.2f} s to the first answer", flush=True)


def measure_repair(options) -> None:
    """Checkpoints' objects are nearly all that a node has: a table of pgbench makes them."""
    with tempfile.TemporaryDirectory(prefix="fleet-", dir=options.directory) as directory:
        root = Path(directory)
        with fleet_server(root, "near") as (server, fleet):
            server.run("pgbench", "-i", "-q", "-s", str(options.scale), timeout_s=600)
            server.execute("CHECKPOINT", *WRITERS.split("; "))
            fleet.wait_complete(timeout_s=600)
            before, _ = run(server, root, 16, options.seconds)
            node = fleet.nodes[5]
            node.kill()
            size = sum(path.stat().st_size for path in (node.root / "data").rglob("*") if path.is_file())
            node.empty()
            script = root / "write.sql"
            command = ["pgbench", "-n", "-M", "prepared", "-c", "16", "-T", "3600", "-P", "1", "-f", str(script)]
            load = subprocess.Popen(command, env=server.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            begun = time.monotonic()
            node.start()
            fleet.wait_complete(timeout_s=600)
            took = time.monotonic() - begun
            load.terminate()
            lines = [line for line in load.communicate()[1].splitlines() if line.startswith("progress:")]
            during = [float(line.split(", ")[1].split()[0]) for line in lines]
            mean = sum(during) / max(1, len(during))
            gib = size / (1 << 30)
            print(f"{gib:.2f} GiB in {took:.1f} s, {took / gib:.1f} s per GiB; {before:.0f} transactions per second before, {mean:.0f} meanwhile")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("commits", "network", "recovery", "repair"))
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--directory", help="where servers and nodes store [default: the system's directory for such files]")
    parser.add_argument("--scale", type=int, default=100, help="pgbench's scale for a repair [default: %(default)s]")
    options = parser.parse_args()
    {"commits": measure_commits, "network": measure_network, "recovery": measure_recovery, "repair": measure_repair}[options.what](options)


if __name__ == "__main__":
    main()
