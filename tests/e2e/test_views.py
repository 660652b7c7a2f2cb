"""Views outlive the server, are undone with their transaction, go through pg_dump, and are read in the past."""

import pytest

SETUP = [
    "CREATE TABLE t (id int PRIMARY KEY, a int, b text)",
    "INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y')",
    "CREATE VIEW v (k, doubled) AS SELECT id, a * 2 FROM t WHERE a > 5",
    "CREATE VIEW on_v AS SELECT sum(doubled) AS total FROM v",
    "CREATE VIEW gone AS SELECT 1 AS one",
    "DROP VIEW gone",
    "ALTER TABLE t RENAME COLUMN a TO renamed",
    "ALTER TABLE t ADD COLUMN later int",
]


def check(server) -> None:
    """What SETUP leaves."""
    assert server.execute("SELECT * FROM v ORDER BY k") == [(1, 20), (2, 40)]
    assert server.execute("SELECT total FROM on_v") == [(60,)]
    assert server.execute("SELECT viewname FROM pg_views WHERE schemaname = 'public' ORDER BY 1") == [("on_v",), ("v",)]


def test_views_survive(private_server):
    private_server.start()
    private_server.execute(*SETUP)
    check(private_server)
    private_server.kill()
    private_server.start()
    check(private_server)
    # A view that is read cannot lose its table, in this life either.
    refused = private_server.run("psql", "-X", "-c", "DROP TABLE t", check=False)
    assert "view v depends on table t" in refused.stderr
    private_server.execute("CREATE OR REPLACE VIEW v (k, doubled) AS SELECT id, renamed * 3 FROM t")
    assert private_server.stop() == 0
    private_server.start()
    assert private_server.execute("SELECT total FROM on_v") == [(90,)]
    private_server.execute("DROP TABLE t CASCADE")
    private_server.kill()
    private_server.start()
    assert private_server.execute("SELECT count(*) FROM pg_class WHERE relkind = 'v' AND oid >= 16384") == [(0,)]


def test_what_is_not_committed_is_gone(private_server):
    private_server.start()
    private_server.execute(*SETUP)
    connection = private_server.connect()
    connection.execute("CREATE VIEW half AS SELECT id FROM t")
    connection.execute("DROP VIEW v CASCADE")
    assert connection.execute("SELECT count(*) FROM half").fetchone() == (2,)
    private_server.kill()
    connection.close()
    private_server.start()
    check(private_server)


MATERIALIZED = [
    "CREATE TABLE t (id int PRIMARY KEY, a int)",
    "INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 100) g",
    "CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a",
    "CREATE UNIQUE INDEX ON m (a)",
    "CREATE MATERIALIZED VIEW empty AS SELECT id FROM t WITH NO DATA",
    "DELETE FROM t WHERE id > 50",
    "REFRESH MATERIALIZED VIEW CONCURRENTLY m",
    "DELETE FROM t",
]


def test_materialized_views_survive(private_server):
    private_server.start()
    private_server.execute(*MATERIALIZED)
    for _ in range(2):
        private_server.kill()
        private_server.start()
        assert private_server.execute("SELECT sum(n), count(*) FROM m") == [(50, 10)]
        assert private_server.execute("SELECT n FROM m WHERE a = 3") == [(5,)]
        assert private_server.execute("SELECT relname, relispopulated FROM pg_class WHERE relkind = 'm' ORDER BY 1") == [
            ("empty", False),
            ("m", True),
        ]
        private_server.execute("CHECKPOINT")
    private_server.execute("REFRESH MATERIALIZED VIEW m")
    private_server.kill()
    private_server.start()
    assert private_server.execute("SELECT count(*) FROM m") == [(0,)]


def test_pg_dump_brings_views_back(private_server):
    private_server.start()
    private_server.execute(
        *SETUP,
        "CREATE VIEW checked AS SELECT id, b FROM t WHERE id > 1 WITH CASCADED CHECK OPTION",
        "CREATE MATERIALIZED VIEW kept AS SELECT k, doubled FROM v",
        "CREATE UNIQUE INDEX kept_k ON kept (k)",
    )
    dump = private_server.run("pg_dump").stdout
    private_server.execute("DROP TABLE t CASCADE")
    private_server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", stdin=dump)
    check_names = "SELECT relname, relkind, reloptions FROM pg_class WHERE relname IN ('checked', 'kept', 'v') ORDER BY 1"
    assert private_server.execute(check_names) == [
        ("checked", "v", ["check_option=cascaded"]),
        ("kept", "m", None),
        ("v", "v", None),
    ]
    assert private_server.execute("SELECT total FROM on_v") == [(60,)]
    assert private_server.execute("SELECT * FROM kept ORDER BY k") == [(1, 20), (2, 40)]
    # What is dumped again is the same.
    again = private_server.run("pg_dump").stdout
    without = lambda text: [line for line in text.splitlines() if not line.startswith("\\")]  # noqa: E731
    assert without(again) == without(dump)


@pytest.mark.logstead_only
def test_views_are_read_in_the_past(private_server):
    """A view as it was, over its table as it was, though neither is there any more."""
    private_server.start(("--checkpoint-interval", "100ms"))
    private_server.execute(
        *SETUP,
        "CREATE MATERIALIZED VIEW kept AS SELECT k FROM v",
        "SELECT logstead_create_restore_point('then')",
        "INSERT INTO t VALUES (3, 30, 'z')",
        "CREATE OR REPLACE VIEW v (k, doubled) AS SELECT id, 0 FROM t",
        "REFRESH MATERIALIZED VIEW kept",
    )
    assert private_server.execute("SELECT total FROM on_v") == [(0,)]
    private_server.execute("DROP TABLE t CASCADE")
    with private_server.connect(autocommit=True) as connection:
        connection.execute("SET logstead.as_of = 'then'")
        assert connection.execute("SELECT * FROM v ORDER BY k").fetchall() == [(1, 20), (2, 40)]
        assert connection.execute("SELECT total FROM on_v").fetchone() == (60,)
        assert connection.execute("SELECT k FROM kept ORDER BY k").fetchall() == [(1,), (2,)]
