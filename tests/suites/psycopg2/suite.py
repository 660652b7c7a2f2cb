"""psycopg2's own tests (PostgreSQL's older driver of Python)."""

import shutil


def run(context):
    server = context.server("server")
    there = {name for (name,) in server.execute("SELECT name::text FROM pg_available_extensions")}
    if "hstore" in there:
        server.execute("CREATE EXTENSION hstore")
    # The archive's own package is not compiled: only the tests are taken, and the driver is the one that is installed.
    folder = context.work / "psycopg2"
    source = next((context.cache / "psycopg2/source").glob("psycopg2-*/tests"))
    shutil.copytree(source, folder / "tests")
    shutil.copy(context.folder / "conftest.py", folder / "conftest.py")
    environment = {
        "PSYCOPG2_TESTDB": "postgres",
        "PSYCOPG2_TESTDB_HOST": server.host,
        "PSYCOPG2_TESTDB_PORT": str(server.port),
        "PSYCOPG2_TESTDB_USER": "postgres",
        "PGSSLMODE": "disable",
    }
    command = [context.cache / "psycopg2/bin/python", "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "tests"]
    for word in context.only:
        command += ["-k", word]
    results = context.run(command, context.work / "results", context.log("psycopg2"), 1800, environment, folder)
    context.close(server)
    return results
