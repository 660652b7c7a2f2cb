"""Several databases in one server: each has its own of everything, and they come and go as one."""

import signal
import threading

import psycopg
import pytest
from harness import TIMEOUT_S, wait_until

# Equal names of everything, and one that is told of by whatever shows an object of this database.
OBJECTS = [
    "CREATE SCHEMA same",
    "CREATE TABLE same.t (id serial PRIMARY KEY, v text CHECK (v <> '{0}_check'), {0} int DEFAULT 7)",
    "CREATE INDEX {0}_index ON same.t (v)",
    "CREATE TYPE same.mood AS ENUM ('{0}')",
    "CREATE DOMAIN same.{0}_domain AS int CHECK (VALUE > 0)",
    "CREATE TYPE same.pair AS ({0} int, b text)",
    "CREATE VIEW same.{0}_view AS SELECT v, {0} FROM same.t",
    "CREATE MATERIALIZED VIEW same.{0}_kept AS SELECT v FROM same.t",
    "CREATE SEQUENCE same.{0}_sequence",
    "CREATE TABLE same.child (parent int REFERENCES same.t, {0} int)",
    "CREATE SCHEMA {0}_schema",
    "COMMENT ON TABLE same.t IS '{0} comment'",
    "GRANT SELECT ON same.t TO {0}_reader",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA same GRANT SELECT ON TABLES TO {0}_reader",
    "CREATE POLICY {0}_policy ON same.t USING (true)",
    "INSERT INTO same.t (v) VALUES ('{0} row')",
    "ANALYZE same.t",
]


def make(server, name):
    """A database with objects that tell its name."""
    server.execute(f"CREATE ROLE {name}_reader", f"CREATE DATABASE {name}_db")
    with server.connect(f"{name}_db", autocommit=True) as connection:
        for statement in OBJECTS:
            connection.execute(statement.format(name))


def forget(server, *names):
    for name in names:
        server.execute(f"DROP DATABASE IF EXISTS {name}_db WITH (FORCE)", f"DROP ROLE IF EXISTS {name}_reader")


# What tells of all databases, or of what sessions do.
SHARED = {"pg_database", "pg_roles", "pg_authid", "pg_user", "pg_shadow", "pg_group", "pg_stat_activity", "pg_stat_statements", "pg_stat_database",
          "pg_stat_database_conflicts", "pg_shdepend"}  # fmt: skip


def relations(connection):
    """Every system relation with its rows as text."""
    names = connection.execute(
        "SELECT nspname, relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE nspname IN ('pg_catalog', 'information_schema') AND relkind IN ('r', 'v') ORDER BY 1, 2"
    ).fetchall()
    for schema, name in names:
        if name not in SHARED:
            yield name, [str(row) for row in connection.execute(f'SELECT * FROM {schema}."{name}"').fetchall()]


def tells(row):
    """Whether a row is of the zebra's objects; its database and role are everybody's."""
    return "zebra" in row.replace("zebra_db", "").replace("zebra_reader", "")


