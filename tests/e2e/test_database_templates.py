"""CREATE DATABASE ... TEMPLATE: a copy of all that is in a database, at one moment, whole or not at all."""

import signal
import threading
import time
from contextlib import contextmanager

import psycopg
import pytest
from harness import TIMEOUT_S

# A bit of everything that a database can hold.
EVERYTHING = [
    "CREATE EXTENSION citext",
    "CREATE SCHEMA s",
    "CREATE TYPE s.mood AS ENUM ('sad', 'happy')",
    "CREATE DOMAIN s.positive AS int CHECK (VALUE > 0)",
    "CREATE TYPE s.pair AS (a int, b text)",
    "CREATE TABLE s.t (id serial PRIMARY KEY, v text CHECK (v <> ''), c citext UNIQUE, m s.mood, p s.pair, d s.positive, g int GENERATED ALWAYS AS (id * 2) STORED)",
    "CREATE INDEX t_lower ON s.t (lower(v))",
    "CREATE UNIQUE INDEX t_mood ON s.t (m) WHERE m IS NOT NULL",
    "INSERT INTO s.t (v, c, d) SELECT 'v' || g, 'C' || g, g FROM generate_series(1, 300) g",
    "UPDATE s.t SET m = 'happy', p = ROW(1, 'x') WHERE id = 7",
    "DELETE FROM s.t WHERE id % 10 = 0",
    "ALTER TABLE s.t ADD late int DEFAULT 5",
    "CREATE TABLE child (t int REFERENCES s.t ON DELETE CASCADE, n int GENERATED ALWAYS AS IDENTITY)",
    "INSERT INTO child (t) VALUES (7), (8)",
    "CREATE SEQUENCE s.counted START 10 INCREMENT 5",
    "SELECT nextval('s.counted'), nextval('s.counted')",
    "CREATE SEQUENCE s.fresh",
    "CREATE VIEW s.w AS SELECT id, v FROM s.t WHERE id < 5",
    "CREATE MATERIALIZED VIEW s.counts AS SELECT count(*) AS n FROM s.t",
    "CREATE FUNCTION s.plus(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 1'",
    "CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v || '!'; RETURN NEW; END $$",
    "CREATE TRIGGER told BEFORE INSERT ON s.t FOR EACH ROW EXECUTE FUNCTION told()",
    "ALTER TABLE child ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY shown ON child USING (n < 100)",
    "COMMENT ON TABLE s.t IS 'a table'",
    "COMMENT ON COLUMN s.t.v IS 'a column'",
    "GRANT SELECT (v), UPDATE ON s.t TO template_role",
    "ALTER TABLE child OWNER TO template_role",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO template_role",
    "ALTER TABLE child SET (fillfactor = 70)",
    "ANALYZE s.t",
]

# What it looks like from outside.
LOOKS = [
    "SELECT id, v, c::text, m::text, p::text, d, g, late FROM s.t ORDER BY id",
    "SELECT t, n FROM child ORDER BY 2",
    "SELECT n FROM s.counts",
    "SELECT id, v FROM s.w ORDER BY 1",
    "SELECT oid, relname, relkind, relowner::regrole::text, relacl::text, reloptions FROM pg_class WHERE relnamespace IN ('s'::regnamespace, 'public'::regnamespace) ORDER BY 1",
    "SELECT oid, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid > 16384 ORDER BY 1",
    "SELECT oid, tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1",
    "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid > 16384 ORDER BY 1",
    "SELECT oid, enumlabel, enumsortorder FROM pg_enum ORDER BY 1",
    "SELECT extname, extversion FROM pg_extension ORDER BY 1",
    "SELECT polname, polrelid::regclass::text FROM pg_policy",
    "SELECT obj_description('s.t'::regclass), col_description('s.t'::regclass, 2)",
    "SELECT defaclrole::regrole::text, defaclacl::text FROM pg_default_acl",
    "SELECT attname, n_distinct FROM pg_stats WHERE tablename = 't' AND schemaname = 's' ORDER BY 1",
    "SELECT proname, prosrc FROM pg_proc WHERE pronamespace IN ('s'::regnamespace, 'public'::regnamespace) AND prolang <> 13 ORDER BY 1",
]


def looks(server, database):
    with server.connect(database, autocommit=True) as connection:
        return [connection.execute(query).fetchall() for query in LOOKS]


