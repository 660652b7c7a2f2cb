"""Settings for Django's own tests: two databases of one server, which Django makes itself, and a record of how each test ended."""

import json
import os
import traceback
import unittest

from django.test.runner import DiscoverRunner


def database(name):
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": "127.0.0.1",
        "PORT": os.environ["SUITE_PORT"],
        "USER": "postgres",
        # The tests' own is made by this name with `test_` in front.
        "NAME": name,
    }


DATABASES = {"default": database("default"), "other": database("other")}
missing = os.environ.get("SUITE_CRUTCHES", "").split(",")
SECRET_KEY = "django_tests_secret_key"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "logstead_settings.Runner"


def record(test, status, err=None):
    detail = ""
    if err:
        kind, error, trace = err
        detail = f"{kind.__name__}: {error}\n" + "".join(traceback.format_exception(kind, error, trace))[-4000:]
    name = test.id() if hasattr(test, "id") else str(test)
    with open(os.environ["SUITE_RESULTS"], "a") as out:
        print(json.dumps({"name": name, "status": status, "detail": detail}), file=out)


class Result(unittest.TextTestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        record(test, "pass")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        record(test, "pass")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        record(test, "skip")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        record(test, "fail", err)

    def addError(self, test, err):
        super().addError(test, err)
        record(test, "fail", err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            record(test, "fail", err)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        record(test, "fail")


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Result


def extensions_that_are_there():
    """Migrations ask for extensions; those that the server does not have cost the tests that need them."""
    from django.contrib.postgres.operations import CreateExtension

    create = CreateExtension.database_forwards

    def only_if_available(self, app_label, schema_editor, from_state, to_state):
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT FROM pg_available_extensions WHERE name = %s", [self.name])
            if not cursor.rowcount:
                return
        create(self, app_label, schema_editor, from_state, to_state)

    CreateExtension.database_forwards = only_if_available


if "extensions" in missing:
    extensions_that_are_there()
if "collations" in missing:
    from django.db.backends.postgresql.features import DatabaseFeatures

    DatabaseFeatures.test_collations = dict.fromkeys(DatabaseFeatures.test_collations, "C")