def test_no_system_relation_tells_of_another_database(server):
    forget(server, "zebra", "okapi")
    make(server, "zebra")
    make(server, "okapi")
    numbers = "SELECT oid FROM pg_class UNION SELECT oid FROM pg_constraint UNION SELECT oid FROM pg_namespace UNION SELECT oid FROM pg_type"
    with server.connect("zebra_db", autocommit=True) as there:
        strange = {number for (number,) in there.execute(numbers).fetchall() if number >= 16384}
        # It is to be seen where it is, so it would be seen elsewhere.
        telling = {name for name, rows in relations(there) if any(map(tells, rows))}
        assert {"pg_class", "pg_attribute", "pg_type", "pg_namespace", "pg_constraint", "pg_description", "pg_policy", "columns", "tables", "views"} <= telling
        assert len(strange) > 20
    for other in ("okapi_db", "postgres"):
        with server.connect(other, autocommit=True) as here:
            assert not strange & {number for (number,) in here.execute(numbers).fetchall()}
            for name, rows in relations(here):
                told = list(filter(tells, rows))
                assert not told, f"{name} of {other} tells of {told}"
    with server.connect("okapi_db", autocommit=True) as here:
        assert here.execute("SELECT v, okapi FROM same.t").fetchall() == [("okapi row", 7)]
        assert here.execute("SELECT enum_range(NULL::same.mood)::text").fetchone() == ("{okapi}",)
        assert here.execute("SELECT count(*) FROM pg_class WHERE oid = ANY(%s)", [list(strange)]).fetchone() == (0,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            here.execute("SELECT * FROM same.zebra_view")
    forget(server, "zebra", "okapi")


def test_plans_channels_and_locks_are_of_one_database(server):
    """The same texts in two databases, on every worker: each finds its own rows, listeners and locks."""
    forget(server, "zebra", "okapi")
    server.execute("CREATE DATABASE zebra_db", "CREATE DATABASE okapi_db")
    sessions = []
    for _ in range(8):
        for name in ("zebra", "okapi"):
            connection = server.connect(f"{name}_db", autocommit=True)
            connection.execute("CREATE TABLE IF NOT EXISTS t (id int PRIMARY KEY, v text)")
            connection.execute("INSERT INTO t VALUES (1, %s) ON CONFLICT DO NOTHING", [name])
            sessions.append((name, connection))
    for _ in range(4):
        for name, connection in sessions:
            # Unprepared, prepared by the client, and with its number lifted out.
            assert connection.execute("SELECT v FROM t WHERE id = 1").fetchone() == (name,)
            assert connection.execute("SELECT v FROM t WHERE id = %s", [1], prepare=True).fetchone() == (name,)
    (_, one), (_, two) = sessions[:2]
    two.execute("ALTER TABLE t ADD w int DEFAULT 5")
    assert two.execute("SELECT * FROM t WHERE id = 1").fetchone() == (1, "okapi", 5)
    assert one.execute("SELECT * FROM t WHERE id = 1").fetchone() == (1, "zebra")
    assert one.execute("SELECT pg_try_advisory_lock(1)").fetchone() == (True,)
    assert two.execute("SELECT pg_try_advisory_lock(1)").fetchone() == (True,)
    shown = one.execute("SELECT datname FROM pg_locks JOIN pg_database d ON d.oid = database WHERE locktype = 'advisory' AND objid = 1 ORDER BY 1")
    assert shown.fetchall() == [("okapi_db",), ("zebra_db",)]
    for connection in (one, two):
        connection.execute("LISTEN channel")
    sessions[2][1].execute("NOTIFY channel, 'of zebra'")
    sessions[3][1].execute("NOTIFY channel, 'of okapi'")
    for connection, payload in ((one, "of zebra"), (two, "of okapi")):
        heard = next(connection.notifies(timeout=TIMEOUT_S))
        assert heard.payload == payload
    for _, connection in sessions:
        connection.close()
    forget(server, "zebra", "okapi")


@pytest.mark.slow
def test_a_database_in_use_stays(server):
    forget(server, "zebra")
    server.execute("CREATE DATABASE zebra_db")
    user = server.connect("zebra_db", autocommit=True)
    with server.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.errors.ObjectInUse, match="is being accessed by other users") as refused:
            connection.execute("DROP DATABASE zebra_db")
        assert refused.value.diag.message_detail == "There is 1 other session using the database."
        # One that leaves in time is waited for.
        leaving = threading.Timer(0.3, user.close)
        leaving.start()
        connection.execute("ALTER DATABASE zebra_db RENAME TO zebra_db_2")
        leaving.join()
        with pytest.raises(psycopg.OperationalError, match='database "zebra_db" does not exist'):
            server.connect("zebra_db")
        connection.execute("ALTER DATABASE zebra_db_2 RENAME TO zebra_db")
        user = server.connect("zebra_db", autocommit=True)
        assert user.execute("SELECT current_database()").fetchone() == ("zebra_db",)
        connection.execute("DROP DATABASE zebra_db WITH (FORCE)")
        with pytest.raises(psycopg.OperationalError):
            user.execute("SELECT 1")
        connection.execute("CREATE DATABASE zebra_db ALLOW_CONNECTIONS false")
        with pytest.raises(psycopg.OperationalError, match='database "zebra_db" is not currently accepting connections'):
            server.connect("zebra_db")
        connection.execute("ALTER DATABASE zebra_db ALLOW_CONNECTIONS true CONNECTION LIMIT 1")
        connection.execute("CREATE ROLE zebra_reader LOGIN")
        options = {"host": server.host, "port": server.port, "user": "zebra_reader", "dbname": "zebra_db"}
        with psycopg.connect(**options), pytest.raises(psycopg.OperationalError, match='too many connections for database "zebra_db"'):
            psycopg.connect(**options)
        connection.execute("REVOKE CONNECT ON DATABASE zebra_db FROM PUBLIC")
        with pytest.raises(psycopg.OperationalError, match='permission denied for database "zebra_db"'):
            psycopg.connect(**options)
    forget(server, "zebra")


