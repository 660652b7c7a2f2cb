"""`logstead.as_of`: the database as it was, read beside the one that goes on, by the clients people use."""

from __future__ import annotations

import contextlib
import threading

import psycopg
import pytest
from objectserver import ObjectServer, home
from objectstores import start as start_store
from test_branches import at_data, tool

pytestmark = pytest.mark.logstead_only

OFTEN = ("--checkpoint-interval", "100ms")
ROWS = 2000

SETUP = (
    "CREATE TABLE t (id int PRIMARY KEY, v text, n int)",
    "CREATE INDEX t_v ON t (v)",
    "CREATE TABLE other (id serial PRIMARY KEY, t int REFERENCES t, note text DEFAULT 'then')",
    "CREATE TABLE gone (a int)",
    f"INSERT INTO t SELECT g, 'v' || g % 50, 1 FROM generate_series(1, {ROWS}) AS g",
    "INSERT INTO other (t) SELECT g FROM generate_series(1, 100) AS g",
    "INSERT INTO gone VALUES (7)",
    "SELECT logstead_create_restore_point('then')",
)
# All that can become of it.
SINCE = (
    "UPDATE t SET n = 2 WHERE id <= 1000",
    "DELETE FROM other WHERE id > 50",
    "DELETE FROM t WHERE id > 1500",
    "DROP TABLE gone",
    "ALTER TABLE t ADD COLUMN later int DEFAULT 5",
    "ALTER TABLE other RENAME TO others",
    "CREATE TABLE new (a int)",
    "TRUNCATE others",
    "DROP INDEX t_v",
    "CREATE INDEX t_n ON t (n)",
    "INSERT INTO t SELECT g, 'new', 3, 4 FROM generate_series(10001, 10500) AS g",
)


def refused(connection, statement: str, sqlstate: str) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(statement)
    assert caught.value.sqlstate == sqlstate, f"{statement}: {caught.value.sqlstate} {caught.value}"
    return caught.value


