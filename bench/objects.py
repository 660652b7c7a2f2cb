#!/usr/bin/env python3
"""The log on real object stores, beside the models of cloud storage: what the home adds to a request, what protocols, sharing and
tracking bring, and what a million transactions cost.

Starts the stores of tests/e2e/objectstores.py on loopback (Azurite: real appends; the development bucket: the wire format of S3 Express
with its latencies from the model; versitygw: plain S3), runs `logstead bench experiment` on them, keeps the results as JSON, draws one report, and
prints tables. Stores share the machine's cores with the engine: latencies of stores without a model are those of a busy machine, not of a
cloud. Requests, and money by the price list, are exact.

    bash -c '. scripts/environment.sh; need_object_stores; need_python; cargo build --release
             exec "$cache/venv/bin/python" bench/objects.py --seconds 1'
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/e2e"))

import objectstores  # noqa: E402
from harness import LogsteadServer  # noqa: E402

EXPERIMENTS = ("overhead", "cost", "homes", "ablation-b", "sharing")
# Name in the report: the store, and what it is started with.
STORES = {
    "azurite": ("azurite", ()),
    "express": ("dev-bucket", ("--latency", "s3express")),
    "fast": ("dev-bucket", ()),
    "versitygw": ("versitygw", ()),
}
# The store without a model answers at once: there a home's own time shows. Elsewhere it would measure the machine.
ONLY_FOR_OVERHEAD = ("fast",)
Runs = list[dict]


def url(store: objectstores.ObjectStore) -> str:
    """A home in the store that needs nothing of the environment but credentials: several stores are in use at a time."""
    endpoint = store.environment.get("AZURE_STORAGE_ENDPOINT") or store.environment["AWS_ENDPOINT_URL"]
    return f"{store.url('bench')}?endpoint={endpoint}"


def experiment(name: str, homes: dict[str, str], env: dict[str, str], options: argparse.Namespace) -> Path:
    """Runs one and gives its results."""
    result = options.out / f"objects-{name}.json"
    command = [LogsteadServer.binary(), "bench", "experiment", name, "--quick", "--json", str(result)]
    command += ["--seconds", str(options.seconds), "--repeat", str(options.repeat)]
    for label, home in homes.items():
        command += ["--home", f"{label}={home}"]
    began = time.monotonic()
    subprocess.run(command, env={**os.environ, **env}, check=True, stdout=subprocess.DEVNULL)
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return result


def median(runs: Runs, value) -> float | None:
    """Of the runs that have it."""
    values = [found for found in map(value, runs) if found is not None]
    return statistics.median(values) if values else None


def latency(which: str):
    """Of transactions that wrote, in milliseconds."""
    return lambda run: run["transactions"][-1]["writing_latency_ns"][which] / 1e6


def figure(name: str):
    """One of the run's figures."""
    return lambda run: run["figures"].get(name)


def digits(value: float | None) -> str:
    """Three of them."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def grouped(runs: Runs, key) -> dict:
    """Runs by key, in their order."""
    groups: dict = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def table(head: list[str], lines: list[list[str]]) -> str:
    """In Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def compared(runs: Runs) -> str:
    """A section's configurations side by side."""
    columns = {
        "per s": lambda run: run["transactions"][-1]["per_second"],
        "p50 ms": latency("p50"),
        "p99": latency("p99"),
        "mean": latency("mean"),
        "appends per commit": figure("appends per commit"),
        "requests per million": figure("requests per million commits"),
        "dollars per million": figure("dollars per million commits"),
    }
    name = lambda run: run["series"] + (f", {run['x']['name']} {run['x']['value']:,.0f}" if run["x"] else "")  # noqa: E731
    lines = [
        [series, *(digits(median(same, value)) for value in columns.values())] for series, same in grouped(runs, name).items()
    ]
    return table(["", *columns], lines)


def added(runs: Runs) -> str:
    """What the home adds to the client's own requests."""
    lines = []
    for (size, workers), same in grouped(runs, lambda run: (run["parameters"]["bytes of an append"], run["workers"])).items():
        ways = grouped(same, lambda run: run["parameters"]["way"])
        values = {}
        for which, value in {
            "p50": latency("p50"),
            "mean": latency("mean"),
            "rate": lambda run: run["transactions"][-1]["per_second"],
            "cpu": figure("CPU us per append"),
        }.items():
            values[which] = [median(ways[way], value) for way in ("client", "handoff")]
        line = [f"{size}, {workers} at a time"]
        for which in ("p50", "mean", "rate"):
            client, home = values[which]
            line += [digits(client), digits(home), f"{100 * (home / client - 1):+.1f} %"]
        line += [digits(value) for value in values["cpu"]]
        lines.append(line)
    head = [""]
    for which in ("p50 ms", "mean ms", "per s"):
        head += [f"{which}, client", "home", "home / client"]
    return table([*head, "CPU us per append, client", "home"], lines)


def show(result: Path) -> None:
    """Prints the tables of one experiment."""
    document = json.loads(result.read_text())
    print(f"## {document['name']}\n\n{document['machine']['description']}\n")
    for section, runs in grouped(document["runs"], lambda run: run["section"]).items():
        print(f"**{section}**\n\n{added(runs) if document['name'] == 'overhead' else compared(runs)}\n")
        broken = [check for run in runs for check in run["checks"] if not check["holds"]]
        if broken:
            print(f"NOT CONSISTENT: {broken}\n")


def main() -> None:
    """Runs all that was asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=1.0, help="length of each run")
    arguments.add_argument("--repeat", type=int, default=1, help="repetitions, alternating")
    arguments.add_argument("--stores", default=",".join(STORES), help=f"of {', '.join(STORES)}")
    arguments.add_argument("--only", default=",".join(EXPERIMENTS), help=f"of {', '.join(EXPERIMENTS)}")
    arguments.add_argument("--out", type=Path, default=REPOSITORY / "bench/results", help="where results go")
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results = []
    with contextlib.ExitStack() as stack:
        # In memory where that is possible: this machine's disk is not what is measured.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="logstead-objects-", dir=memory)))
        homes, env = {}, {}
        for label in options.stores.split(","):
            name, extra = STORES[label]
            place = root / label
            place.mkdir()
            store = stack.enter_context(objectstores.start(name, place, arguments=extra))
            homes[label] = url(store)
            env |= store.credentials
        for name in options.only.split(","):
            wanted = homes if name == "overhead" else {k: v for k, v in homes.items() if k not in ONLY_FOR_OVERHEAD}
            results.append(experiment(name, wanted, env, options))
    for result in results:
        show(result)
    report = options.out / "objects.html"
    command = [LogsteadServer.binary(), "bench", "report", *map(str, results), "--html", str(report)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(f"report: {report}", file=sys.stderr)


if __name__ == "__main__":
    main()