def state(server):
    """What is in which database."""
    found = {}
    for (name,) in server.execute("SELECT datname FROM pg_database WHERE datallowconn ORDER BY 1"):
        with server.connect(name, autocommit=True) as connection:
            tables = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'same' ORDER BY 1").fetchall()
            rows = connection.execute("SELECT v FROM same.t").fetchall() if tables else []
            found[name] = (tables, rows)
    return found


def test_databases_come_back(private_server):
    """After an orderly stop, a kill, and from a checkpoint; dropped ones do not."""
    server = private_server
    server.start()
    make(server, "zebra")
    make(server, "okapi")
    server.execute(
        "ALTER DATABASE zebra_db SET work_mem = '7MB'",
        "ALTER DATABASE zebra_db CONNECTION LIMIT 9",
        "COMMENT ON DATABASE zebra_db IS 'striped'",
        "ALTER DATABASE zebra_db OWNER TO zebra_reader",
        "DROP DATABASE okapi_db",
    )
    known = "SELECT datname, datdba::regrole::text, datconnlimit, shobj_description(d.oid, 'pg_database'), setconfig"
    known += " FROM pg_database d LEFT JOIN pg_db_role_setting ON setdatabase = d.oid ORDER BY 1"
    before = (state(server), server.execute(known))
    assert "okapi_db" not in before[0] and before[0]["zebra_db"][1] == [("zebra row",)]
    for restart in (server.restart_after_kill, lambda: (server.stop(), server.start()), lambda: (server.execute("CHECKPOINT"), server.restart_after_kill())):
        restart()
        assert (state(server), server.execute(known)) == before
    # Nothing of what is gone is in the way of what is made anew.
    server.execute("CREATE DATABASE okapi_db")
    with server.connect("okapi_db", autocommit=True) as connection:
        for statement in OBJECTS:
            connection.execute(statement.format("okapi"))
    server.restart_after_kill()
    assert state(server)["okapi_db"][1] == [("okapi row",)]


