"""SQL semantics: every script of tests/sql prints exactly what PostgreSQL 15 prints."""

import difflib
import os
import re

import golden
import isolation
import pytest
from harness import ServerError


# With several instances (E2E_INSTANCES) tables are divided, and rows do not lie as they were inserted. What these scripts print rests on
# that: the first row of a cursor, aggregates in the order of rows, which row violates a constraint first, correlations.
ROWS_AS_INSERTED = frozenset("current_of cursors deferrable foreign_keys json_functions statistics triggers".split())
# Rows come in another order from COPY, and among equals: lines are compared as they come by their letters.
UNORDERED = frozenset("copy query_forms row_security types_geometry types_network types_user_ranges".split())

# psql prints a line of hyphens below the names of columns, and how many rows there are behind the last one.
HEAD = re.compile(r"-+(\+-+)*")
ROWS = re.compile(r"\(\d+ rows?\)")


def without_order(text: str) -> str:
    """What psql printed, but the rows of a result sorted if its statement says ORDER BY nowhere: SQL leaves their order open, and rows
    of a divided table come by its partitions. Of plans what EXPLAIN says of partitions is left out.
    """
    lines, said, first = [], "", None
    for line in text.splitlines():
        if first is None:
            said += line
            if HEAD.fullmatch(line):
                first = len(lines) + 1
        elif ROWS.fullmatch(line):
            if lines[first - 2].strip() == "QUERY PLAN":
                plan = [line for line in lines[first:] if not line.strip().startswith("Partitions: ")]
                # The longest line says how wide all of it is.
                lines[first - 2 :] = ["QUERY PLAN", *plan]
                line = f"({len(plan)} rows)"
            elif "order by" not in said.lower():
                lines[first:] = sorted(lines[first:])
            said, first = "", None
        lines.append(line)
    return "\n".join(lines)


def assert_same(found: str, expected: str, name: str) -> None:
    """Fails with a readable difference."""
    if os.environ.get("E2E_INSTANCES"):
        by_letters = name.removesuffix(".sql") in UNORDERED
        found, expected = (
            "\n".join(sorted(text.splitlines())) if by_letters else text for text in (without_order(found), without_order(expected))
        )
    if found != expected:
        lines = list(
            difflib.unified_diff(
                expected.splitlines(), found.splitlines(), f"{name} (PostgreSQL 15)", f"{name} (here)", n=3, lineterm=""
            )
        )
        shown = "\n".join(lines[:150])
        more = f"\n... and {len(lines) - 150} more lines" if len(lines) > 150 else ""
        pytest.fail(f"{name} differs:\n{shown}{more}", pytrace=False)


@pytest.mark.parametrize("script", golden.scripts(), ids=lambda path: path.stem)
def test_sql(server, script):
    if os.environ.get("E2E_INSTANCES") and script.stem in ROWS_AS_INSERTED:
        pytest.skip("rows of a divided table do not lie as they were inserted")
    assert_same(golden.run(server, script), golden.expected(script).read_text(), script.name)


@pytest.mark.parametrize("script", isolation.scripts(), ids=lambda path: path.stem)
def test_isolation(server, script):
    assert_same(isolation.run(server, script), isolation.expected(script).read_text(), script.name)


# What is to be absent, and how a server is told.
ABSENT = {
    # One in four operations on rows finds absent what is there: it has to wait, and begin again.
    "played": ["--absent-one-in", "4"],
    # Whatever the newest checkpoint has is out of memory at once.
    "evicted": ["--evict-always", "--checkpoint-interval", "50ms"],
}


@pytest.fixture(scope="module", params=("played", pytest.param("evicted", marks=pytest.mark.long)))
def absent(request, server_kind, tmp_path_factory):
    """A server to which rows are not in memory."""
    if server_kind.name == "postgres":
        pytest.skip("PostgreSQL has no such thing")
    arguments = ABSENT[request.param]
    server = server_kind(tmp_path_factory.mktemp("absent"))
    try:
        server.start(arguments)
    except ServerError as error:
        if f"unexpected argument '{arguments[0]}'" in str(error):
            pytest.skip("this program does not play that")
        raise
    yield server
    server.stop()


# The same in process is a test of crates/sql/session (`golden`), which takes a tenth of the time.
@pytest.mark.long
@pytest.mark.parametrize("script", golden.scripts(), ids=lambda path: path.stem)
def test_sql_with_rows_absent(absent, script):
    assert_same(golden.run(absent, script), golden.expected(script).read_text(), script.name)


@pytest.mark.parametrize("script", isolation.scripts(), ids=lambda path: path.stem)
def test_isolation_with_rows_absent(absent, script):
    assert_same(isolation.run(absent, script), isolation.expected(script).read_text(), script.name)
