"""asyncpg's own tests (the PostgreSQL driver of Python's asyncio), against a server that runs already.

Those of its tests that start clusters of their own, to change their settings, skip themselves then.
"""

import shutil


def run(context):
    server = context.server("server")
    there = {name for (name,) in server.execute("SELECT name::text FROM pg_available_extensions")}
    if "hstore" in there:
        server.execute("CREATE EXTENSION hstore")
    # The archive's own package is not compiled: only the tests are taken, and the driver is the one that is installed.
    folder = context.work / "asyncpg"
    source = next((context.cache / "asyncpg/source").glob("asyncpg-*/tests"))
    shutil.copytree(source, folder / "tests")
    shutil.copy(context.folder / "conftest.py", folder / "conftest.py")
    environment = {"PGHOST": server.host, "PGPORT": str(server.port), "PGUSER": "postgres", "PGDATABASE": "postgres", "PGSSLMODE": "disable"}
    command = [context.cache / "asyncpg/bin/python", "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "tests"]
    # Neither the style of its source nor clusters that it starts itself are the server's business.
    command += ["--ignore=tests/test__sourcecode.py", "--ignore=tests/test__environment.py"]
    command += ["--deselect=tests/test_connect.py::TestConnectionAttributes"]
    for word in context.only:
        command += ["-k", word]
    results = context.run(command, context.work / "results", context.log("asyncpg"), 1800, environment, folder)
    context.close(server)
    return results
