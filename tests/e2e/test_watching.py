"""Watching a server: who does what, what statements cost, which are slow, and ending them."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request

import psycopg
import pytest
from harness import wait_until

pytestmark = pytest.mark.logstead_only


def seen(watcher: psycopg.Connection, pid: int) -> dict | None:
    """A session's row of pg_stat_activity."""
    cursor = watcher.execute("SELECT * FROM pg_stat_activity WHERE pid = %s", (pid,))
    row = cursor.fetchone()
    return row and dict(zip((column.name for column in cursor.description), row, strict=True))


def test_everybody_is_seen(server):
    watcher = server.connect(autocommit=True)
    with watcher, server.connect(autocommit=True, application_name="worked") as worker:
        pid = worker.info.backend_pid
        worker.execute("SELECT 'first of all'")
        row = seen(watcher, pid)
        assert (row["state"], row["wait_event"], row["query"]) == ("idle", "ClientRead", "SELECT 'first of all'")
        assert row["application_name"] == "worked" and row["usename"] == "postgres" and row["datname"] == "postgres"
        assert str(row["client_addr"]) == "127.0.0.1" and row["client_port"] > 0 and row["xact_start"] is None
        assert row["backend_start"] <= row["query_start"] <= row["state_change"]
        worker.execute("BEGIN; SET application_name = 'renamed'")
        row = seen(watcher, pid)
        assert (row["state"], row["application_name"]) == ("idle in transaction", "renamed")
        assert row["xact_start"] <= row["query_start"]
        with pytest.raises(psycopg.errors.DivisionByZero):
            worker.execute("SELECT 1/0")
        assert seen(watcher, pid)["state"] == "idle in transaction (aborted)"
        worker.execute("ROLLBACK")
        own = seen(watcher, watcher.info.backend_pid)
        assert own["state"] == "active" and own["query"].startswith("SELECT * FROM pg_stat_activity")
        worker.execute("SELECT '" + "ä" * 2000 + "'")
        row = seen(watcher, pid)
        assert row["state"] == "idle" and len(row["query"].encode()) in (1023, 1024)
        # Whoever has an answer finds the session at rest, however fast he looks.
        for _ in range(300):
            worker.execute("BEGIN")
            assert seen(watcher, pid)["state"] == "idle in transaction"
            worker.execute("COMMIT")
            assert seen(watcher, pid)["state"] == "idle"
    wait_until(lambda: seen(server.connect(autocommit=True), pid) is None, what="the session's end")


def test_others_are_told_little_and_end_nobody(server):
    with server.connect(autocommit=True) as admin:
        for role in ("watch_a", "watch_b", "watch_c"):
            admin.execute(f"DROP ROLE IF EXISTS {role}")
            admin.execute(f"CREATE ROLE {role} LOGIN")
        admin.execute("GRANT pg_signal_backend TO watch_c")

        def connect(user):
            return psycopg.connect(host=server.host, port=server.port, user=user, dbname="postgres", autocommit=True)

        with connect("watch_a") as a, connect("watch_b") as b, connect("watch_c") as c:
            a.execute("SELECT 'secret'")
            row = seen(b, a.info.backend_pid)
            assert row["query"] == "<insufficient privilege>" and row["state"] is None and row["client_addr"] is None
            assert seen(admin, a.info.backend_pid)["query"] == "SELECT 'secret'"
            queries = "SELECT query FROM pg_stat_statements WHERE userid = 'watch_a'::regrole"
            assert b.execute(queries.replace("'watch_a'::regrole", "(SELECT oid FROM pg_roles WHERE rolname = 'watch_a')")).fetchall() == [
                ("<insufficient privilege>",)
            ]
            for function in ("pg_cancel_backend", "pg_terminate_backend"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="member of the role whose"):
                    b.execute(f"SELECT {function}(%s)", (a.info.backend_pid,))
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be a superuser to"):
                    c.execute(f"SELECT {function}(%s)", (admin.info.backend_pid,))
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                b.execute("SELECT pg_stat_statements_reset()")
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="log_min_duration_statement"):
                b.execute("SET log_min_duration_statement = 0")
            assert c.execute("SELECT pg_terminate_backend(%s)", (a.info.backend_pid,)).fetchone() == (True,)
            with pytest.raises(psycopg.errors.AdminShutdown):
                a.execute("SELECT 1")
            a.close()
        for role in ("watch_a", "watch_b", "watch_c"):
            admin.execute(f"DROP ROLE {role}")


def test_statements_and_sessions_are_ended(server):
    with server.connect(autocommit=True) as admin, server.connect() as sleeper:
        pid = sleeper.info.backend_pid
        notices = []
        admin.add_notice_handler(lambda notice: notices.append(notice.message_primary))
        assert admin.execute("SELECT pg_cancel_backend(1)").fetchone() == (False,)
        assert notices == ["PID 1 is not a PostgreSQL backend process"]
        cursor = sleeper.cursor()
        admin.execute("SELECT pg_advisory_lock(4711)")
        sleeper.pgconn.send_query(b"SELECT pg_advisory_lock(4711)")
        wait_until(lambda: seen(admin, pid)["state"] == "active", what="the sleeper")
        assert seen(admin, pid)["query"] == "SELECT pg_advisory_lock(4711)"
        assert admin.execute("SELECT pg_cancel_backend(%s)", (pid,)).fetchone() == (True,)
        result = sleeper.pgconn.get_result()
        assert b"canceling statement due to user request" in result.error_message
        assert sleeper.pgconn.get_result() is None
        cursor.execute("SELECT 1")
        assert admin.execute("SELECT pg_terminate_backend(%s)", (pid,)).fetchone() == (True,)
        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            cursor.execute("SELECT 1")


