#!/usr/bin/env python3
"""Replicas, Logstead and PostgreSQL 15's streaming replication side by side, on this machine and on local disks.

    lag         from the acknowledgment of a commit at the primary until a client of the replica sees it, at several rates of writes: by the
                stream and by the home alone, beside PostgreSQL
    cost        throughput of the primary with one replica (stream, home), relative to none; in turns
    promotion   from kill -9 of the primary to the first acknowledged write at the replica that is promoted
    reads       selects by key per second over a primary and three replicas together, and the lag meanwhile

`--home dev-bucket` (azurite, versitygw): the log lies there and not in a directory, where the lease is the judge of
a promotion.

    ./test e2e --collect-only        once, to set up the Python environment
    ~/.cache/logstead/venv/bin/python bench/replication.py lag --seconds 10
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/e2e"))

import psycopg  # noqa: E402
from harness import LogsteadServer, PostgresServer, Server, wait_until  # noqa: E402
from objectserver import ObjectServer, home  # noqa: E402
from objectstores import start as start_store  # noqa: E402

# Enough for the writers' rows to differ.
WRITERS = "CREATE TABLE written (id int PRIMARY KEY, n int NOT NULL); INSERT INTO written SELECT g, 0 FROM generate_series(1, 10000) g"
WRITE = "\\set id random(1, 10000)\nUPDATE written SET n = n + 1 WHERE id = :id;\n"
PROBE = "CREATE TABLE probe (n int NOT NULL); INSERT INTO probe VALUES (0)"
POSTGRES = {"shared_buffers": "1GB", "max_wal_size": "4GB", "wal_level": "replica", "max_wal_senders": "10", "hot_standby": "on"}


class PostgresStandby(PostgresServer):
    """A streaming standby of a PostgreSQL server."""

    def __init__(self, root: Path, primary: PostgresServer):
        super().__init__(root, {**POSTGRES, "primary_conninfo": f"host=127.0.0.1 port={primary.port} user=postgres"})
        self.primary = primary

    def _initialise(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        os.chmod(self.root, 0o777)
        command = [self.program("pg_basebackup"), "-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "postgres"]
        command += ["-D", str(self.data), "-X", "stream", "--checkpoint=fast"]
        subprocess.run(command, check=True, cwd="/", **self._identity())
        (self.data / "standby.signal").touch()


class Replica(LogsteadServer):
    """A Logstead replica of another server's home."""

    def __init__(self, root: Path, primary: LogsteadServer, feed: str):
        super().__init__(root)
        self.credentials = primary.credentials if isinstance(primary, ObjectServer) else {}
        url = primary.url if isinstance(primary, ObjectServer) else f"file://{primary.data}"
        self.arguments = ["--replica-of", url, "--set", "autovacuum=off"]
        if feed == "stream":
            self.arguments += ["--primary-conninfo", f"host=127.0.0.1 port={primary.port} user=postgres"]

    def command(self, *arguments: str) -> list[str]:
        return [self.binary(), "serve", "--listen", "127.0.0.1:0", *self.arguments, *arguments]

    def start(self, arguments=(), env=None, **options) -> "Replica":
        super().start(arguments, env={**self.credentials, **(env or {})}, **options)
        return self


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def servers(root: Path, feed: str, replicas: int, where: str = "local"):
    """A primary and its replicas; `feed` is stream, home, or postgres, `where` the kind of home."""
    with ExitStack() as stack:
        if feed == "postgres":
            primary: Server = PostgresServer(root / "primary", POSTGRES)
        else:
            if where == "local":
                primary = LogsteadServer(root / "primary")
            else:
                store = stack.enter_context(start_store(where, root / "store"))
                primary = ObjectServer(root / "primary", home(store), store.environment)
            if feed == "home":
                primary.arguments += ["--horizon-pause", "5ms"]
        stack.callback(primary.kill)
        primary.start()
        primary.execute(*WRITERS.split("; "), *PROBE.split("; "))
        beside: list[Server] = []
        for number in range(replicas):
            directory = root / f"replica{number}"
            replica = PostgresStandby(directory, primary) if feed == "postgres" else Replica(directory, primary, feed)
            stack.callback(replica.kill)
            replica.start()
            beside.append(replica)
        for replica in beside:
            wait_until(lambda replica=replica: shows_probe(replica), timeout_s=120, what="the replica to follow")
        if feed != "home":
            count = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
            wait_until(lambda: primary.execute(count) == [(replicas,)], timeout_s=120, what="the streams")
        yield primary, beside


