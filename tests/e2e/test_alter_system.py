"""ALTER SYSTEM, pg_reload_conf(), and what of it survives a restart."""

import stat

import psycopg
import pytest
from harness import wait_until

FILE = "logstead.auto.toml"


def shown(server, name):
    return server.execute(f"SHOW {name}")[0][0]


def reload_until(server, name, value):
    assert server.execute("SELECT pg_reload_conf()") == [(True,)]
    # PostgreSQL tells its processes, which take a moment.
    wait_until(lambda: shown(server, name) == value, what=f"{name} is {value}")


def test_a_setting_is_kept_and_taken_over(private_server):
    server = private_server
    server.start()
    before = shown(server, "work_mem")
    old = server.connect(autocommit=True)
    own = server.connect(autocommit=True)
    own.execute("SET work_mem = '3MB'")
    server.execute("ALTER SYSTEM SET work_mem = '8MB'")
    assert shown(server, "work_mem") == before
    reload_until(server, "work_mem", "8MB")
    # Sessions that are there follow, but where they have a value of their own.
    wait_until(lambda: old.execute("SHOW work_mem").fetchone() == ("8MB",), what="an old session follows")
    assert own.execute("SHOW work_mem").fetchone() == ("3MB",)
    own.execute("RESET work_mem")
    assert own.execute("SHOW work_mem").fetchone() == ("8MB",)
    [(setting, source, file, pending)] = server.execute(
        "SELECT setting, source, sourcefile IS NOT NULL, pending_restart FROM pg_settings WHERE name = 'work_mem'"
    )
    assert (setting, source, file, pending) == ("8192", "configuration file", True, False)
    assert server.execute("SELECT name, setting, applied, error FROM pg_file_settings WHERE name = 'work_mem'") == [("work_mem", "8MB", True, None)]
    server.execute("ALTER SYSTEM SET search_path TO a, \"B c\", public", "ALTER SYSTEM SET log_min_duration_statement = 5000")
    for restart in (server.restart_after_kill, lambda: (server.stop(), server.start())):
        restart()
        assert shown(server, "work_mem") == "8MB"
        assert shown(server, "search_path") == 'a, "B c", public'
        assert shown(server, "log_min_duration_statement") == "5s"
    server.execute("ALTER SYSTEM RESET work_mem")
    reload_until(server, "work_mem", before)
    assert shown(server, "search_path") == 'a, "B c", public'
    server.execute("ALTER SYSTEM RESET ALL")
    reload_until(server, "search_path", '"$user", public')
    server.restart_after_kill()
    assert shown(server, "search_path") == '"$user", public'


@pytest.mark.logstead_only
def test_what_only_a_start_takes_over(private_server):
    server = private_server
    server.start()
    before = shown(server, "max_connections")
    server.execute("ALTER SYSTEM SET max_connections = 77")
    assert server.execute("SELECT pg_reload_conf()") == [(True,)]
    pending = "SELECT name, setting FROM pg_settings WHERE pending_restart"
    wait_until(lambda: server.execute(pending) == [("max_connections", before)], what="it is pending")
    server.stop()
    server.start()
    assert server.execute(pending) == []
    assert shown(server, "max_connections") == "77"


