"""`./test suites [NAME...]`: suites of real programs against Logstead, or against a PostgreSQL 15 (`--server postgres`).

Each suite is a folder with `suite.py`, whose `run(context)` gives results. What fails and may fail stands in its `known.txt`
(report.py); `--update` writes these files and the shares anew, which is the way to take over mended tests.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import report  # noqa: E402
from harness import KINDS, Server  # noqa: E402

SUITES = [
    "sqlalchemy", "django", "logic", "sysbench", "drizzle", "rails", "pgx", "asyncpg", "psycopg", "psycopg2", "orms", "regress", "isolation",
]  # fmt: skip


@dataclass
class Context:
    """What a suite gets: servers, a place for files, and which of its tests are wanted."""

    folder: Path
    cache: Path
    work: Path
    kind: type
    only: list[str]
    update: bool
    servers: list[Server] = field(default_factory=list)
    troubles: list[report.Result] = field(default_factory=list)

    def server(self, name: str) -> Server:
        """A new server with an empty database."""
        server = self.kind(self.work / name)
        server.start()
        self.servers.append(server)
        return server

    def close(self, server: Server) -> None:
        """Stops a server. One that panicked or ended by itself is a failed test of its own."""
        self.servers.remove(server)
        said = server.output_text()
        if not server.running():
            self.troubles.append(report.Result(f"server {server.root.name}", "fail", f"the server ended\n{said[-4000:]}"))
        elif "panicked at" in said:
            where = said.index("panicked at")
            self.troubles.append(report.Result(f"server {server.root.name}", "fail", f"the server {said[where : where + 4000]}"))
        server.kill()
        shutil.rmtree(server.root, ignore_errors=True)

    def log(self, name: str) -> Path:
        """A new file for what a suite's own runner prints."""
        path = self.cache / f"{name}-{self.kind.name}.log"
        path.unlink(missing_ok=True)
        return path

    def run(self, command: list, results: Path, log: Path, timeout_s: float, env: dict, cwd: Path) -> list[report.Result]:
        """Runs a suite's own runner, which writes `results`; one that takes too long or says nothing is a failed test."""
        results.unlink(missing_ok=True)
        environment = {**os.environ, "SUITE_RESULTS": str(results), "PYTHONDONTWRITEBYTECODE": "1", **env}
        with log.open("a") as out:
            try:
                done = subprocess.run(
                    [str(part) for part in command], cwd=cwd, env=environment, timeout=timeout_s,
                    stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                )  # fmt: skip
                ended = f"ended with {done.returncode}"
            except subprocess.TimeoutExpired:
                ended = f"took more than {timeout_s:.0f} s"
        found = report.read_results(results)
        if not found or "took" in ended:
            tail = "".join(log.read_text(errors="replace").splitlines(keepends=True)[-30:])
            found.append(report.Result(f"run {results.stem}", "fail", f"the runner {ended}\n{tail}"))
        return found


def load(name: str):
    """The module of a suite."""
    spec = importlib.util.spec_from_file_location(f"suite_{name}", HERE / name / "suite.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def run_suite(name: str, arguments, cache: Path) -> tuple[str, bool]:
    """Runs one suite and judges it."""
    with tempfile.TemporaryDirectory(prefix=f"logstead-suite-{name}-") as work:
        # PostgreSQL runs as a user of its own.
        os.chmod(work, 0o755)
        context = Context(HERE / name, cache, Path(work), KINDS[arguments.server], arguments.only, arguments.update)
        try:
            results = load(name).run(context)
        finally:
            for server in list(context.servers):
                context.close(server)
    results += context.troubles
    known = report.Known.read(HERE / name / ("known_postgres.txt" if arguments.server == "postgres" else "known.txt"))
    log = cache / f"suite-{name}-{arguments.server}.failures"
    told = report.judge(name, arguments.server, results, known, log)
    if arguments.update:
        known.update(results)
        if not arguments.only:
            ran = [result for result in results if result.status != "skip"]
            report.record_share(name, arguments.server, sum(result.status == "pass" for result in ran), len(ran))
    return told


def main() -> int:
    parser = argparse.ArgumentParser(prog="./test suites")
    parser.add_argument("suites", nargs="*", metavar="NAME", help=f"of {', '.join(SUITES)}; all unless named")
    parser.add_argument("--server", default="logstead", choices=sorted(KINDS))
    parser.add_argument("--only", action="append", default=[], help="part of a suite: an app of Django's, a file of logic's, a script of regress")
    parser.add_argument("--update", action="store_true", help="write the known failures and shares anew")
    arguments = parser.parse_args()
    for name in arguments.suites:
        if name not in SUITES:
            parser.error(f"there is no suite {name}: {', '.join(SUITES)}")
    cache = Path(os.environ["SUITES_CACHE"])
    cache.mkdir(parents=True, exist_ok=True)
    closings, good = [], True
    for name in arguments.suites or SUITES:
        print(f"== {name} on {arguments.server}", flush=True)
        closing, fine = run_suite(name, arguments, cache)
        closings.append(closing)
        good = good and fine
    print("\n".join(closings))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
