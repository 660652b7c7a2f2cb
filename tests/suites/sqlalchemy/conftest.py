"""SQLAlchemy's own pytest plugin, and a record of how each test ended."""

import json
import os
import re

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F401, F403


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if report.when != "call" and report.outcome == "passed":
        return
    status = {"passed": "pass", "failed": "fail", "skipped": "skip"}[report.outcome]
    detail = ""
    if status == "fail":
        crash = getattr(report.longrepr, "reprcrash", None)
        detail = f"{crash.message if crash else ''}\n{report.longreprtext[-3000:]}"
    # A class's name has the server's version in it.
    name = re.sub(r"_postgresql\+psycopg(_\d+)*", "", report.nodeid.partition("::")[2])
    with open(os.environ["SUITE_RESULTS"], "a") as out:
        print(json.dumps({"name": name, "status": status, "detail": detail}), file=out)


from sqlalchemy.dialects.postgresql import provision  # noqa: E402

# Extensions that a server does not have cost the tests that need them, not the whole run.
provision._extensions[:] = [pair for pair in provision._extensions if pair[0] in os.environ["SUITE_EXTENSIONS"].split(",")]
