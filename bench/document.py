"""Results in the form that `logstead bench report` reads: one document for each script, one run for each measurement.

The form is defined in crates/bench/src/report/record.rs; times are nanoseconds.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

FORMAT = "logstead-bench/2"
REPOSITORY = Path(__file__).resolve().parents[1]
# Percentiles at which curves are drawn.
CURVE = (0, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 97.5, 99, 99.5, 99.9, 99.95, 99.99, 99.999)


def percentile(ordered: Sequence[int], which: float) -> int:
    """The smallest value that `which` percent are not above."""
    if not ordered:
        return 0
    rank = -(-len(ordered) * which // 100)
    return ordered[min(max(int(rank), 1), len(ordered)) - 1]


def latency(values_ns: Sequence[int]) -> dict:
    """A distribution of latencies."""
    ordered = sorted(values_ns)
    count = len(ordered)
    return {
        **{f"p{which:g}": percentile(ordered, which) for which in (50, 90, 99, 99.9, 99.99)},
        "max": ordered[-1] if ordered else 0,
        "mean": sum(ordered) / count if count else 0.0,
        "count": count,
        "curve": [[which, percentile(ordered, which)] for which in CURVE if count * (1 - which / 100) > 1 - 1e-6],
    }


def run(
    section: str, series: str, workload: str, seconds: float, committed: int, latencies_ns: Sequence[int], *,
    x: tuple[str, float] | None = None, repetition: int = 0, clients: int = 1, configuration: dict[str, str] | None = None,
) -> dict:  # fmt: skip
    """One measurement. The client's latency is that of a whole transaction; what of it is the commit, no client knows."""
    return {
        "section": section,
        "series": series,
        "x": {"name": x[0], "value": float(x[1])} if x else None,
        "repetition": repetition,
        "workload": workload,
        "configuration": configuration or {},
        "workers": clients,
        "more_workers_than_cores": clients > (os.cpu_count() or 1),
        "seconds": seconds,
        "transactions": [
            {
                "name": workload,
                "committed": committed,
                "per_second": committed / seconds if seconds else 0.0,
                "whole_latency_ns": latency(latencies_ns),
            }
        ],
    }


def commit() -> str:
    """The commit that is measured; marked if the work tree differs from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True)
        return done.stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+changes" if git("status", "--porcelain") else "")


def machine() -> dict:
    """What the numbers were measured on."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    found = {
        "processor": model.group(1) if model else platform.processor(),
        "cores": os.cpu_count() or 1,
        "memory_bytes": int(memory.group(1)) * 1024 if memory else 0,
        "kernel": platform.release(),
        "commit": commit(),
        "optimised": True,
    }
    found["description"] = (
        f"{found['processor']}, {found['cores']} cores, {found['memory_bytes'] / 2**30:.0f} GiB, kernel {found['kernel']}; "
        f"commit {found['commit']}; clients on the same machine"
    )
    return found


def write(file: Path, name: str, runs: list[dict], **more) -> None:
    """Writes a document; `more` is kept and not read by the report."""
    document = {"format": FORMAT, "name": name, "machine": machine(), "runs": runs, **more}
    file.write_text(json.dumps(document, indent=1) + "\n")


def measure(program: str, parts: dict[str, Callable], options: Namespace) -> None:
    """Runs the part that was asked for in a directory of its own and keeps what it found, with the machine and the configuration."""
    options.directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{program}-", dir=options.directory) as root:
        # PostgreSQL runs as another user.
        os.chmod(root, 0o755)
        found = parts[options.part](options, Path(root))
    file = options.directory / f"{program}-{options.part}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.json"
    configuration = {key: str(value) for key, value in vars(options).items()}
    file.write_text(json.dumps({"machine": machine(), "configuration": configuration, "found": found}, indent=1) + "\n")
    print(machine()["description"])
    print(f"raw numbers: {file}")
