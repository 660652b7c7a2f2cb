"""Drizzle: drizzle-kit makes migrations of a schema and of its second version, applies them, pushes and pulls the schema; then queries."""

import os
import shutil
import subprocess

from report import Result, read_results


def run(context):
    folder = context.work / "drizzle"
    shutil.copytree(context.folder, folder)
    (folder / "node_modules").symlink_to(context.cache / "drizzle/node_modules")
    second = subprocess.run(["node", "make_schema2.js", "schema1.ts"], cwd=folder, capture_output=True, text=True, check=True)
    (folder / "schema2.ts").write_text(second.stdout)
    server, pushed = context.server("server"), context.server("pushed")
    results = folder / "results"
    steps = []

    def step(name, command, at=server, wanted=None):
        """A command; what it must print, if anything. Later steps run whatever comes of it."""
        url = f"postgres://postgres@{at.host}:{at.port}/postgres"
        environment = {**os.environ, "SUITE_URL": url, "SUITE_RESULTS": str(results), "NO_COLOR": "1", "CI": "1", "TZ": "UTC"}
        try:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
            said, good = done.stdout + done.stderr, done.returncode == 0
        except subprocess.TimeoutExpired:
            said, good = "more than 120 s", False
        good = good and "error:" not in said.lower() and (wanted is None or wanted in said)
        # The line that has the error, first.
        first = next((line for line in said.splitlines() if "error" in line.lower() and "Reading config" not in line), "")
        steps.append(Result(name, "pass" if good else "fail", "" if good else f"{first}\n{said[-3000:]}"))

    def configure(schema, out="migrations"):
        url = "dbCredentials: { url: process.env.SUITE_URL! }"
        (folder / "drizzle.config.ts").write_text(
            f"export default {{ dialect: 'postgresql', schema: './{schema}.ts', out: './{out}', {url} }};\n"
        )

    kit = ["node", "node_modules/drizzle-kit/bin.cjs"]
    config = "--config=drizzle.config.ts"
    configure("schema1")
    step("generate the first migration", [*kit, "generate", config, "--name=one"], wanted="migration file")
    step("migrate", [*kit, "migrate", config])
    step("push to an empty database", [*kit, "push", "--force", config], pushed, "Changes applied")
    step("push again", [*kit, "push", "--force", config], pushed, "[✓]")
    configure("schema2")
    step("generate the second migration", [*kit, "generate", config, "--name=two"], wanted="migration file")
    step("migrate from the first to the second", [*kit, "migrate", config])
    step("migrate again: nothing to do", [*kit, "migrate", config])
    step("push after the migrations", [*kit, "push", "--force", config], server, "[✓]")
    step("push the second version over the first", [*kit, "push", "--force", config], pushed, "Changes applied")
    configure("schema2", "pulled")
    step("pull the schema", [*kit, "pull", config], wanted="[✓]")
    bundle = ["node_modules/esbuild/bin/esbuild", "queries.ts", "--bundle", "--platform=node", "--external:pg-native", "--log-level=error"]
    step("bundle the queries", [*bundle, "--outfile=queries.js"])
    step("run the queries", ["node", "queries.js"])
    found = read_results(results)
    context.close(server)
    context.close(pushed)
    return steps + found