def test_a_kill_leaves_all_of_a_database_or_nothing(private_server):
    server = private_server
    server.start()
    server.execute("CREATE ROLE zebra_reader")
    for round_number in range(4):
        done = []

        def work():
            try:
                with server.connect(autocommit=True) as connection:
                    for number in range(1000):
                        connection.execute(f"CREATE DATABASE churn_{round_number}_{number}")
                        with server.connect(f"churn_{round_number}_{number}", autocommit=True) as inside:
                            for statement in OBJECTS[:3]:
                                inside.execute(statement.format("zebra"))
                            inside.execute("INSERT INTO same.t (v) VALUES ('kept')")
                        if number % 2:
                            connection.execute(f"DROP DATABASE churn_{round_number}_{number}")
                        done.append(number)
            except psycopg.Error:
                pass

        thread = threading.Thread(target=work)
        thread.start()
        wait_until(lambda: len(done) > 1 + round_number, what="databases come and go")
        server.process.send_signal(signal.SIGKILL)
        thread.join(TIMEOUT_S)
        server.kill()
        server.start()
        found = {name: rows for name, (_, rows) in state(server).items() if name.startswith(f"churn_{round_number}_")}
        for number in done:
            name = f"churn_{round_number}_{number}"
            assert (name in found) == (number % 2 == 0), f"{name} of {done}"
            if number % 2 == 0:
                assert found[name] == [("kept",)]
        for name in found:
            server.execute(f"DROP DATABASE {name}")
    assert [name for name in state(server) if name.startswith("churn")] == []


def dumped(file):
    """A dump without the key that each has of its own."""
    return [line for line in file.read_text().splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]


def test_psql_and_the_programs_beside_it(server, tmp_path):
    forget(server, "zebra", "okapi")
    server.execute("CREATE ROLE zebra_reader", "CREATE ROLE okapi_reader")
    server.run("createdb", "-O", "zebra_reader", "-T", "template0", "-E", "UTF8", "zebra_db", "the zebra's")
    listed = server.psql("-At", "-c", "\\l")
    names = [line.split("|")[:3] for line in listed.splitlines() if line.count("|") > 3]
    for row in (["postgres", "postgres", "UTF8"], ["template0", "postgres", "UTF8"], ["template1", "postgres", "UTF8"], ["zebra_db", "zebra_reader", "UTF8"]):
        assert row in names
    assert "template1|postgres|UTF8" in listed and "=c/postgres" in listed
    assert "the zebra's" in server.psql("-At", "-c", "\\l+")
    shown = server.psql("-At", "-c", "\\c zebra_db", "-c", "SELECT current_database()", "-c", "\\conninfo")
    assert shown.count("zebra_db") == 3
    with server.connect("zebra_db", autocommit=True) as connection:
        for statement in OBJECTS:
            connection.execute(statement.format("zebra"))
    server.execute(
        "ALTER DATABASE zebra_db SET work_mem = '7MB'",
        "ALTER ROLE zebra_reader IN DATABASE zebra_db SET work_mem = '9MB'",
        "ALTER DATABASE zebra_db CONNECTION LIMIT 9",
        "GRANT CREATE ON DATABASE zebra_db TO okapi_reader",
    )
    plain, archive = tmp_path / "plain.sql", tmp_path / "archive"
    server.run("pg_dump", "--create", "-f", plain, "zebra_db")
    server.run("pg_dump", "--create", "-Fc", "-f", archive, "zebra_db")
    described = "SELECT datdba::regrole::text, datconnlimit, datacl::text, shobj_description(d.oid, 'pg_database'), (SELECT array_agg(setconfig::text ORDER BY 1)"
    described += " FROM pg_db_role_setting WHERE setdatabase = d.oid) FROM pg_database d WHERE datname = 'zebra_db'"
    before = server.execute(described)
    assert before[0][3] == "the zebra's" and len(before[0][4]) == 2
    for restore in (lambda: server.psql("-q", "-f", plain, "postgres"), lambda: server.run("pg_restore", "--create", "-e", "-d", "postgres", archive)):
        server.run("dropdb", "zebra_db")
        restore()
        assert server.execute(described) == before
        again = tmp_path / "again.sql"
        server.run("pg_dump", "--create", "-f", again, "zebra_db")
        assert dumped(again) == dumped(plain)
        with server.connect("zebra_db", autocommit=True) as connection:
            assert connection.execute("SELECT v, zebra FROM same.t").fetchall() == [("zebra row", 7)]
    server.run("dropdb", "--if-exists", "--force", "zebra_db")
    assert server.run("dropdb", "zebra_db", check=False).returncode == 1
    forget(server, "zebra", "okapi")
