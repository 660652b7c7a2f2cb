"""Generated columns outlive the server, go through pg_dump, and are read and written by drivers."""

import psycopg
import pytest


def test_generated_columns_outlive_a_crash(private_server):
    private_server.start()
    private_server.execute(
        "CREATE TABLE gen_crash (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED UNIQUE)",
        "INSERT INTO gen_crash SELECT generate_series(1, 100)",
        "ALTER TABLE gen_crash ADD COLUMN note int GENERATED ALWAYS AS (id % 7) STORED",
    )
    private_server.kill()
    private_server.start()
    with private_server.connect() as connection:
        assert connection.execute("SELECT id, note FROM gen_crash WHERE twice = 84").fetchone() == (42, 0)
        connection.execute("UPDATE gen_crash SET id = 1000 WHERE twice = 84")
        assert connection.execute("SELECT id, note FROM gen_crash WHERE twice = 2000").fetchone() == (1000, 6)
        with pytest.raises(psycopg.errors.GeneratedAlways):
            connection.execute("INSERT INTO gen_crash VALUES (7000, 1)")


def test_pg_dump_brings_generated_columns_back(private_server):
    private_server.start()
    private_server.execute(
        "CREATE TABLE gen_dump (a int, b int GENERATED ALWAYS AS (a * 2) STORED, c text DEFAULT 'c',"
        " d text GENERATED ALWAYS AS (upper(c)) STORED)",
        "INSERT INTO gen_dump VALUES (1), (2)",
        "CREATE INDEX gen_dump_b ON gen_dump (b)",
    )
    dump = private_server.run("pg_dump").stdout
    assert "GENERATED ALWAYS AS" in dump
    rows = private_server.execute("SELECT * FROM gen_dump ORDER BY a")
    private_server.execute("DROP TABLE gen_dump")
    private_server.run("psql", "-v", "ON_ERROR_STOP=1", "-q", stdin=dump)
    assert private_server.execute("SELECT * FROM gen_dump ORDER BY a") == rows
    # What is dumped again is the same.
    again = private_server.run("pg_dump").stdout
    without = lambda text: [line for line in text.splitlines() if not line.startswith("\\")]  # noqa: E731
    assert without(again) == without(dump)
    private_server.execute("DROP TABLE gen_dump")


def test_drivers_leave_generated_columns_out(private_server):
    private_server.start()
    with private_server.connect() as connection:
        connection.execute("CREATE TABLE gen_drv (a int, b int GENERATED ALWAYS AS (a + 1) STORED)")
        with connection.cursor().copy("COPY gen_drv FROM STDIN") as copy:
            copy.write_row([5])
        with connection.cursor().copy("COPY gen_drv (a) FROM STDIN") as copy:
            copy.write_row([6])
        with connection.cursor() as cursor:
            cursor.executemany("UPDATE gen_drv SET a = %s WHERE a = %s", [(50, 5), (60, 6)])
        assert connection.execute("SELECT * FROM gen_drv ORDER BY a").fetchall() == [(50, 51), (60, 61)]
        connection.execute("DROP TABLE gen_drv")