def fill(server, database, statements=EVERYTHING):
    with server.connect(database, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def forget(server, *databases):
    for database in databases:
        server.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")


def test_everything_goes_over_and_stays_apart(private_server):
    server = private_server
    server.start()
    server.execute("CREATE ROLE template_role", "CREATE DATABASE model")
    fill(server, "model")
    before = looks(server, "model")
    server.execute("CREATE DATABASE copy TEMPLATE model")
    assert looks(server, "copy") == before
    with server.connect("copy", autocommit=True) as connection:
        # A sequence goes on where the other stands; a crash, later, skips values.
        assert connection.execute("SELECT last_value, is_called FROM s.counted").fetchone() == (15, True)
        run = lambda query: connection.execute(query).fetchall()  # noqa: E731
        assert run("INSERT INTO s.t (v, c) VALUES ('new', 'another') RETURNING id, v") == [(301, "new!")]
        assert run("SELECT nextval('s.counted'), nextval('s.fresh'), s.plus(1)") == [(20, 1, 2)]
        for refused, error in [
            ("INSERT INTO s.t (v, c) VALUES ('x', 'c7')", psycopg.errors.UniqueViolation),
            ("UPDATE s.t SET v = '' WHERE id = 8", psycopg.errors.CheckViolation),
            ("INSERT INTO child (t) VALUES (9999)", psycopg.errors.ForeignKeyViolation),
            ("UPDATE s.t SET m = 'happy' WHERE id = 8", psycopg.errors.UniqueViolation),
        ]:
            with pytest.raises(error):
                connection.execute(refused)
        assert run("SELECT id FROM s.t WHERE lower(v) = 'v123'") == [(123,)]
        assert run("SELECT id FROM s.t WHERE c = 'c125'") == [(125,)]
        # What is changed in one is not in the other, although its numbers are the same.
        connection.execute("ALTER TYPE s.mood ADD VALUE 'odd'")
        connection.execute("DELETE FROM s.t WHERE id = 7")
        connection.execute("ALTER TABLE s.t DROP COLUMN late")
        connection.execute("REFRESH MATERIALIZED VIEW s.counts")
        connection.execute("DROP VIEW s.w")
        connection.execute("COMMENT ON TABLE s.t IS 'mine'")
        assert run("SELECT count(*) FROM child") == [(1,)]
    assert looks(server, "model") == before
    for restart in (server.restart_after_kill, lambda: (server.execute("CHECKPOINT"), server.restart_after_kill())):
        restart()
        assert looks(server, "model") == before
        with server.connect("copy", autocommit=True) as connection:
            assert connection.execute("SELECT count(*), obj_description('s.t'::regclass) FROM s.t").fetchone() == (270, "mine")
            assert connection.execute("SELECT enum_range(NULL::s.mood)::text").fetchone() == ("{sad,happy,odd}",)
    # The model may go: the copy has its own of everything.
    server.execute("DROP DATABASE model")
    server.restart_after_kill()
    with server.connect("copy", autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM s.t").fetchone() == (270,)
        assert connection.execute("INSERT INTO s.t (id, v, c) VALUES (5000, 'last', 'last') RETURNING v").fetchone() == ("last!",)
    server.execute("DROP DATABASE copy")


def test_a_template_in_use_is_refused_and_entered_later(server):
    forget(server, "model", "copy", "second")
    server.execute("CREATE DATABASE model")
    fill(server, "model", ["CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 1000) g"])
    user = server.connect("model", autocommit=True)
    user.execute("SELECT 1")
    with pytest.raises(psycopg.errors.ObjectInUse, match='source database "model" is being accessed by other users') as refused:
        server.execute("CREATE DATABASE copy TEMPLATE model")
    assert refused.value.diag.message_detail == "There is 1 other session using the database."
    # Who copies the database that it is in is not in its own way.
    user.execute("CREATE DATABASE copy TEMPLATE model")
    user.close()
    server.execute("CREATE DATABASE second TEMPLATE copy")
    with server.connect("second", autocommit=True) as connection:
        assert connection.execute("SELECT count(*), sum(a) FROM t").fetchone() == (1000, 500500)
    # Several copies of one template, each by a session of its own, and somebody who wants to come in.
    errors = []

    def copy(number):
        try:
            server.execute(f"CREATE DATABASE many_{number} TEMPLATE model")
        except psycopg.Error as error:
            errors.append(error)

    threads = [threading.Thread(target=copy, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert errors == []
    with server.connect("model", autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    for number in range(4):
        with server.connect(f"many_{number}", autocommit=True) as connection:
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    forget(server, "model", "copy", "second", *(f"many_{number}" for number in range(4)))


def test_whose_database_it_is(server):
    forget(server, "model", "copy")
    server.execute("DROP ROLE IF EXISTS maker", "CREATE ROLE maker LOGIN CREATEDB", "CREATE DATABASE model")
    fill(server, "model", ["CREATE TABLE t (a int)"])
    with server.connect(autocommit=True) as connection:
        connection.execute("SET ROLE maker")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match='permission denied to copy database "model"'):
            connection.execute("CREATE DATABASE copy TEMPLATE model")
        connection.execute("RESET ROLE")
        connection.execute("ALTER DATABASE model IS_TEMPLATE true ALLOW_CONNECTIONS false")
        connection.execute("ALTER DATABASE model SET work_mem = '7MB'")
        connection.execute("GRANT CREATE ON DATABASE model TO maker")
        connection.execute("COMMENT ON DATABASE model IS 'a model'")
        connection.execute("SET ROLE maker")
        connection.execute("CREATE DATABASE copy TEMPLATE model CONNECTION LIMIT 3")
        connection.execute("RESET ROLE")
        told = "SELECT datdba::regrole::text, datistemplate, datallowconn, datconnlimit, datacl::text, shobj_description(oid, 'pg_database') FROM pg_database"
        assert connection.execute(told + " WHERE datname = 'copy'").fetchone() == ("maker", False, True, 3, None, None)
        with server.connect("copy", autocommit=True) as inside:
            assert inside.execute("SHOW work_mem").fetchone() != ("7MB",)
            assert inside.execute("SELECT tableowner FROM pg_tables WHERE tablename = 't'").fetchone() == ("postgres",)
        with pytest.raises(psycopg.errors.WrongObjectType, match="cannot drop a template database"):
            connection.execute("DROP DATABASE model")
        connection.execute("ALTER DATABASE model IS_TEMPLATE false")
        with pytest.raises(psycopg.errors.DuplicateDatabase):
            connection.execute("CREATE DATABASE copy TEMPLATE model")
        with pytest.raises(psycopg.errors.InvalidCatalogName, match='template database "nowhere" does not exist'):
            connection.execute("CREATE DATABASE other TEMPLATE nowhere")
    forget(server, "model", "copy")
    server.execute("DROP ROLE maker")


def test_template1_is_what_others_begin_with(private_server):
    server = private_server
    server.start()
    with server.connect("template1", autocommit=True) as connection:
        connection.execute("CREATE TABLE everywhere (a int)")
        connection.execute("INSERT INTO everywhere VALUES (1)")
        connection.execute("CREATE EXTENSION citext")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    server.execute("CREATE DATABASE one", "CREATE DATABASE bare TEMPLATE template0")
    server.restart_after_kill()
    with server.connect("one", autocommit=True) as connection:
        assert connection.execute("SELECT a, 'A'::citext = 'a' FROM everywhere").fetchall() == [(1, True)]
    with server.connect("bare", autocommit=True) as connection:
        assert connection.execute("SELECT to_regclass('everywhere')").fetchone() == (None,)
    with server.connect("template1", autocommit=True) as connection:
        connection.execute("DROP TABLE everywhere")
        connection.execute("DROP EXTENSION citext")
    server.execute("CREATE DATABASE two")
    with server.connect("two", autocommit=True) as connection:
        assert connection.execute("SELECT to_regclass('everywhere')").fetchone() == (None,)


TABLES = 30
ROWS = 3000


@pytest.mark.logstead_only
def test_a_kill_amid_a_copy_leaves_all_of_it_or_nothing(private_server):
    server = private_server
    server.start()
    server.execute("CREATE DATABASE model")
    with server.connect("model", autocommit=True) as connection:
        for number in range(TABLES):
            connection.execute(f"CREATE TABLE t{number} (a serial PRIMARY KEY, b text)")
            connection.execute(f"INSERT INTO t{number} (b) SELECT repeat('x', 100) || g FROM generate_series(1, {ROWS}) g")
    began = time.monotonic()
    server.execute("CREATE DATABASE whole TEMPLATE model")
    took = time.monotonic() - began
    for attempt, share in enumerate((0.1, 0.4, 0.7, 0.95, 1.0)):
        thread = threading.Thread(target=create_quietly, args=(server, f"copy{attempt}"))
        thread.start()
        time.sleep(took * share)
        server.process.send_signal(signal.SIGKILL)
        thread.join(TIMEOUT_S)
        server.kill()
        server.start()
        names = [name for (name,) in server.execute("SELECT datname FROM pg_database")]
        assert "model" in names and "whole" in names
        if f"copy{attempt}" in names:
            with server.connect(f"copy{attempt}", autocommit=True) as connection:
                for number in range(TABLES):
                    counted = connection.execute(f"SELECT count(*), max(a), count(DISTINCT b) FROM t{number}").fetchone()
                    assert counted == (ROWS, ROWS, ROWS)
                    assert connection.execute(f"SELECT a FROM t{number} WHERE a = 77").fetchone() == (77,)
                    assert connection.execute(f"INSERT INTO t{number} (b) VALUES ('y') RETURNING a").fetchone()[0] > ROWS
            server.execute(f"DROP DATABASE copy{attempt}")
        # Nothing is in the way of another.
        server.execute(f"CREATE DATABASE again{attempt} TEMPLATE model", f"DROP DATABASE again{attempt}")


def create_quietly(server, name):
    try:
        server.execute(f"CREATE DATABASE {name} TEMPLATE model")
    except psycopg.Error:
        pass


@contextmanager
def canceled_until_over(connection):
    """Cancels whatever the connection does, again and again: one of these comes while the statement runs."""
    over = threading.Event()

    def cancel():
        while not over.wait(0.02):
            connection.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(TIMEOUT_S)


@pytest.mark.logstead_only
def test_a_copy_is_cancelled_and_its_room_given_back(private_server):
    server = private_server
    server.start()
    server.execute("CREATE DATABASE model")
    with server.connect("model", autocommit=True) as connection:
        connection.execute("CREATE TABLE big AS SELECT g AS a, repeat('y', 200) AS b FROM generate_series(1, 150000) g")
        connection.execute("CREATE INDEX ON big (a)")
    with server.connect(autocommit=True) as connection:
        with canceled_until_over(connection), pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("CREATE DATABASE copy TEMPLATE model")
        assert connection.execute("SELECT count(*) FROM pg_database WHERE datname = 'copy'").fetchone() == (0,)
        connection.execute("SET statement_timeout = '50ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("CREATE DATABASE copy TEMPLATE model")
        connection.execute("RESET statement_timeout")
        # The template is open again, and others go on beside a copy.
        with server.connect("model", autocommit=True) as inside:
            assert inside.execute("SELECT count(*) FROM big").fetchone() == (150000,)
        thread = threading.Thread(target=create_quietly, args=(server, "copy"))
        thread.start()
        slowest = 0.0
        while thread.is_alive():
            began = time.monotonic()
            connection.execute("SELECT 1")
            slowest = max(slowest, time.monotonic() - began)
        thread.join(TIMEOUT_S)
        print(f"slowest statement beside the copy: {slowest * 1000:.0f} ms")
    with server.connect("copy", autocommit=True) as connection:
        assert connection.execute("SELECT count(*), sum(a) FROM big").fetchone() == (150000, 11250075000)
        assert connection.execute("SELECT a FROM big WHERE a = 149999").fetchone() == (149999,)


def test_what_a_copy_of_two_hundred_tables_takes(server):
    """Prints it; asserts what is there."""
    forget(server, "model", "copy")
    server.execute("CREATE DATABASE model")
    with server.connect("model", autocommit=True) as connection:
        for number in range(200):
            connection.execute(f"CREATE TABLE t{number} (id serial PRIMARY KEY, v text)")
            connection.execute(f"INSERT INTO t{number} (v) SELECT 'row ' || g FROM generate_series(1, 500) g")
    began = time.monotonic()
    server.execute("CREATE DATABASE copy TEMPLATE model")
    print(f"200 tables, 100,000 rows: {time.monotonic() - began:.2f} s")
    with server.connect("copy", autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (200,)
        assert connection.execute("SELECT count(*), max(id) FROM t199").fetchone() == (500, 500)
    forget(server, "model", "copy")


@pytest.mark.logstead_only
def test_who_holds_the_list_of_databases_keeps_no_template_shut(private_server):
    server = private_server
    server.start()
    server.execute("CREATE DATABASE other", "CREATE DATABASE filled")
    with server.connect(dbname="filled", autocommit=True) as inside:
        inside.execute("CREATE TABLE t AS SELECT 1 AS a")
    with server.connect() as holder, server.connect(autocommit=True) as maker:
        holder.execute("COMMENT ON DATABASE other IS 'x'")
        with pytest.raises(psycopg.errors.LockNotAvailable, match="list of databases"):
            maker.execute("CREATE DATABASE copied TEMPLATE filled")
        # It is open again, though the list is still held.
        with server.connect(dbname="filled", autocommit=True) as inside:
            assert inside.execute("SELECT a FROM t").fetchall() == [(1,)]
        holder.rollback()
        maker.execute("CREATE DATABASE copied TEMPLATE filled")
    with server.connect(dbname="copied", autocommit=True) as inside:
        assert inside.execute("SELECT a FROM t").fetchall() == [(1,)]
