"""PostgreSQL 15's own regression scripts, statement by statement, beside a PostgreSQL 15.

The scripts run in the order of their schedule in one database, as pg_regress runs them. What PostgreSQL answers is recorded once into the cache, from
two runs: a statement that it answers differently the second time (times, process numbers) is skipped. A statement agrees if the rows and the
names of their columns, the command tag, or SQLSTATE and message are the same; without ORDER BY rows may come in any order. What `comparison.py`
finds is told by causes. `known.txt` names the statements that differ, by script and line; `scripts.txt` has the shares of each script.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import comparison  # noqa: E402
from psql import Answer, Session  # noqa: E402

# psql's own tests, and one that a server with another encoding than UTF-8 is for.
LEFT_OUT = {"psql", "psql_crosstab", "euc_kr", "collate.linux.utf8", "collate.icu.utf8"}
# What scripts need that others make, for `--only`.
NEEDED = {
    "": ["test_setup"],
    "join": ["create_index", "create_misc"],
    "aggregates": ["create_index", "create_aggregate"],
    "with": ["create_misc"],
    "select_parallel": ["create_misc"],
    "select_views": ["create_view"],
    "amutils": ["geometry", "create_index_spgist", "hash_index", "brin"],
}


def schedule(source: Path) -> list[str]:
    """The scripts in order."""
    lines = (source / "parallel_schedule").read_text().splitlines()
    names = [name for line in lines if line.startswith("test:") for name in line.removeprefix("test:").split()]
    return [name for name in names if name not in LEFT_OUT]


def run_scripts(server, source: Path, work: Path, names: list[str], tell, expected: dict | None = None) -> dict[str, list[Answer]]:
    """Runs scripts one after the other."""
    folder = work / "regress"
    if not folder.exists():
        shutil.copytree(source, folder)
        (folder / "results").mkdir()
        (folder / "testtablespace").mkdir()
        for path in (folder / "results", folder / "testtablespace", *(folder / "data").iterdir()):
            path.chmod(0o777)
    folders = {"PG_ABS_SRCDIR": str(folder), "PG_ABS_BUILDDIR": str(folder), "PG_LIBDIR": "$libdir", "PG_DLSUFFIX": ".so"}
    server.execute("CREATE DATABASE regression")
    answers = {}
    for name in names:
        if not server.running():
            server.start()
        takes_data = {
            record["line"]
            for record in (expected or {}).get(name, [])
            if re.search(r"(?i)\bfrom\s+stdin\b", record["sql"]) and record["results"][-1][0] == "tag"
        }
        answers[name] = Session(server, "regression", folders, takes_data).run(folder / "sql" / f"{name}.sql")
        tell(name, answers[name])
    return answers


def recorded(context, source: Path, names: list[str]) -> dict[str, list]:
    """PostgreSQL's answers, from the cache, or recorded now. None stands for one that was not the same twice."""
    readers = b"".join((HERE / name).read_bytes() for name in ("script.py", "psql.py"))
    path = context.cache / f"regress-{source.parent.name}-{hashlib.sha256(readers + str(names).encode()).hexdigest()[:10]}.json.gz"
    if not path.exists():
        from harness import PostgresServer

        runs = []
        for number in (1, 2):
            print(f"recording PostgreSQL's answers, run {number} of 2", flush=True)
            with tempfile.TemporaryDirectory(prefix="logstead-regress-") as work:
                os.chmod(work, 0o755)
                server = PostgresServer(Path(work) / "server")
                server.start()
                try:
                    runs.append(run_scripts(server, source, Path(work), names, lambda name, _: print(name, end=" ", flush=True)))
                    print()
                finally:
                    server.kill()
        found = {}
        for name in names:
            first, second = runs[0][name], runs[1][name]
            found[name] = [
                asdict(answer) | {"steady": at < len(second) and second[at] == answer}
                for at, answer in enumerate(first)
            ]
        part = path.with_suffix(".part")
        with gzip.open(part, "wt") as out:
            json.dump(found, out)
        part.rename(path)
    with gzip.open(path, "rt") as stored:
        return json.load(stored)


def run(context):
    from report import Result

    source = Path(os.environ["SUITE_POSTGRES_SOURCE"]) / "regress"
    names = schedule(source)
    expected = recorded(context, source, names)
    wanted = names
    if context.only:
        wanted = [name for name in names if any(re.fullmatch(only, name) for only in context.only)]
        needed = {need for name in wanted for need in NEEDED.get(name, ["create_index"])} | set(NEEDED[""])
        names = [name for name in names if name in needed or name in wanted]
    server = context.server("server")
    log = context.log("regress")
    tables = {}
    results = []

    def tell(name: str, answers: list[Answer]) -> None:
        if name not in wanted:
            return
        verdicts = comparison.compare(name, expected[name], answers)
        table = tables[name] = comparison.Shares()
        with log.open("a") as out:
            for verdict in verdicts:
                table.count(verdict)
                results.append(Result(f"{name}:{verdict.place}", verdict.status, verdict.detail))
                if verdict.status == "fail":
                    out.write(f"==== {name}:{verdict.place}\n{verdict.detail}\n\n")
        print(f"{name:24} {table.text()}", flush=True)

    run_scripts(server, source, context.work, names, tell, expected)
    context.close(server)
    total = comparison.Shares()
    for table in tables.values():
        total.add(table)
    print(f"{'all':24} {total.text()}")
    print(total.closing())
    for cause, count in sorted(total.causes.items(), key=lambda item: -item[1]):
        print(f"{count:6} x {cause}")
    if context.update and not context.only:
        lines = ["# script, statements, that agree, missing by name, refused by name, plans of EXPLAIN that differ, the rest: ./test suites regress --update"]
        lines += [f"{name} {table.row()}" for name, table in tables.items()]
        (context.folder / f"scripts-{context.kind.name}.txt").write_text("\n".join([*lines, f"all {total.row()}"]) + "\n")
    return results
