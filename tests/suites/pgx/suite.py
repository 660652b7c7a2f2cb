"""pgx's own tests (the PostgreSQL driver of Go), those of its packages that ask a server."""

import json
import os
import re
import shutil
import subprocess

from report import Result

# Roles with passwords would end trust on loopback for everybody; the tests of passwords and TLS are skipped without their settings.
SETUP = [
    "CREATE DOMAIN uint64 AS numeric(20,0)",
    """CREATE USER " tricky, ' } "" \\ test user " SUPERUSER""",
]
EXTENSIONS = ["hstore", "ltree"]
LIMIT_S = 1200


def run(context):
    server = context.server("server")
    server.execute(*SETUP)
    there = {name for (name,) in server.execute("SELECT name::text FROM pg_available_extensions")}
    for name in EXTENSIONS:
        if name in there:
            server.execute(f"CREATE EXTENSION {name}")
    # The package in Go's cache is read-only, and its tests are run where its go.mod is.
    source = context.work / "pgx"
    shutil.copytree(os.environ["SUITE_PGX_SOURCE"], source, copy_function=shutil.copyfile)
    for folder in [source, *(path for path in source.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)
    environment = {
        **os.environ,
        "GOFLAGS": "-mod=mod -buildvcs=false",
        "PGX_TEST_DATABASE": f"host={server.host} port={server.port} user=postgres dbname=postgres sslmode=disable",
    }
    command = [os.environ["SUITE_GO"], "test", "-p", "1", "-json", "-count=1", f"-timeout={LIMIT_S // 2}s"]
    for word in context.only:
        command += ["-run", word]
    log = context.log("pgx")
    try:
        done = subprocess.run(
            [*command, "./..."], cwd=source, env=environment, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL
        )  # fmt: skip
        said, ended = done.stdout, done.stderr[-2000:]
    except subprocess.TimeoutExpired as late:
        said, ended = (late.stdout or b"").decode(errors="replace"), f"more than {LIMIT_S} s"
    log.write_text(said)
    context.close(server)
    return results(said, ended)


def errors(told: str) -> str:
    """What a test said, the line that has the error first."""
    lines = [line for line in told.splitlines() if not line.lstrip().startswith(("=== ", "--- "))]
    server = next((found.group(0) for line in lines if (found := re.search(r"ERROR: .*\(SQLSTATE \w+\)", line))), None)
    checked = next((line.split("Error:", 1)[1].strip() for line in lines if "Error:" in line), None)
    other = next((re.sub(r"^\s*\w+\.go:\d+: ", "", line) for line in lines if line.strip()), "")
    return "\n".join([server or checked or other, *lines])[:3000]


def results(said: str, ended: str) -> list[Result]:
    """What `go test -json` told: tests by package, without those that are only parts of others."""
    told: dict[str, str] = {}
    status: dict[str, str] = {}
    started: set[str] = set()
    for line in said.splitlines():
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if "Test" not in event:
            continue
        package = re.sub(r"^github.com/jackc/pgx/v5/?", "", event["Package"]) or "pgx"
        name = f"{package}: {event['Test']}"
        if event["Action"] == "run":
            started.add(name)
        elif event["Action"] == "output":
            told[name] = told.get(name, "") + event["Output"]
        elif event["Action"] in ("pass", "fail", "skip"):
            status[name] = event["Action"]
    # One that began and has no end: the run ended before it.
    for name in started - set(status):
        status[name] = "fail"
    parents = {name.rsplit("/", 1)[0] for name in status if "/" in name}
    found = [Result(name, status[name], errors(told.get(name, ""))) for name in sorted(status) if name not in parents]
    return found or [Result("go test", "fail", ended)]
