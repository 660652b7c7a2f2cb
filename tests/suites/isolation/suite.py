"""PostgreSQL 15's own isolation specs, run by its own isolationtester and compared with the outputs that come with it."""

from __future__ import annotations

import difflib
import glob
import os
import re
import subprocess
import time
from pathlib import Path

import psycopg

# isolationtester cancels a step after this time, and gives up after twice that; but not what it does between permutations, which waits for ever where a
# session still holds what it should not.
STEP_S = 10
SILENT_S = 35.0


def tester() -> str:
    """PostgreSQL 15's isolationtester."""
    found = sorted(glob.glob("/usr/lib/postgresql/15/lib/pgxs/src/test/isolation/isolationtester"))
    if not found:
        raise SystemExit("PostgreSQL 15's isolationtester is not installed (Debian: postgresql-15)")
    return found[0]


def schedule(source: Path) -> list[str]:
    """The specs in order; behind them those that are not in the schedule, because they need a setting."""
    lines = (source / "isolation_schedule").read_text().splitlines()
    names = [name for line in lines if line.startswith("test:") for name in line.removeprefix("test:").split()]
    return names + sorted({path.stem for path in (source / "specs").glob("*.spec")} - set(names))


def cause(difference: list[str]) -> str:
    """The first error that the other side does not have, else that the order of events is another."""
    errors = [line for line in difference if line.startswith("+") and re.search(r"ERROR:|FATAL:|failed:", line)]
    if errors:
        return re.sub(r'"[^"]*"', '"..."', re.sub(r"^\+(step \S+: <\.\.\. completed>|.*?(?=ERROR|FATAL))?\s*", "", errors[0]))
    missing = [line for line in difference if line.startswith("-") and "ERROR:" in line]
    return f"no {missing[0][1:].strip()}" if missing else "other rows or another order"


def ask(server, spec: Path, environment: dict, output: Path) -> str:
    """What isolationtester says to a spec."""
    command = [tester(), f"dbname=isolation_regression host={server.host} port={server.port} user=postgres"]
    with spec.open() as given, output.open("w") as out:
        process = subprocess.Popen(command, stdin=given, stdout=out, stderr=subprocess.STDOUT, env=environment)
        said, since = 0, time.monotonic()
        while True:
            try:
                process.wait(1)
                return output.read_text(errors="replace")
            except subprocess.TimeoutExpired:
                pass
            if output.stat().st_size != said:
                said, since = output.stat().st_size, time.monotonic()
            elif time.monotonic() - since > SILENT_S:
                process.kill()
                process.wait()
                return output.read_text(errors="replace") + f"\nERROR:  nothing happens for {SILENT_S:.0f} s\n"


def run(context):
    from report import Result

    source = Path(os.environ["SUITE_POSTGRES_SOURCE"]) / "isolation"
    server = context.server("server")
    environment = server.environment("isolation_regression")
    environment.update(PGISOLATIONTIMEOUT=str(STEP_S), PGTZ="PST8PDT")
    # As pg_regress sets it; a server that has no such style keeps its own.
    try:
        server.execute("SET datestyle = 'Postgres, MDY'")
        environment["PGDATESTYLE"] = "Postgres, MDY"
    except psycopg.Error:
        pass
    results = []
    server.execute("CREATE DATABASE isolation_regression")
    for name in schedule(source):
        if context.only and not any(re.fullmatch(only, name) for only in context.only):
            continue
        if not server.running():
            server.start()
        # What a spec that failed has left must not stand in the way of the next.
        server.execute("DROP DATABASE IF EXISTS isolation_regression WITH (FORCE)", "CREATE DATABASE isolation_regression")
        environment["PGAPPNAME"] = f"isolation/{name}"
        spec = source / "specs" / f"{name}.spec"
        said = ask(server, spec, environment, context.work / "isolation.out")
        wanted = [path.read_text() for path in sorted((source / "expected").glob(f"{name}.out"))]
        wanted += [path.read_text() for path in sorted((source / "expected").glob(f"{name}_[0-9].out"))]
        differences = [
            list(difflib.unified_diff(text.splitlines(), said.splitlines(), "expected", "got", lineterm="", n=2)) for text in wanted
        ]  # fmt: skip
        # As pg_regress compares: blanks do not count.
        if any(text.split() == said.split() for text in wanted):
            results.append(Result(name, "pass"))
        else:
            least = min(differences, key=len, default=["there is no expected output"])
            results.append(Result(name, "fail", cause(least) + "\n" + "\n".join(least[:400])))
        print(f"{name:40} {results[-1].status} {results[-1].detail.splitlines()[0] if results[-1].detail else ''}", flush=True)
    context.close(server)
    return results