def test_what_is_refused(server):
    server.execute("DROP ROLE IF EXISTS somebody", "CREATE ROLE somebody")
    with server.connect(autocommit=True) as connection:
        for statement, error, message in [
            ("ALTER SYSTEM SET nosuch = 1", psycopg.errors.UndefinedObject, 'unrecognized configuration parameter "nosuch"'),
            ("ALTER SYSTEM RESET nosuch", psycopg.errors.UndefinedObject, 'unrecognized configuration parameter "nosuch"'),
            ("ALTER SYSTEM SET work_mem = 'much'", psycopg.errors.InvalidParameterValue, 'invalid value for parameter "work_mem": "much"'),
            ("ALTER SYSTEM SET server_version = '1'", psycopg.errors.CantChangeRuntimeParam, 'parameter "server_version" cannot be changed'),
            ("ALTER SYSTEM SET role = 'x'", psycopg.errors.CantChangeRuntimeParam, 'parameter "role" cannot be changed'),
            ("ALTER SYSTEM SET data_directory = 'x'", psycopg.errors.CantChangeRuntimeParam, 'parameter "data_directory" cannot be changed'),
            ("ALTER SYSTEM SET transaction_isolation = 'serializable'", psycopg.errors.CantChangeRuntimeParam, "cannot be changed"),
            ("ALTER SYSTEM SET log_min_messages = E'a\\nb'", psycopg.errors.InvalidParameterValue, None),
            ("ALTER SYSTEM", psycopg.errors.SyntaxError, None),
            ("ALTER SYSTEM SET work_mem", psycopg.errors.SyntaxError, None),
        ]:
            with pytest.raises(error, match=message):
                connection.execute(statement)
        with connection.transaction(), pytest.raises(psycopg.errors.ActiveSqlTransaction, match="ALTER SYSTEM cannot run inside a transaction block"):
            with connection.transaction():
                connection.execute("ALTER SYSTEM SET work_mem = '8MB'")
        connection.execute("SET ROLE somebody")
        for statement, message in [
            ("ALTER SYSTEM SET work_mem = '8MB'", 'permission denied to set parameter "work_mem"'),
            ("ALTER SYSTEM RESET work_mem", 'permission denied to set parameter "work_mem"'),
            ("ALTER SYSTEM RESET ALL", "permission denied to perform ALTER SYSTEM RESET ALL"),
            ("SELECT pg_reload_conf()", "permission denied for function pg_reload_conf"),
            ("SELECT * FROM pg_file_settings", "permission denied"),
        ]:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=message):
                connection.execute(statement)
    server.execute("DROP ROLE somebody")


@pytest.mark.logstead_only
def test_the_file(private_server, tmp_path):
    """Where it is, who may read it, what stands over and under it, and what becomes of one that is damaged."""
    server = private_server
    settings = tmp_path / "settings.toml"
    settings.write_text("work_mem = '1MB'\nmaintenance_work_mem = '2MB'\n")
    options = {"arguments": ["--config", str(settings), "--set", "temp_buffers=9MB"]}
    server.start(**options)
    for name in ("work_mem", "temp_buffers"):
        server.execute(f"ALTER SYSTEM SET {name} = '16MB'")
    file = server.data / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert 'work_mem = "16MB"' in file.read_text()
    assert server.execute("SELECT pg_reload_conf()") == [(True,)]
    # The file stands over the settings file, and under the command line.
    assert [shown(server, name) for name in ("work_mem", "maintenance_work_mem", "temp_buffers")] == ["16MB", "2MB", "9MB"]
    known = "SELECT name, setting, applied FROM pg_file_settings ORDER BY seqno"
    rows = [("work_mem", "1MB", False), ("maintenance_work_mem", "2MB", True), ("temp_buffers", "16MB", False), ("work_mem", "16MB", True)]
    assert server.execute(known) == rows
    settings.write_text("work_mem = '1MB'\nmaintenance_work_mem = '4MB'\nwork_men = '3MB'\n")
    assert server.execute("SELECT pg_reload_conf()") == [(True,)]
    assert shown(server, "maintenance_work_mem") == "4MB"
    assert server.execute("SELECT name, error FROM pg_file_settings WHERE error IS NOT NULL") == [("work_men", "unrecognized configuration parameter")]
    settings.write_text("work_mem = '1MB'\nmaintenance_work_mem = '4MB'\n")
    server.restart_after_kill(**options)
    assert [shown(server, name) for name in ("work_mem", "maintenance_work_mem", "temp_buffers")] == ["16MB", "4MB", "9MB"]
    # One that a crash has left unfinished is in nobody's way.
    (server.data / f"{FILE}.new").write_text("rubbish")
    server.execute("ALTER SYSTEM SET work_mem = '17MB'")
    assert not (server.data / f"{FILE}.new").exists()
    file.write_text("work_mem = ")
    with server.connect(autocommit=True) as connection:
        told = []
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary))
        assert connection.execute("SELECT pg_reload_conf()").fetchone() == (False,)
        assert any(FILE in message for message in told)
        assert connection.execute("SHOW work_mem").fetchone() == ("16MB",)
        # Whoever resets all has a whole file again.
        connection.execute("ALTER SYSTEM RESET ALL")
        assert connection.execute("SELECT pg_reload_conf()").fetchone() == (True,)
        assert connection.execute("SHOW work_mem").fetchone() == ("1MB",)