def shows_probe(replica: Server) -> bool:
    try:
        return replica.execute("SELECT count(*) FROM probe") == [(1,)]
    except psycopg.Error:
        return False


@contextmanager
def writers(primary: Server, root: Path, rate: int, seconds: int):
    """pgbench, writing at that rate for so long; 0: nobody writes."""
    if not rate:
        yield
        return
    script = root / "write.sql"
    script.write_text(WRITE)
    command = ["pgbench", "-n", "-M", "prepared", "-c", "16", "-j", "1", "-T", str(seconds), "-R", str(rate), "-f", str(script)]
    process = subprocess.Popen(command, env=primary.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield
    finally:
        out, _ = process.communicate(timeout=seconds + 120)
        reached = [line for line in out.splitlines() if line.startswith("tps")]
        say(f"    writers: {reached[0] if reached else out[-300:]}")


def lags(primary: Server, replica: Server, seconds: float) -> list[float]:
    """Milliseconds from the acknowledgment of a commit until it shows, one commit after the other."""
    found = []
    with primary.connect(autocommit=True) as writer, replica.connect(autocommit=True) as reader:
        for connection in (writer, reader):
            connection.prepare_threshold = 0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            (n,) = writer.execute("UPDATE probe SET n = n + 1 RETURNING n").fetchone()
            acknowledged = time.monotonic()
            while reader.execute("SELECT n FROM probe").fetchone()[0] < n:
                pass
            found.append((time.monotonic() - acknowledged) * 1e3)
            time.sleep(0.01)
    return found


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def measure_lag(options) -> None:
    print(f"{'feed':10} {'writes/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8} {'commits':>8}")
    for feed in options.feeds.split(","):
        for rate in map(int, options.rates.split(",")):
            with tempfile.TemporaryDirectory(prefix="replication-", dir=options.directory) as root:
                os.chmod(root, 0o755)
                with servers(Path(root), feed, 1, options.home) as (primary, (replica,)):
                    with writers(primary, Path(root), rate, options.seconds + 3):
                        time.sleep(1.5)
                        found = lags(primary, replica, options.seconds)
            cells = f"{statistics.median(found):8.2f} {quantile(found, 0.99):8.2f} {max(found):8.2f} {len(found):8}"
            print(f"{feed:10} {rate:9} {cells}", flush=True)


def tps(server: Server, seconds: int, clients: int, *arguments: str) -> float:
    """Transactions per second of pgbench."""
    command = ("pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(seconds), *arguments)
    done = server.run(*command, timeout_s=seconds + 120)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("tps")]
    return float(line.split()[2])


def measure_cost(options) -> None:
    """Without a replica and with one, in turns on the same primary."""
    for feed in ("stream", "home", "postgres"):
        with tempfile.TemporaryDirectory(prefix="replication-", dir=options.directory) as root:
            os.chmod(root, 0o755)
            script = Path(root) / "write.sql"
            script.write_text(WRITE)
            alone, beside = [], []
            with servers(Path(root), feed, 1) as (primary, (replica,)):
                for _ in range(options.repeat):
                    beside.append(tps(primary, options.seconds, 16, "-f", str(script)))
                    # It costs nothing while it is stopped: a sender with nobody to take its bytes waits.
                    if feed == "postgres":
                        replica.stop(timeout_s=120)
                    else:
                        replica.kill()
                    alone.append(tps(primary, options.seconds, 16, "-f", str(script)))
                    replica.start()
                    wait_until(lambda replica=replica: shows_probe(replica), timeout_s=120, what="the replica")
        quotients = [with_one / without for with_one, without in zip(beside, alone, strict=True)]
        print(
            f"{feed:10} alone {statistics.median(alone):8.0f} tps, with a replica {statistics.median(beside):8.0f};"
            f" quotients {' '.join(f'{one:.3f}' for one in quotients)}",
            flush=True,
        )


def measure_promotion(options) -> None:
    for feed in options.feeds.split(","):
        times = []
        for _ in range(options.repeat):
            with tempfile.TemporaryDirectory(prefix="replication-", dir=options.directory) as root:
                os.chmod(root, 0o755)
                with servers(Path(root), feed, 1, options.home) as (primary, (replica,)):
                    with writers(primary, Path(root), 0, 0):
                        lags(primary, replica, 1)
                    begun = time.monotonic()
                    primary.kill()
                    killed = time.monotonic()
                    promote(replica)
                    while True:
                        try:
                            with replica.connect(autocommit=True) as connection:
                                connection.execute("UPDATE probe SET n = n + 1")
                                break
                        except psycopg.Error:
                            time.sleep(0.005)
                    times.append((time.monotonic() - begun, time.monotonic() - killed))
        cells = " ".join(f"{whole:.2f} ({after:.2f} after it was gone)" for whole, after in times)
        print(f"{feed:10} seconds to the first acknowledged write: {cells}", flush=True)


def promote(replica: Server) -> None:
    if isinstance(replica, PostgresStandby):
        command = [replica.program("pg_ctl"), "promote", "-D", str(replica.data)]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, **replica._identity())
    else:
        command = [LogsteadServer.binary(), "promote", f"host=127.0.0.1 port={replica.port} user=postgres"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measure_reads(options) -> None:
    for feed in ("stream", "postgres"):
        with tempfile.TemporaryDirectory(prefix="replication-", dir=options.directory) as root:
            os.chmod(root, 0o755)
            with servers(Path(root), feed, 3) as (primary, replicas):
                primary.run("pgbench", "-i", "-q", "-s", "5", timeout_s=600)
                goal = "SELECT count(*) FROM pgbench_accounts"

                def loaded(replica) -> bool:
                    try:
                        return replica.execute(goal) == [(500000,)]
                    except psycopg.Error:
                        return False

                for replica in replicas:
                    wait_until(lambda replica=replica: loaded(replica), timeout_s=300, what="the rows")
                alone = tps(primary, options.seconds, 8, "-S", "-s", "5")
                reads: list[float] = []
                threads = [
                    threading.Thread(target=lambda server=server: reads.append(tps(server, options.seconds, 4, "-S", "-s", "5")))
                    for server in (primary, *replicas)
                ]
                with writers(primary, Path(root), 500, options.seconds + 2):
                    for thread in threads:
                        thread.start()
                    found = lags(primary, replicas[0], options.seconds - 1)
                    for thread in threads:
                        thread.join()
        print(
            f"{feed:10} {sum(reads):9.0f} selects/s over four servers beside 500 writes/s ({alone:.0f} of one alone);"
            f" lag p50 {statistics.median(found):.2f} ms, p99 {quantile(found, 0.99):.2f} ms",
            flush=True,
        )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    measures = {"lag": measure_lag, "cost": measure_cost, "promotion": measure_promotion, "reads": measure_reads}
    parser.add_argument("measure", choices=measures)
    parser.add_argument("--seconds", type=int, default=10, help="length of one run")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, where there are any")
    parser.add_argument("--rates", default="0,1000,10000", help="writes per second, by commas")
    parser.add_argument("--feeds", default="stream,home,postgres", help="stream, home, postgres, by commas")
    parser.add_argument("--home", default="local", help="local, dev-bucket, azurite, versitygw; for lag and promotion")
    parser.add_argument("--directory", type=Path, default=REPOSITORY / "bench/results", help="where data goes")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    measures[options.measure](options)


if __name__ == "__main__":
    main()
