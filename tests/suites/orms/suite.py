"""Programs that use object-relational mappers, query builders and drivers as applications do: a schema is made, looked at and changed, rows are
written and read in every way that a library has, and errors are met.

Each program prints a line per step. `expected/` has the lines that PostgreSQL 15 led to: `SUITE_RECORD=1 ./test suites orms --server postgres` writes them.
"""

import os
import shutil
import subprocess

from report import Result

# What is run for each program; `python` and `node` stand for those of the suite.
PROGRAMS = {
    "alembic": ["python", "alembic_program.py"],
    "drivers": ["node", "drivers.mjs"],
    "knex": ["node", "knex.cjs"],
    "kysely": ["node", "kysely.mjs"],
    "peewee": ["python", "peewee_program.py"],
    "pony": ["python", "pony_program.py"],
    "prisma": ["node", "node_modules/tsx/dist/cli.mjs", "prisma/program.mts"],
    "sequelize": ["node", "sequelize.cjs"],
    "tortoise": ["python", "tortoise_program.py"],
    "typeorm": ["node", "typeorm.js"],
}
GENERATE = ["node", "../node_modules/prisma/build/index.js", "generate"]


def steps(text):
    """Lines of steps by name; what stands twice is numbered. Other lines are warnings of libraries."""
    found = {}
    for line in text.splitlines():
        verdict, _, rest = line.partition(" ")
        name, tab, value = rest.partition("\t")
        if verdict not in ("OK", "ERR") or not tab:
            continue
        number = sum(1 for known in found if known == name or known.startswith(f"{name} (")) + 1
        found[name if number == 1 else f"{name} ({number})"] = f"{verdict} {value}"
    return found


def run(context):
    folder = context.work / "orms"
    shutil.copytree(context.folder, folder)
    (folder / "node_modules").symlink_to(context.cache / "orms-node/node_modules")
    environment = {
        **os.environ, "NO_COLOR": "1", "CI": "1", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1", "NODE_NO_WARNINGS": "1",
        # Prisma fetches a program from its makers that migrations need and these steps do not: any file will do in its place.
        "PRISMA_SCHEMA_ENGINE_BINARY": shutil.which("true"), "CHECKPOINT_DISABLE": "1",
    }  # fmt: skip
    python = str(context.cache / "orms/bin/python")
    programs = {name: command for name, command in PROGRAMS.items() if not context.only or name in context.only}
    if "typeorm" in programs:
        subprocess.run(["node", "compile.cjs"], cwd=folder, env=environment, check=True, timeout=300)
    if "prisma" in programs:
        told = {**environment, "SUITE_URL": "postgres://localhost/none"}
        subprocess.run(GENERATE, cwd=folder / "prisma", env=told, capture_output=True, check=True, timeout=300)
    results = []
    for name, command in programs.items():
        server = context.server(name)
        told = {**environment, "SUITE_URL": f"postgres://postgres@{server.host}:{server.port}/postgres"}
        command = [python if word == "python" else word for word in command]
        try:
            done = subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
            found, said = steps(done.stdout), done.stdout[-1500:] + done.stderr[-1500:]
        except subprocess.TimeoutExpired as slow:
            found, said = steps((slow.stdout or b"").decode()), "took more than 600 s"
        context.close(server)
        path = context.folder / "expected" / f"{name}.txt"
        if os.environ.get("SUITE_RECORD") and context.kind.name == "postgres":
            path.write_text("".join(f"{step}\t{line}\n" for step, line in found.items()))
        wanted = dict(line.split("\t", 1) for line in path.read_text().splitlines())
        for step, line in wanted.items():
            if found.get(step) == line:
                results.append(Result(f"{name}: {step}", "pass"))
            else:
                detail = f"wanted {line}\nfound  {found.get(step, 'nothing')}\n{said if step not in found else ''}"
                results.append(Result(f"{name}: {step}", "fail", detail))
    return results
