"""By which columns tables are distributed: psql shows it, pg_dump and pg_restore carry it, kill -9 does not lose it."""

from __future__ import annotations

from pathlib import Path

TABLES = """
CREATE TABLE di_hash (id int PRIMARY KEY, "Odd name" text NOT NULL) WITH (distribution = 'hash ("Odd name", id)', fillfactor = 70);
CREATE TABLE di_single (id int PRIMARY KEY) WITH (distribution = single);
CREATE TABLE di_plain (id int PRIMARY KEY, v int);
CREATE MATERIALIZED VIEW di_view WITH (distribution = 'hash (id)') AS SELECT id FROM di_hash;
INSERT INTO di_hash SELECT g, 'n' || g FROM generate_series(1, 500) g;
INSERT INTO di_plain SELECT g, g FROM generate_series(1, 500) g;
ALTER TABLE di_plain SET (distribution = 'hash (id)');
ALTER TABLE di_plain RESET (distribution);
REFRESH MATERIALIZED VIEW di_view;
"""

OPTIONS = "SELECT relname, reloptions FROM pg_class WHERE relname LIKE 'di%' AND relkind IN ('r', 'm') ORDER BY 1"
ROWS = [
    'SELECT count(*), count(DISTINCT "Odd name"), sum(id) FROM di_hash',
    "SELECT \"Odd name\" FROM di_hash WHERE id = 77",
    "SELECT count(*) FROM di_hash WHERE \"Odd name\" = 'n77' AND id = 77",
    "SELECT count(*), sum(v) FROM di_plain WHERE id BETWEEN 100 AND 199",
    "SELECT count(*) FROM di_view WHERE id > 400",
]
EXPECTED = [(500, 500, 125250), ("n77",), (1,), (100, 14950), (100,)]


def check(server, dbname="postgres") -> None:
    """The database is as TABLES has made it."""
    with server.connect(dbname=dbname, autocommit=True) as connection:
        assert connection.execute(OPTIONS).fetchall() == [
            ("di_hash", ["fillfactor=70", 'distribution=hash ("Odd name", id)']),
            ("di_plain", None),
            ("di_single", ["distribution=single"]),
            ("di_view", ["distribution=hash (id)"]),
        ]
        assert [connection.execute(question).fetchone() for question in ROWS] == EXPECTED


def test_psql_and_dumps_carry_what_was_said(private_server, tmp_path: Path):
    private_server.start()
    private_server.psql("-q", stdin=TABLES)
    check(private_server)
    described = private_server.psql("-c", "\\d+ di_hash")
    assert 'Options: fillfactor=70, distribution=hash ("Odd name", id)' in described
    assert "Options: distribution=single" in private_server.psql("-c", "\\d+ di_single")
    private_server.kill()
    private_server.start()
    check(private_server)
    dump = private_server.run("pg_dump").stdout
    assert """WITH (fillfactor='70', distribution='hash ("Odd name", id)');""" in dump
    assert dump.count("distribution=") == 3
    archive = tmp_path / "di.dump"
    private_server.run("pg_dump", "-Fc", "-f", archive)
    private_server.execute("CREATE DATABASE di_plain_text", "CREATE DATABASE di_archive")
    private_server.psql("-q", "di_plain_text", stdin=dump)
    private_server.run("pg_restore", "-e", "-d", "di_archive", archive)
    private_server.execute("CREATE DATABASE di_copy TEMPLATE di_archive")
    for database in ("di_plain_text", "di_archive", "di_copy"):
        check(private_server, database)
    private_server.stop()
    private_server.start()
    for database in ("di_plain_text", "di_archive", "di_copy"):
        check(private_server, database)
