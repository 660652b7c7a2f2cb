"""A program is a row of steps: each prints its name and what came of it, a value or an error, in one line (step.cjs is the same)."""

import os
import re

URL = os.environ["SUITE_URL"]
PORT = int(URL.split(":")[-1].split("/")[0])


def steady(text):
    """What differs from run to run, by a word for it."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID", text)
    text = re.sub(r"20[2-9]\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+00:?(00)?)?", "TIME", text)
    return text.replace("\n", " ")


def ok(name, value):
    print(f"OK {name}\t{'' if value is None else steady(repr(value))}", flush=True)


def failed(name, error):
    """The driver's error inside of whatever the library made of it."""
    inner = getattr(error, "orig", None) or error
    inner = getattr(inner, "__cause__", None) or inner
    state = getattr(inner, "sqlstate", None) or getattr(inner, "pgcode", None) or ""
    print(f"ERR {name}\t{type(error).__name__} {state} {steady(str(inner))}", flush=True)


def step(name, work):
    try:
        ok(name, work())
    except Exception as error:  # Whatever the library raises is what is compared.
        failed(name, error)
