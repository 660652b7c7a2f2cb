#!/usr/bin/env python3
"""How long clients wait while a server is replaced by another process (docs/operations/replacing.md), under pgbench.

A client beside pgbench writes one row again and again; its longest wait in a replacement is the pause. With --filled the database has so many
million rows beside pgbench's, all in the memory of the process that ends.

    ./test e2e --collect-only        once, to set up the Python environment
    ~/.cache/logstead/venv/bin/python bench/replacement.py --rounds 20
"""

from __future__ import annotations

import argparse
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/e2e"))

from harness import LogsteadServer, wait_until  # noqa: E402
from test_replace import replace  # noqa: E402

PROBE = "CREATE TABLE probe (n int NOT NULL); INSERT INTO probe VALUES (0)"


def resident_mib(pid: int) -> int:
    """Memory that a process has."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) // 1024


class Probe:
    """A client that is never at rest, and knows its longest wait."""

    def __init__(self, server: LogsteadServer):
        self.connection = server.connect(autocommit=True, prepare_threshold=0)
        self.longest = 0.0
        self.writes = 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while not self.stopping.is_set():
            begun = time.perf_counter()
            self.connection.execute("UPDATE probe SET n = n + 1")
            self.longest = max(self.longest, time.perf_counter() - begun)
            self.writes += 1

    def take(self) -> float:
        """The longest wait since the last call, in milliseconds."""
        longest, self.longest = self.longest, 0.0
        return longest * 1000

    def end(self) -> None:
        self.stopping.set()
        self.thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--filled", type=int, default=0, help="million rows beside")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="logstead-replacement-") as directory:
        server = LogsteadServer(Path(directory))
        server.start()
        try:
            server.execute(PROBE)
            server.run("pgbench", "-i", "-q", "-s", options.scale)
            if options.filled:
                server.execute(f"CREATE TABLE filled AS SELECT g AS id, repeat('x', 100) AS v FROM generate_series(1, {options.filled * 1_000_000}) g")
            probe = Probe(server)
            command = ["pgbench", "-n", "-M", "prepared", "-c", str(options.clients), "-j", "2", "-T", "7200"]
            bench = subprocess.Popen(command, env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            time.sleep(2)
            probe.take()
            time.sleep(2)
            print(f"longest wait in 2 s without a replacement: {probe.take():.1f} ms")
            pauses, memory = [], []
            for _ in range(options.rounds):
                memory.append(resident_mib(server.process.pid))
                probe.take()
                replace(server)
                before = probe.writes
                wait_until(lambda seen=before: probe.writes > seen + 10, what="writes")
                pauses.append(probe.take())
                assert bench.poll() is None, bench.communicate()[0]
                time.sleep(1)
            probe.end()
            bench.send_signal(signal.SIGALRM)
            output, _ = bench.communicate(timeout=120)
            failed = re.search(r"number of failed transactions: (\d+)", output)
            print(output)
            pauses.sort()
            print(f"{options.rounds} replacements, {failed.group(1)} failed transactions; memory of the process that ended {min(memory)}-{max(memory)} MiB")
            print(f"pause ms: least {pauses[0]:.0f}, median {statistics.median(pauses):.0f}, longest {pauses[-1]:.0f}")
        finally:
            server.kill()


if __name__ == "__main__":
    main()