def test_statements_are_counted_by_kind(private_server):
    server = private_server.start()
    with server.connect(autocommit=True) as client:
        client.execute("CREATE TABLE counted (id int PRIMARY KEY, v text)")
        client.execute("SELECT pg_stat_statements_reset()")
        for number in range(5):
            client.execute(f"INSERT INTO counted VALUES ({number}, 'x{number}'), ({number + 100}, 'y')")
        for number in range(4):
            client.execute("SELECT v FROM  counted WHERE id = %s", (number,), prepare=True)
            client.execute(f"select v from counted where id = {number}")
        with pytest.raises(psycopg.errors.UniqueViolation):
            client.execute("INSERT INTO counted VALUES (0, 'x'), (1, 'y')")
        rows = client.execute(
            "SELECT query, calls, rows, total_exec_time > 0, min_exec_time <= mean_exec_time, mean_exec_time <= max_exec_time "
            "FROM pg_stat_statements WHERE query ILIKE '%% counted %%' AND query NOT ILIKE '%%pg_stat%%' ORDER BY query DESC"
        ).fetchall()
        assert [(query.split()[0], calls, count) for query, calls, count, *_ in rows] == [("SELECT", 8, 8), ("INSERT", 5, 10)]
        assert rows[1][0] == "INSERT INTO counted VALUES ($1, $2), ($3, $4)"
        assert all(row[3:] == (True, True, True) for row in rows)
        client.execute("SET pg_stat_statements.track = none")
        client.execute("SELECT count(*) FROM counted")
        client.execute("SET pg_stat_statements.track = top")
        (seen_now,) = client.execute("SELECT count(*) FROM pg_stat_statements WHERE query LIKE '%%count(*) FROM counted'").fetchone()
        assert seen_now == 0


def test_slow_statements_are_logged(private_server):
    server = private_server.start(arguments=["--log-level", "info"])
    with server.connect(autocommit=True) as client:
        client.execute("SELECT 'not logged'")
        client.execute("SET log_min_duration_statement = 0")
        client.execute("SELECT 'logged'")
        client.execute("SELECT %s || 'prepared'", ("x",), prepare=True)
        client.execute("SET log_min_duration_statement = '1h'")
        client.execute("SELECT 'quick'")
    wait_until(lambda: "'prepared'" in server.output_text(), what="the log of statements")
    said = server.output_text()
    assert re.search(r"duration: \d+\.\d{3} ms  statement: SELECT 'logged'", said), said
    assert "not logged" not in said and "'quick'" not in said


def test_log_for_machines(private_server):
    server = private_server.start(arguments=["--log-format", "json", "--set", "log_min_duration_statement=0"])
    server.execute("SELECT 'for a machine'")
    wait_until(lambda: "for a machine" in server.output_text(), what="the log of statements")
    events = [json.loads(line) for line in server.output_text().splitlines() if line.startswith("{")]
    (event,) = [event for event in events if "for a machine" in event["message"]]
    assert event["level"] == "INFO" and event["user"] == "postgres" and event["database"] == "postgres" and event["pid"] > 0


def test_figures_for_prometheus(private_server):
    server = private_server.start(arguments=["--metrics-listen", "127.0.0.1:0"])
    wait_until(lambda: "metrics at http://" in server.output_text(), what="where the figures are")
    (url,) = re.findall(r"metrics at (http://\S+)", server.output_text())

    def figures() -> dict[str, float]:
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            lines = answer.read().decode().splitlines()
        told = dict(line.split() for line in lines if not line.startswith("#"))
        described = {line.split()[2] for line in lines if line.startswith("# TYPE")}
        assert described == set(told)
        return {name: float(value) for name, value in told.items()}

    before = figures()
    server.execute("CREATE TABLE t (id int)", *["INSERT INTO t VALUES (1)"] * 10, "CHECKPOINT")
    with server.connect() as client:
        client.execute("INSERT INTO t VALUES (2)")
        assert figures()["logstead_sessions"] == 1
        client.rollback()
    after = figures()
    assert after["logstead_commits_total"] - before["logstead_commits_total"] >= 11
    assert after["logstead_aborts_total"] - before["logstead_aborts_total"] >= 1
    assert after["logstead_checkpoints_total"] > before["logstead_checkpoints_total"]
    assert 0 < after["logstead_memory_used_bytes"] < after["logstead_memory_budget_bytes"]
    for path, method, status in (("/", "GET", 404), ("/metrics", "POST", 405)):
        request = urllib.request.Request(url.removesuffix("/metrics") + path, method=method)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=20)
        assert refused.value.code == status
