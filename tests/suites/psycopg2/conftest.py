"""A record of how each test ended."""

import json
import os


def pytest_runtest_logreport(report):
    if report.when != "call" and report.outcome == "passed":
        return
    status = {"passed": "pass", "failed": "fail", "skipped": "skip"}[report.outcome]
    detail = ""
    if status == "fail":
        crash = getattr(report.longrepr, "reprcrash", None)
        detail = f"{crash.message if crash else ''}\n{report.longreprtext[-3000:]}"
    name = report.nodeid.removeprefix("tests/")
    with open(os.environ["SUITE_RESULTS"], "a") as out:
        print(json.dumps({"name": name, "status": status, "detail": detail}), file=out)
