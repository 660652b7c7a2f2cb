"""citext and hstore: what a crash and a dump bring back, and drivers read."""

from psycopg.types.hstore import register_hstore
from psycopg.types import TypeInfo

TABLES = """
CREATE EXTENSION citext;
CREATE SCHEMA bag;
CREATE EXTENSION hstore SCHEMA bag;
CREATE TABLE ex_users (email citext PRIMARY KEY, aliases citext[], attrs bag.hstore, CHECK (email ~ '@' AND email <> 'nobody@x'));
INSERT INTO ex_users VALUES ('Ann@X', '{A,b}', 'a=>1, b=>NULL'), ('bob@x', NULL, '');
"""


def test_extensions_outlive_a_crash_and_pg_dump_and_drivers_know_them(private_server):
    users = lambda: private_server.execute(  # noqa: E731
        "SET enable_seqscan = off", "SELECT email::text, aliases::text, attrs::text FROM ex_users AS u WHERE u.email IN ('ANN@x', 'BOB@X') ORDER BY u.email"
    )
    expected = [("Ann@X", "{A,b}", '"a"=>"1", "b"=>NULL'), ("bob@x", None, "")]
    private_server.start()
    private_server.psql("-q", "-v", "ON_ERROR_STOP=1", stdin=TABLES)
    private_server.kill()
    private_server.start()
    assert users() == expected
    dump = private_server.run("pg_dump").stdout
    assert "CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;" in dump
    assert "CREATE EXTENSION IF NOT EXISTS hstore WITH SCHEMA bag;" in dump
    assert "email public.citext NOT NULL" in dump and "attrs bag.hstore" in dump
    assert "CREATE TYPE" not in dump and "CREATE FUNCTION" not in dump and "CREATE OPERATOR" not in dump
    private_server.execute("DROP TABLE ex_users", "DROP SCHEMA bag CASCADE", "DROP EXTENSION citext")
    private_server.psql("-q", "-v", "ON_ERROR_STOP=1", stdin=dump)
    assert users() == expected
    without = lambda text: [line for line in text.splitlines() if not line.startswith("\\")]  # noqa: E731
    assert without(private_server.run("pg_dump").stdout) == without(dump)
    with private_server.connect() as connection:
        connection.execute("SET search_path = public, bag")
        register_hstore(TypeInfo.fetch(connection, "hstore"), connection)
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                assert cursor.execute("SELECT email::text, attrs FROM ex_users WHERE email = 'ANN@X'").fetchone() == ("Ann@X", {"a": "1", "b": None})
                for place in ("%t", "%b"):
                    found = cursor.execute(f"SELECT email::text FROM ex_users WHERE attrs = {place}", [{"b": None, "a": "1"}]).fetchall()
                    assert found == [("Ann@X",)]
