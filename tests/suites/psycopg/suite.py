"""psycopg's own tests (PostgreSQL's driver of Python, version 3).

Left out: its pool of connections, which is about threads; what takes long or measures time; and what needs other packages than the driver.
"""

import shutil


def run(context):
    server = context.server("server")
    there = {name for (name,) in server.execute("SELECT name::text FROM pg_available_extensions")}
    if "hstore" in there:
        server.execute("CREATE EXTENSION hstore")
    # Only the tests are taken: the driver is the one that is installed.
    folder = context.work / "psycopg"
    source = next((context.cache / "psycopg/source").glob("psycopg-*"))
    shutil.copytree(source / "tests", folder / "tests")
    # Their proxy.
    shutil.copytree(source / "tools", folder / "tools")
    shutil.copy(source / "pyproject.toml", folder / "pyproject.toml")
    shutil.copy(context.folder / "conftest.py", folder / "conftest.py")
    target = f"host={server.host} port={server.port} user=postgres dbname=postgres sslmode=disable"
    environment = {"PSYCOPG_TEST_DSN": target, "PGSSLMODE": "disable"}
    command = [context.cache / "psycopg/bin/python", "-m", "pytest", "-q", "--tb=short", "tests"]
    command += ["--ignore=tests/pool", "--ignore=tests/crdb", "--ignore=tests/test_typing.py", "--ignore=tests/test_gevent.py"]
    command += ["-m", "not slow and not timing and not flakey and not numpy and not postgis"]
    # Whether a proxy that is stopped has passed the answer on is a race.
    command += [f"--deselect=tests/{name}::test_wait_remote_closed" for name in ("test_waiting.py", "test_waiting_async.py")]
    for word in context.only:
        command += ["-k", word]
    results = context.run(command, context.work / "results", context.log("psycopg"), 2400, environment, folder)
    context.close(server)
    return results
