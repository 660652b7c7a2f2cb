"""SQLAlchemy's dialect compliance suite, over psycopg."""

import shutil


def run(context):
    server = context.server("server")
    # The suite expects these two schemas to be there.
    server.execute("CREATE SCHEMA test_schema", "CREATE SCHEMA test_schema_2")
    there = ",".join(name for (name,) in server.execute("SELECT name::text FROM pg_available_extensions"))
    # Its plugin writes beside its settings.
    folder = context.work / "sqlalchemy"
    shutil.copytree(context.folder, folder)
    python = context.cache / "sqlalchemy/bin/python"
    url = f"postgresql+psycopg://postgres@{server.host}:{server.port}/postgres"
    command = [python, "-m", "pytest", "-q", f"--dburi={url}", "test_suite.py"]
    for word in context.only:
        command += ["-k", word]
    results = context.run(command, context.work / "results", context.log("sqlalchemy"), 3600, {"SUITE_EXTENSIONS": there}, folder)
    context.close(server)
    return results
