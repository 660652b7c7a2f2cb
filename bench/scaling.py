#!/usr/bin/env python3
"""The scaling model, from measurement to document: traces the engine with 1 to 128 workers, counts what they share, runs the model and writes the figures.

    bench/scaling.py                       everything: docs/internals/scaling.md between its marks, docs/internals/scaling.svg
    bench/scaling.py --cores 1 2 8         some sizes
    bench/scaling.py --only document       from the traces that are there, in a minute

A trace is what `valgrind --tool=lackey --trace-mem=yes` prints of crates/bench/examples/scaling.rs, optimised; it is read as it comes and not kept. Everything
together takes about an hour of two cores. What it means: docs/internals/scaling.md.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

from document import commit, machine

REPOSITORY = Path(__file__).resolve().parents[1]
DOCUMENT = REPOSITORY / "docs/internals/scaling.md"
CHART = REPOSITORY / "docs/internals/scaling.svg"
BEGIN, END = "<!-- figures: bench/scaling.py writes from here -->", "<!-- to here -->"
PARTS = ("trace", "measure", "document")
WORKLOADS = ("ycsb-a", "ycsb-c", "tpcc")
CORES = (1, 2, 8, 32, 128)
# Of each workload: what the engine is called, whether it has an instance for each core complex, and the share of transactions that lead to others, in percent.
DESIGNS = {
    "ycsb-a": [("undivided", False, 0), ("divided_0", True, 0), ("divided_10", True, 10), ("divided_100", True, 100)],
    "ycsb-c": [("undivided", False, 0), ("divided_0", True, 0)],
    "tpcc": [("undivided", False, 0), ("divided", True, 0)],
}
CORES_PER_COMPLEX = 8
# Transactions of each worker before and in the window; larger ones are fewer, and so are those of many workers.
WARMUP = {"ycsb-a": 8, "ycsb-c": 8, "tpcc": 4}
MEASURED = {"ycsb-a": 800, "ycsb-c": 800, "tpcc": 160}
# With many workers each has fewer, since all of them load and warm up under the tracer.
MEASURED_MIN, WARMUP_MIN, MANY_CORES = 8, 4, 64
# The same where nothing is traced.
TIMED_WARMUP, TIMED = 20_000, {"ycsb-a": 300_000, "ycsb-c": 300_000, "tpcc": 30_000}
# Free runs, of which the one with the least processor time counts: others run on this machine, too.
REPEAT = 5
# As in a release; without optimising across parts of a crate a function is found where it is written.
PROFILE = {"CARGO_PROFILE_RELEASE_LTO": "off"}


def build() -> Path:
    """The program that is traced."""
    command = ["cargo", "build", "--release", "--locked", "-p", "logstead-bench", "--example", "scaling"]
    subprocess.run(command, cwd=REPOSITORY, env=os.environ | PROFILE, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return target / "release/examples/scaling"


def marks(program: Path) -> str:
    """Where the marks are in the program's file."""
    symbols = subprocess.run(["nm", "-C", program], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^([0-9a-f]+) \w .*scaling::baton::LINES$", symbols, re.MULTILINE)
    if not found:
        sys.exit(f"{program} has no marks")
    return found[1]


def forget_other_programs(program: Path, directory: Path) -> None:
    """Addresses in recordings are those of the program that was traced: what another one has left says nothing about this one."""
    found = hashlib.sha256(program.read_bytes()).hexdigest()
    known = directory / "program"
    if not known.exists() or known.read_text() != found:
        for recording in directory.glob("*.json"):
            recording.unlink()
        known.write_text(found)


def trace(program: Path, directory: Path, workload: str, design: tuple[str, bool, int], cores: int) -> None:
    """One traced run."""
    name, is_divided, cross = design
    instances = cores // CORES_PER_COMPLEX if is_divided else 1
    if is_divided and instances < 2:
        return
    measured = max(MEASURED[workload] // cores, MEASURED_MIN)
    warmup = WARMUP[workload] if cores < MANY_CORES else WARMUP_MIN
    run = ["run", workload, *map(str, (cores, instances, cross, warmup, measured))]
    # Everything goes to one pipe: the program's own line stands among what is traced.
    tracer = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no", "--log-fd=1", program]
    file = directory / f"{workload}.{name}.{cores}.json"
    with subprocess.Popen([*tracer, *run], stdout=subprocess.PIPE) as traced:
        reader = subprocess.run([program, "read", file, marks(program)], stdin=traced.stdout, capture_output=True, text=True)
    if traced.returncode or reader.returncode:
        file.unlink(missing_ok=True)
        sys.exit(f"{workload}, {name}, {cores} workers: {reader.stderr}")
    print(f"{workload}, {name}, {cores} workers: {reader.stdout.strip()}", flush=True)


def measure(program: Path, directory: Path) -> None:
    """What one and two workers take where nothing is traced, in turns."""
    taken: dict[tuple[str, int], list[str]] = {}
    for _ in range(REPEAT):
        for workload in WORKLOADS:
            for workers in (1, 2):
                run = [program, "time", workload, str(workers), "1", "0", str(TIMED_WARMUP), str(TIMED[workload])]
                said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
                taken.setdefault((workload, workers), []).append(said)
    for (workload, workers), times in taken.items():
        least = min(times, key=lambda text: float(re.search(r'"cpu_seconds":([0-9.]+)', text)[1]))
        (directory / f"{workload}.{workers}.time").write_text(least)
    transfers = [subprocess.run([program, "transfer"], capture_output=True, text=True, check=True).stdout for _ in range(REPEAT)]
    (directory / "transfer").write_text(min(transfers, key=float))


def sites(program: Path, directory: Path) -> None:
    """To which functions the instructions of all recordings belong."""
    recordings = sorted(directory.glob("*.json"))
    addresses = subprocess.run([program, "instructions", *recordings], capture_output=True, text=True, check=True).stdout
    command = ["addr2line", "-a", "-i", "-f", "-C", "-e", program]
    found = subprocess.run(command, input=addresses, capture_output=True, text=True, check=True).stdout
    (directory / "sites").write_text(found)


def write(program: Path, directory: Path) -> None:
    """The figures, where the document wants them."""
    tables = directory / "figures.md"
    subprocess.run([program, "document", directory, tables, CHART], stdout=subprocess.DEVNULL, check=True)
    before, rest = DOCUMENT.read_text().split(BEGIN)
    after = rest.split(END)[1]
    said = (directory / "measured").read_text()
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{said}{tables.read_text()}\n{END}{after}")
    print(f"{DOCUMENT}, {CHART}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--directory", type=Path, default=REPOSITORY / "target/scaling", help="where traces are kept, in brief")
    parser.add_argument("--cores", type=int, nargs="+", default=CORES)
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    options = parser.parse_args()
    parts = options.only
    options.directory.mkdir(parents=True, exist_ok=True)
    program = build()
    if "trace" in parts:
        forget_other_programs(program, options.directory)
        for workload in options.workloads:
            for design, cores in itertools.product(DESIGNS[workload], options.cores):
                trace(program, options.directory, workload, design, cores)
        sites(program, options.directory)
        said = f"Traced and measured: {commit()}; {machine()['processor']}, {machine()['cores']} cores.\n"
        (options.directory / "measured").write_text(said)
    if "measure" in parts:
        measure(program, options.directory)
    if "document" in parts:
        write(program, options.directory)


if __name__ == "__main__":
    main()