def holds_then(connection) -> None:
    """Reads in all ways, and finds what was there."""

    def rows(statement: str, *parameters) -> list:
        return connection.execute(statement, parameters or None).fetchall()

    assert rows("SELECT count(*), sum(n), min(id), max(id) FROM t") == [(ROWS, ROWS, 1, ROWS)]
    assert rows("SELECT n FROM t WHERE id = 500") == [(1,)]
    assert rows("SELECT id FROM t WHERE id = %s", 1999) == [(1999,)]
    assert rows("SELECT id FROM t WHERE id = %s", 10001) == []
    assert rows("SELECT count(*) FROM t WHERE v = 'v7'") == [(ROWS // 50,)]
    assert rows("SELECT count(*), max(o.note) FROM other o JOIN t ON t.id = o.t WHERE t.n = 1") == [(100, "then")]
    assert rows("SELECT a FROM gone") == [(7,)]
    assert rows("SELECT id FROM t ORDER BY id DESC LIMIT 2") == [(ROWS,), (ROWS - 1,)]
    assert rows("SELECT count(*) FROM t WHERE EXISTS (SELECT FROM other o WHERE o.t = t.id)") == [(100,)]
    tables = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
    assert rows(tables) == [("gone",), ("other",), ("t",)]
    indexes = "SELECT indexname FROM pg_indexes WHERE tablename = 't' ORDER BY 1"
    assert rows(indexes) == [("t_pkey",), ("t_v",)]
    plan = "\n".join(line for (line,) in rows("EXPLAIN SELECT * FROM t WHERE id = 5"))
    assert "Index Scan using t_pkey" in plan, plan
    plan = "\n".join(line for (line,) in rows("EXPLAIN ANALYZE SELECT * FROM t WHERE v = 'v7'"))
    assert "t_v" in plan and "rows=40" in plan, plan
    with connection.cursor() as cursor, cursor.copy("COPY (SELECT id, n FROM t ORDER BY id) TO STDOUT") as copy:
        lines = b"".join(copy).decode().splitlines()
    assert lines == [f"{number}\t1" for number in range(1, ROWS + 1)]


def test_everything_is_as_it_was(private_server):
    private_server.start(OFTEN)
    private_server.execute(*SETUP)
    private_server.execute(*SINCE)
    with private_server.connect(autocommit=True) as connection:
        connection.execute("SET logstead.as_of = 'then'")
        holds_then(connection)
        # What there was not.
        refused(connection, "SELECT later FROM t", "42703")
        refused(connection, "SELECT * FROM new", "42P01")
        refused(connection, "SELECT * FROM others", "42P01")
        ((shown,),) = private_server.execute("SELECT csn FROM logstead_restore_points WHERE name = 'then'")
        (point,) = connection.execute("SHOW logstead.as_of_point").fetchone()
        assert f"(CSN {shown}, restore point \"then\")" in point, point
        assert connection.execute("SELECT current_setting('logstead.as_of_point')").fetchone() == (point,)
        # And back: prepared statements and plans are those of the present again.
        for _ in range(8):
            connection.execute("SET logstead.as_of = 'then'")
            assert connection.execute("SELECT n FROM t WHERE id = %s", (500,), prepare=True).fetchone() == (1,)
            connection.execute("RESET logstead.as_of")
            assert connection.execute("SELECT n FROM t WHERE id = %s", (500,), prepare=True).fetchone() == (2,)
        assert connection.execute("SELECT sum(later) FROM t").fetchone() == (1500 * 5 + 500 * 4,)
        assert connection.execute("SHOW logstead.as_of_point").fetchone() == ("",)


def test_the_past_is_not_written(private_server):
    private_server.start(OFTEN)
    private_server.execute(*SETUP)
    with private_server.connect(autocommit=True) as connection:
        connection.execute("SET logstead.as_of = 'then'")
        for statement, what in {
            "INSERT INTO t VALUES (0)": "INSERT",
            "UPDATE t SET n = 0": "UPDATE",
            "DELETE FROM t": "DELETE",
            "SELECT * FROM t FOR UPDATE": "SELECT FOR UPDATE",
            "SELECT nextval('other_id_seq')": "nextval()",
            "CREATE TABLE x (a int)": "CREATE TABLE",
            "DROP TABLE t": "DROP TABLE",
            "TRUNCATE t": "TRUNCATE TABLE",
            "CREATE INDEX ON t (n)": "CREATE INDEX",
            "COPY t FROM STDIN": "COPY FROM",
            "CHECKPOINT": "CHECKPOINT",
            "SELECT logstead_create_restore_point('x')": "logstead_create_restore_point()",
            "EXPLAIN ANALYZE DELETE FROM t": "DELETE",
        }.items():
            error = refused(connection, statement, "25006")
            if "nextval" in statement:
                continue
            assert f"cannot execute {what} in a read-only transaction" in str(error), error
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("on",)
        refused(connection, "BEGIN READ WRITE", "0A000")
        # Nor behind a savepoint from before the first query.
        connection.execute("BEGIN")
        connection.execute("SAVEPOINT s")
        connection.execute("SELECT 1")
        connection.execute("ROLLBACK TO s")
        refused(connection, "UPDATE t SET n = 0", "25006")
        connection.execute("ROLLBACK")
        # Whatever level it says.
        for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "SERIALIZABLE READ ONLY DEFERRABLE"):
            connection.execute(f"BEGIN ISOLATION LEVEL {level}")
            assert connection.execute("SELECT sum(n) FROM t").fetchone() == (ROWS,)
            connection.execute("COMMIT")
        connection.execute("SET logstead.as_of = ''")
        connection.execute("UPDATE t SET n = 2")


def test_when_the_setting_takes_effect(private_server):
    private_server.start(OFTEN)
    private_server.execute(*SETUP, "UPDATE t SET n = 2")

    def total(connection) -> int:
        return connection.execute("SELECT sum(n) FROM t").fetchone()[0] // ROWS

    with private_server.connect(autocommit=True) as connection:
        notices = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
        # For this transaction, as long as it has read nothing.
        connection.execute("BEGIN")
        connection.execute("SET LOCAL logstead.as_of = 'then'")
        assert notices and notices[-1].startswith("transactions read the database as of "), notices
        assert total(connection) == 1
        refused(connection, "SET logstead.as_of = ''", "25001")
        connection.execute("ROLLBACK")
        assert total(connection) == 2
        connection.execute("BEGIN")
        assert total(connection) == 2
        for statement in ("SET logstead.as_of = 'then'", "RESET logstead.as_of", "SET LOCAL logstead.as_of TO DEFAULT"):
            connection.execute("SAVEPOINT s")
            refused(connection, statement, "25001")
            connection.execute("ROLLBACK TO s")
        refused(connection, "SELECT set_config('logstead.as_of', 'then', false)", "25001")
        connection.execute("ROLLBACK")
        # What a rolled back transaction has set is not set; what a committed one has is.
        connection.execute("BEGIN")
        connection.execute("SET logstead.as_of = 'then'")
        connection.execute("ROLLBACK")
        assert total(connection) == 2
        connection.execute("BEGIN")
        connection.execute("SET logstead.as_of = 'then'")
        connection.execute("COMMIT")
        assert total(connection) == 1
        connection.execute("RESET ALL")
        assert total(connection) == 2
        # By a function: from the next transaction on.
        name, seen = connection.execute("SELECT set_config('logstead.as_of', 'then', false), (SELECT sum(n) FROM t)").fetchone()
        assert (name, seen // ROWS) == ("then", 2)
        assert total(connection) == 1
        refused(connection, "SELECT set_config('logstead.as_of', 'never was', false)", "22023")
        assert total(connection) == 1
        refused(connection, "SELECT set_config('logstead.as_of', '', true)", "25001")
        connection.execute("SELECT set_config('logstead.as_of', '', false)")
        assert total(connection) == 2
        connection.execute("SET logstead.as_of = 'then'; SELECT 1")
        assert total(connection) == 1
        connection.execute("DISCARD ALL")
        assert total(connection) == 2
        # What leads nowhere says what there is, and leaves what was.
        for value in ("2020-01-01", "no such point"):
            error = refused(connection, f"SET logstead.as_of = '{value}'", "22023")
            assert "the oldest was taken at" in error.diag.message_detail, error.diag.message_detail
        assert total(connection) == 2
        connection.execute("SET logstead.as_of = 'now'")
        refused(connection, "UPDATE t SET n = 3", "25006")
        connection.execute("SET logstead.as_of = 'then'")
        refused(connection, "SET logstead.as_of = '2020-01-01'", "22023")
        assert total(connection) == 1
        for clause in ("FROM (SELECT * FROM t AS OF 'then') q", "FROM t FOR SYSTEM_TIME AS OF now()", "FROM t AS OF 'then', other"):
            error = refused(connection, f"SELECT * {clause}", "0A000")
            assert "logstead.as_of" in error.diag.message_hint
    # A session may begin with it.
    # Before the session had any transaction.
    private_server.execute("CHECKPOINT")
    for value in ("now", "tomorrow"):
        with private_server.connect(autocommit=True) as connection:
            connection.execute(f"SET logstead.as_of = '{value}'")
            assert total(connection) == 2
    with private_server.connect(autocommit=True, options="-c logstead.as_of=then") as connection:
        assert total(connection) == 1
    with private_server.connect(autocommit=True, options="-c logstead.as_of=never") as connection:
        refused(connection, "SELECT 1", "22023")
        refused(connection, "UPDATE t SET n = 3", "22023")
        connection.execute("SET logstead.as_of = ''")
        assert total(connection) == 2


def test_a_statement_names_its_past(private_server):
    """AS OF at its end: for itself alone, in every way to send it."""
    private_server.start(OFTEN)
    private_server.execute(*SETUP)
    private_server.execute(*SINCE)
    private_server.execute("SELECT logstead_create_restore_point('later')")
    private_server.execute("DELETE FROM t")
    with private_server.connect(autocommit=True) as connection:

        def rows(statement: str, *parameters, **options) -> list:
            return connection.execute(statement, parameters or None, **options).fetchall()

        # By psycopg's parameters the extended protocol, else the simple one.
        then, later, now = [(ROWS, ROWS)], [(2000, 1000 * 2 + 500 + 500 * 3)], [(0, None)]
        for _ in range(3):
            assert rows("SELECT count(*), sum(n) FROM t AS OF 'then'") == then
            assert rows("SELECT count(*), sum(n) FROM t AS OF 'later'") == later
            assert rows("SELECT count(*), sum(n) FROM t") == now
            for point, found in (("then", then), ("later", later)):
                assert rows("SELECT count(*), sum(n) FROM t AS OF %s", point, prepare=True) == found
                assert rows(f"SELECT count(*), sum(n) FROM t AS OF '{point}' WHERE id > %s", 0, prepare=True) == found
            assert rows("SELECT count(*), sum(n) FROM t WHERE id > %s", 0, prepare=True) == now
        # Its catalog is that of then; the next statement's is not.
        assert rows("SELECT a FROM gone AS OF 'then'") == [(7,)]
        assert rows("SELECT note FROM other WHERE id = %s AS OF 'then'", 100) == [("then",)]
        assert rows("SELECT later FROM t ORDER BY id LIMIT 1 AS OF 'later'") == [(5,)]
        refused(connection, "SELECT later FROM t AS OF 'then'", "42703")
        refused(connection, "SELECT a FROM gone", "42P01")
        assert rows("TABLE gone AS OF 'then'") == rows("WITH g AS (SELECT a FROM gone) TABLE g AS OF 'then'") == [(7,)]
        assert rows("VALUES (1) AS OF 'then'") == rows("SELECT 1 AS of") == [(1,)]
        plan = "\n".join(line for (line,) in rows("EXPLAIN SELECT * FROM t WHERE v = 'v7' AS OF 'then'"))
        assert "t_v" in plan, plan
        plan = "\n".join(line for (line,) in rows("EXPLAIN ANALYZE SELECT * FROM t WHERE v = 'v7' AS OF 'then'"))
        assert "t_v" in plan and "rows=40" in plan, plan
        with connection.cursor() as cursor, cursor.copy("COPY (SELECT a FROM gone AS OF 'then') TO STDOUT") as copy:
            assert b"".join(copy) == b"7\n"
        # By PREPARE, whose parameter names the point.
        connection.execute("PREPARE p (text) AS SELECT count(*), sum(n) FROM t AS OF $1")
        connection.execute("PREPARE q AS SELECT a FROM gone AS OF 'then'")
        for _ in range(2):
            assert rows("EXECUTE p('then')") == then and rows("EXECUTE p('later')") == later
            assert rows("EXECUTE q") == [(7,)]
        refused(connection, "EXECUTE p(NULL)", "22004")
        refused(connection, "EXECUTE p('never')", "22023")
        assert rows("SELECT count(*), sum(n) FROM t") == now
        # By time.
        (moment,) = rows("SELECT taken_at FROM logstead_restore_points WHERE name = 'then'")[0]
        assert rows("SELECT count(*), sum(n) FROM t AS OF %s", moment) == then
        assert rows(f"SELECT count(*), sum(n) FROM t AS OF TIMESTAMP '{moment}'") == then
        connection.execute("CHECKPOINT")
        assert rows("SELECT count(*), sum(n) FROM t AS OF SYSTEM TIME '-0.000001s'") == now
        assert "is no point in time" in refused(connection, "TABLE t AS OF TIMESTAMP 'then'", "22023").diag.message_detail
        error = refused(connection, "SELECT 1 AS OF '-9 years'", "22023")
        assert error.diag.message_primary == "invalid point in AS OF: \"-9 years\"" and error.diag.statement_position == "16"
        # It says which point it was, and only while it runs.
        (shown,) = rows("SELECT current_setting('logstead.as_of_point') AS OF 'then'")[0]
        assert "restore point \"then\"" in shown, shown
        assert rows("SELECT current_setting('logstead.as_of_point')") == [("",)]
        # What does not read, or not as a whole.
        refused(connection, "SELECT nextval('other_id_seq') AS OF 'later'", "25006")
        refused(connection, "WITH d AS (DELETE FROM t RETURNING 1) TABLE d AS OF 'then'", "25006")
        for statement in ("TABLE t AS OF 'then' FOR UPDATE", "CREATE TABLE x AS TABLE t AS OF 'then'", "CREATE VIEW x AS TABLE t AS OF 'then'"):
            refused(connection, statement, "0A000")
        # In a transaction only where that reads the same point.
        connection.execute("BEGIN")
        refused(connection, "TABLE gone AS OF 'then'", "25001")
        connection.execute("ROLLBACK")
        refused(connection, "DECLARE c CURSOR FOR TABLE gone AS OF 'then'", "0A000")
        refused(connection, "SELECT 1; TABLE gone AS OF 'then'", "25001")
        refused(connection, "TABLE gone AS OF 'then'; INSERT INTO t VALUES (1)", "25001")
        connection.execute("BEGIN")
        connection.execute("SET LOCAL logstead.as_of = 'then'")
        assert rows("TABLE gone AS OF 'then'") == [(7,)]
        connection.execute("SAVEPOINT s")
        refused(connection, "SELECT 1 AS OF 'later'", "25001")
        connection.execute("ROLLBACK TO s")
        assert rows("SELECT count(*), sum(n) FROM t") == then
        connection.execute("COMMIT")
        # With another past set, its own counts.
        connection.execute("SET logstead.as_of = 'then'")
        assert rows("SELECT count(*), sum(n) FROM t AS OF 'later'") == later
        assert rows("SELECT count(*), sum(n) FROM t") == then
        connection.execute("RESET logstead.as_of")
        # In a pipeline what follows reads, and writes, the present.
        with connection.pipeline():
            past = connection.execute("SELECT count(*), sum(n) FROM t AS OF 'then'")
            connection.execute("INSERT INTO t VALUES (1, 'x', 1, 1)")
            present = connection.execute("SELECT count(*), sum(n) FROM t")
            assert past.fetchall() == then and present.fetchall() == [(1, 1)]
        # A role reads what it may read now.
        connection.execute("CREATE ROLE reader")
        connection.execute("GRANT SELECT ON t TO reader")
        connection.execute("SET ROLE reader")
        assert rows("SELECT count(*), sum(n) FROM t AS OF 'then'") == then
        for table in ("other", "gone"):
            refused(connection, f"TABLE {table} AS OF 'then'", "42501")


@pytest.mark.parametrize("more", [(), ("--evict-always",)], ids=["", "evict"])
def test_while_the_present_goes_on(private_server, more):
    """Writes, checkpoints, eviction, kill -9; and the point is dropped while it is read."""
    arguments = (*OFTEN, *more)
    private_server.start(arguments)
    private_server.execute(*SETUP)
    private_server.execute(*SINCE)
    ended = threading.Event()

    def write() -> None:
        with contextlib.suppress(psycopg.OperationalError), private_server.connect(autocommit=True) as connection:
            while not ended.is_set():
                connection.execute("UPDATE t SET n = n + 1, later = later - 1 WHERE id % 7 = 0")
                connection.execute("INSERT INTO new SELECT g FROM generate_series(1, 200) AS g")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with private_server.connect(autocommit=True) as reader, private_server.connect(autocommit=True) as other:
            for connection in (reader, other):
                connection.execute("SET logstead.as_of = 'then'")
            for _ in range(3):
                holds_then(reader)
                holds_then(other)
        private_server.restart_after_kill(arguments=arguments)
    finally:
        ended.set()
        writer.join()
    with private_server.connect(autocommit=True) as reader:
        reader.execute("SET logstead.as_of = 'then'")
        holds_then(reader)
        # Its name is gone at once; who reads it goes on.
        private_server.execute("SELECT logstead_drop_restore_point('then')")
        for _ in range(3):
            private_server.execute("UPDATE t SET n = n + 1", "CHECKPOINT")
        with private_server.connect(autocommit=True) as late:
            refused(late, "SET logstead.as_of = 'then'", "22023")
        holds_then(reader)
    private_server.stop()
    assert tool("fsck", private_server.home).returncode == 0


def test_with_psql_and_by_time(private_server):
    private_server.start((*OFTEN, "--restore-point-interval", "1s", "--restore-point-retention", "1h"))
    private_server.execute("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)", "CHECKPOINT")
    (moment,) = private_server.execute("SELECT clock_timestamp()::text")[0]
    private_server.execute("SELECT logstead_create_restore_point('here')", "INSERT INTO t VALUES (2)", "CHECKPOINT")
    told = private_server.psql("-c", f"SET logstead.as_of = '{moment}'", "-c", "TABLE t", "-c", "SHOW logstead.as_of_point")
    assert "NOTICE:  transactions read the database as of" in told or "1" in told, told
    out = private_server.psql("-At", "-c", f"SET logstead.as_of = '{moment}'", "-c", "SELECT array_agg(a) FROM t")
    assert out.split()[-1] == "{1}", out
    assert private_server.psql("-At", "-c", "SELECT array_agg(a) FROM t").strip() == "{1,2}"
    described = private_server.psql("-c", "SET logstead.as_of = 'here'", "-c", "\\d t")
    assert "integer" in described, described


def test_in_a_branch(private_server, tmp_path):
    """It has points of its own."""
    private_server.start(OFTEN)
    private_server.execute(*SETUP)
    private_server.stop()
    tool("branch", "create", "--point", "then", "trial", private_server.home)
    branch = at_data(tmp_path / "branch", private_server.data, "--branch", "trial", *OFTEN).start()
    try:
        branch.execute("SELECT logstead_create_restore_point('then')")
        branch.execute(*SINCE)
        with branch.connect(autocommit=True) as connection:
            connection.execute("SET logstead.as_of = 'then'")
            holds_then(connection)
    finally:
        branch.kill()


def test_in_a_bucket(tmp_path):
    with start_store("dev-bucket", tmp_path) as store:
        server = ObjectServer(tmp_path / "server", home(store), store.environment, *OFTEN)
        server.start()
        try:
            server.execute(*SETUP)
            server.execute(*SINCE)
            with server.connect(autocommit=True) as connection:
                connection.execute("SET logstead.as_of = 'then'")
                holds_then(connection)
        finally:
            server.kill()


def test_rights_are_those_of_the_present(private_server):
    """Of statistics, of sequences' values and of views, too: what was allowed then and is not now is not allowed."""
    private_server.start(OFTEN)
    private_server.execute(
        "CREATE ROLE reader",
        "CREATE TABLE secret (a int)",
        "INSERT INTO secret SELECT 7 FROM generate_series(1, 100)",
        "CREATE TABLE open (a int)",
        "INSERT INTO open SELECT 8 FROM generate_series(1, 100)",
        "ANALYZE",
        "CREATE SEQUENCE counts",
        "SELECT nextval('counts')",
        "CREATE VIEW v AS SELECT a FROM secret",
        "GRANT SELECT ON secret, open, counts, v TO reader",
        "SELECT logstead_create_restore_point('then')",
    )
    asked = {
        "SELECT tablename::text FROM pg_stats WHERE schemaname = 'public' AS OF 'then'": [("open",), ("secret",)],
        "SELECT last_value IS NOT NULL FROM pg_sequences WHERE sequencename = 'counts' AS OF 'then'": [(True,)],
        "SELECT count(*) FROM v AS OF 'then'": [(100,)],
    }
    with private_server.connect(autocommit=True) as reader:
        reader.execute("SET ROLE reader")
        for statement, before in asked.items():
            assert sorted(reader.execute(statement).fetchall()) == before, statement
        private_server.execute("REVOKE SELECT ON secret, counts FROM reader", "ALTER VIEW v SET (security_invoker = true)")
        statistics, value, view = asked
        assert reader.execute(statistics).fetchall() == [("open",)]
        assert reader.execute(value).fetchall() == [(False,)]
        refused(reader, view, "42501")


def test_arguments_of_execute_are_as_read_only_as_what_they_are_for(private_server):
    private_server.start(OFTEN)
    private_server.execute("CREATE SEQUENCE s", "SELECT logstead_create_restore_point('then')")
    with private_server.connect(autocommit=True) as connection:
        connection.execute("SET logstead.as_of = 'then'")
        connection.execute("PREPARE p(bigint) AS SELECT $1")
        refused(connection, "EXECUTE p(nextval('s'))", "25006")
    with private_server.connect(autocommit=True) as connection:
        connection.execute("PREPARE p(bigint) AS SELECT $1")
        connection.execute("SELECT 1 AS OF 'then'")
        assert connection.execute("EXECUTE p(nextval('s'))").fetchall() == [(1,)]


def test_plans_of_the_past_do_not_outlive_row_security(private_server):
    """Plans for the past are kept while the present goes on: who may see what is asked whenever they run."""
    private_server.start(OFTEN)
    private_server.execute(
        "CREATE ROLE alice",
        "CREATE ROLE bob BYPASSRLS",
        "CREATE TABLE t (a int, owner text)",
        "INSERT INTO t VALUES (1, 'alice'), (2, 'bob')",
        "CREATE VIEW of_bob AS SELECT a FROM t",
        "ALTER VIEW of_bob OWNER TO bob",
        "GRANT SELECT ON t TO alice, bob",
        "SELECT logstead_create_restore_point('then')",
    )
    query, through = "SELECT count(*) FROM t AS OF 'then'", "SELECT count(*) FROM of_bob AS OF 'then'"
    with private_server.connect(autocommit=True) as connection:
        connection.execute(f"PREPARE p AS {query}")
        for statement in (query, through, "EXECUTE p"):
            for _ in range(3):
                assert connection.execute(statement).fetchall() == [(2,)], statement
        private_server.execute(
            "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
            "CREATE POLICY own ON t USING (owner = current_user)",
        )
        connection.execute("SET ROLE alice")
        refused(connection, query + " WHERE true", "0A000")
        refused(connection, query, "0A000")
        refused(connection, "EXECUTE p", "0A000")
        # Who is exempt is so no longer.
        connection.execute("SET ROLE bob")
        for statement in (query, "EXECUTE p"):
            for _ in range(3):
                assert connection.execute(statement).fetchall() == [(2,)], statement
        private_server.execute("ALTER ROLE bob NOBYPASSRLS")
        refused(connection, query, "0A000")
        refused(connection, "EXECUTE p", "0A000")
        # A superuser is exempt, and what it reads through the view of one who is not, is not.
        connection.execute("RESET ROLE")
        assert connection.execute(query).fetchall() == [(2,)]
        refused(connection, through, "0A000")


def test_views_of_the_past_have_no_rights_that_were_granted_on_others(private_server):
    """A view replaced since was never granted as it was; and roles are those of the present."""
    private_server.start(OFTEN)
    private_server.execute(
        "CREATE ROLE alice",
        "CREATE ROLE staff",
        "GRANT staff TO alice",
        "CREATE TABLE t (a int, owner text)",
        "INSERT INTO t VALUES (1, 'alice'), (2, 'bob')",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE VIEW same AS SELECT a FROM t",
        "SELECT logstead_create_restore_point('then')",
        "CREATE OR REPLACE VIEW v AS SELECT * FROM t WHERE owner = current_user",
        "GRANT SELECT ON v, same TO alice",
        "REVOKE staff FROM alice",
    )
    with private_server.connect(autocommit=True) as connection:
        connection.execute("SET ROLE alice")
        assert connection.execute("SELECT a FROM v").fetchall() == [(1,)]
        refused(connection, "SELECT a FROM v AS OF 'then'", "42501")
        assert connection.execute("SELECT count(*) FROM same AS OF 'then'").fetchall() == [(2,)]
        asked = "SELECT pg_has_role('staff', 'usage'), has_table_privilege('same', 'select') AS OF 'then'"
        assert connection.execute(asked).fetchall() == [(False, True)]
