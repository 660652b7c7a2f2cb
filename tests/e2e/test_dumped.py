"""What pg_dump writes of a database restores into a fresh one: members of extensions, and what is only kept to be told."""

from __future__ import annotations

TABLES = """
CREATE EXTENSION pgcrypto;
CREATE SCHEMA crypt;
CREATE EXTENSION "uuid-ossp" SCHEMA crypt;
CREATE TABLE du_t (id uuid DEFAULT crypt.uuid_generate_v4(), a int NOT NULL, b varchar(20) COLLATE "C", c text, UNIQUE (a)) WITH (fillfactor = 70);
ALTER TABLE du_t REPLICA IDENTITY USING INDEX du_t_a_key, ALTER a SET STATISTICS 500, ALTER c SET STORAGE EXTERNAL;
CREATE INDEX du_t_b ON du_t (b varchar_pattern_ops DESC, lower(c) COLLATE "C");
CREATE TABLE du_u (a int);
ALTER TABLE du_u REPLICA IDENTITY FULL;
INSERT INTO du_t (a, b, c) VALUES (1, 'x', encode(digest('x', 'sha256'), 'hex'));
"""

KEPT = [
    "SELECT relname, relreplident, reloptions FROM pg_class WHERE relname LIKE 'du%' ORDER BY 1",
    "SELECT attrelid::regclass::text, attname, attstattarget, attstorage, attcollation FROM pg_attribute"
    " WHERE attrelid IN ('du_t'::regclass, 'du_t_b'::regclass) AND attnum > 0 ORDER BY 1, 2",
    "SELECT pg_get_indexdef('du_t_b'::regclass), indclass::text, indcollation::text FROM pg_index WHERE indexrelid = 'du_t_b'::regclass",
    "SELECT indisreplident FROM pg_index WHERE indexrelid = 'du_t_a_key'::regclass",
    "SELECT e.extname, n.nspname, count(*) > 0 FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid JOIN pg_proc p ON p.oid = d.objid"
    " JOIN pg_namespace n ON n.oid = p.pronamespace WHERE d.deptype = 'e' AND d.classid = 'pg_proc'::regclass"
    " AND d.refclassid = 'pg_extension'::regclass GROUP BY 1, 2 ORDER BY 1",
]


def kept(server, dbname="postgres"):
    """What a database tells of all that is kept."""
    with server.connect(dbname=dbname, autocommit=True) as connection:
        return [connection.execute(question).fetchall() for question in KEPT]


def test_a_dump_restores_extensions_and_what_is_kept(private_server):
    private_server.start()
    private_server.psql("-q", "-v", "ON_ERROR_STOP=1", stdin=TABLES)
    before = kept(private_server)
    assert before[0] == [
        ("du_t", "i", ["fillfactor=70"]),
        ("du_t_a_key", "n", None),
        ("du_t_b", "n", None),
        ("du_u", "f", None),
    ]
    assert before[2][0][0] == 'CREATE INDEX du_t_b ON public.du_t USING btree (b varchar_pattern_ops DESC, lower(c) COLLATE "C")'
    assert before[3] == [(True,)]
    assert before[4] == [("pgcrypto", "public", True), ("uuid-ossp", "crypt", True)]
    private_server.kill()
    private_server.start()
    assert kept(private_server) == before
    dump = private_server.run("pg_dump").stdout
    assert "CREATE FUNCTION" not in dump
    for said in (
        "CREATE EXTENSION IF NOT EXISTS pgcrypto WITH SCHEMA public;",
        'CREATE EXTENSION IF NOT EXISTS "uuid-ossp" WITH SCHEMA crypt;',
        "ALTER TABLE ONLY public.du_t ALTER COLUMN a SET STATISTICS 500;",
        "ALTER TABLE ONLY public.du_t ALTER COLUMN c SET STORAGE EXTERNAL;",
        "ALTER TABLE ONLY public.du_t REPLICA IDENTITY USING INDEX du_t_a_key;",
        "ALTER TABLE ONLY public.du_u REPLICA IDENTITY FULL;",
        'b character varying(20) COLLATE pg_catalog."C"',
    ):
        assert said in dump, said
    private_server.execute("CREATE DATABASE du_fresh")
    private_server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "du_fresh", stdin=dump)
    assert kept(private_server, "du_fresh") == before
    without = lambda text: [line for line in text.splitlines() if not line.startswith("\\")]  # noqa: E731
    assert without(private_server.run("pg_dump", "du_fresh").stdout) == without(dump)
