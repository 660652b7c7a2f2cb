"""Views outlive the server, are undone with their transaction, and are shown to psql."""

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
    with private_server.connect() as connection:
        connection.execute("CREATE VIEW half AS SELECT id FROM t")
        connection.execute("DROP VIEW v CASCADE")
        assert connection.execute("SELECT count(*) FROM half").fetchone() == (2,)
        private_server.kill()
    private_server.start()
    check(private_server)
