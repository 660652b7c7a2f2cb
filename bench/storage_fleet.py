#!/usr/bin/env python3
"""A storage fleet of six nodes in three zones on this machine: what a commit takes, and what crosses the network.

    commits     latency and throughput of updates of one row: a local disk, a fleet (near, zones 0.5 ms apart, one slow node, a dead
                zone), and PostgreSQL 15 with one of two synchronous standbys
    network     requests and bytes from server to nodes for each transaction (Aurora, table 1)
    recovery    from the start of a server that was killed under load until its first answer

    ./test e2e --collect-only        once, to set up the Python environment
    ~/.cache/logstead/venv/bin/python bench/storage_fleet.py commits --seconds 5

All of it shares the processors of one machine: read the figures beside one another. Nodes pretend to be far away (`--distance`).
"""

from __future__ import annotations

import argparse
import os
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
                server, _ = stack.enter_context(fleet_server(root, kind.partition(", ")[2]))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("commits", "network", "recovery"))
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--directory", help="where servers and nodes store [default: the system's directory for such files]")
    options = parser.parse_args()
    {"commits": measure_commits, "network": measure_network, "recovery": measure_recovery}[options.what](options)


if __name__ == "__main__":
    main()
