"""Django's own tests, those that work on the database, group by group: `apps.txt`."""


def groups(context):
    """The groups of apps; those with an app that was asked for, if any was."""
    lines = (context.folder / "apps.txt").read_text().splitlines()
    every = [line.split() for line in lines if line and not line.startswith("#")]
    if context.only:
        # Somebody may want an app that is not in the list, or a single test.
        return [[label] for label in context.only]
    return every


def crutches(server) -> str:
    """What Django's tests need everywhere and the server does not have, by name: something stands in (logstead_settings.py), so that it
    costs its own tests, not whole apps."""
    missing = []
    if not server.execute("SELECT FROM pg_collation WHERE collname = 'sv-x-icu'"):
        missing.append("collations")
    if not server.execute("SELECT FROM pg_available_extensions WHERE name = 'pgcrypto'"):
        missing.append("extensions")
    return ",".join(missing)


def run(context):
    python = context.cache / "django/bin/python"
    tests = next(iter((context.cache / "django/source").glob("*/tests")))
    log = context.log("django")
    results = []
    for number, apps in enumerate(groups(context)):
        server = context.server(f"server{number}")
        command = [python, "runtests.py", "--settings=logstead_settings", "--parallel=1", "--noinput", "-v", "0", *apps]
        environment = {"PYTHONPATH": str(context.folder), "SUITE_PORT": str(server.port)}
        environment["SUITE_CRUTCHES"] = crutches(server)
        results += context.run(command, context.work / f"{apps[0]}", log, 1200, environment, tests)
        print(f"   {' '.join(apps)}: {len(results)} results", flush=True)
        context.close(server)
    return results
