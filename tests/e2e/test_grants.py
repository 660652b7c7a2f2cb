"""Owners and privileges with real roles, each on connections of its own: what is granted holds, what is not does not, and an attacker learns nothing."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

DENIED = errors.InsufficientPrivilege


def as_role(server, role: str, **options) -> psycopg.Connection:
    """A connection of a role."""
    options.setdefault("autocommit", True)
    return psycopg.connect(host=server.host, port=server.port, user=role, dbname="postgres", **options)


@pytest.fixture
def roles(server):
    """A maker with a schema of its own, and two others that may log in and nothing else."""
    server.execute(
        "CREATE ROLE grants_maker LOGIN",
        "CREATE ROLE grants_reader LOGIN",
        "CREATE ROLE grants_nobody LOGIN",
        "CREATE SCHEMA grants AUTHORIZATION grants_maker",
        "ALTER ROLE grants_maker SET search_path = grants",
        "ALTER ROLE grants_reader SET search_path = grants",
        "ALTER ROLE grants_nobody SET search_path = grants",
    )
    with as_role(server, "grants_maker") as maker:
        maker.execute("CREATE TABLE account (id int PRIMARY KEY, owner text UNIQUE, secret text NOT NULL, CHECK (id < 1000))")
        maker.execute("INSERT INTO account SELECT i, 'o' || i, 'secret' || i FROM generate_series(1, 10) i")
        maker.execute("CREATE VIEW owners AS SELECT id, owner FROM account WHERE id < 5")
        maker.execute("CREATE SEQUENCE numbers")
    yield
    server.execute(
        "DROP OWNED BY grants_maker, grants_reader, grants_nobody CASCADE",
        "DROP ROLE grants_maker, grants_reader, grants_nobody",
    )


def test_a_role_that_may_only_log_in_does_nothing(server, roles):
    attempts = [
        "SELECT * FROM grants.account",
        "SELECT count(*) FROM grants.owners",
        "INSERT INTO grants.account VALUES (11, 'x', 'y')",
        "UPDATE grants.account SET id = id WHERE 1 / (id - 1) > 0",
        "DELETE FROM grants.account WHERE secret LIKE 's%'",
        "TRUNCATE grants.account",
        "COPY grants.account TO STDOUT",
        "EXPLAIN SELECT * FROM grants.account",
        "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM grants.account",
        "CREATE TABLE public.mine AS SELECT * FROM grants.account",
        "CREATE VIEW public.mine AS SELECT * FROM grants.account",
        "CREATE TABLE public.mine (a int)",
        "CREATE SCHEMA mine",
        "CREATE INDEX ON grants.account (owner)",
        "ALTER TABLE grants.account ADD mine int",
        "ALTER TABLE grants.account OWNER TO grants_nobody",
        "DROP TABLE grants.account",
        "DROP VIEW grants.owners",
        "DROP SCHEMA grants CASCADE",
        "COMMENT ON TABLE grants.account IS 'mine'",
        "GRANT SELECT ON grants.account TO grants_nobody",
        "GRANT USAGE ON SCHEMA grants TO grants_nobody",
        "REASSIGN OWNED BY grants_maker TO grants_nobody",
        "DROP OWNED BY grants_maker",
        "ALTER DEFAULT PRIVILEGES FOR ROLE grants_maker GRANT ALL ON TABLES TO grants_nobody",
        "SELECT nextval('grants.numbers')",
        "SELECT setval('grants.numbers', 1)",
        "ALTER SEQUENCE grants.numbers RESTART",
        "SET ROLE grants_maker",
        "SET SESSION AUTHORIZATION grants_maker",
        "CREATE ROLE another",
        "GRANT grants_maker TO grants_nobody",
        "ALTER ROLE grants_maker PASSWORD 'mine'",
        "SELECT rolpassword FROM pg_authid",
    ]
    with as_role(server, "grants_nobody") as nobody:
        for attempt in attempts:
            with pytest.raises(psycopg.Error) as refused:
                nobody.execute(attempt)
            assert refused.value.sqlstate == "42501", f"{attempt}: {refused.value}"
        assert nobody.execute("SELECT last_value FROM pg_sequences WHERE sequencename = 'numbers'").fetchone() == (None,)
    assert server.execute("SELECT count(*), min(secret) FROM grants.account") == [(10, "secret1")]


def test_grants_hold_from_the_next_statement_on_and_no_longer_than_they_last(server, roles):
    with as_role(server, "grants_maker") as maker, as_role(server, "grants_reader") as reader:
        maker.execute("GRANT USAGE ON SCHEMA grants TO grants_reader")
        maker.execute("GRANT SELECT ON account TO grants_reader")
        for _ in range(8):
            assert reader.execute("SELECT secret FROM account WHERE id = %s", [3], prepare=True).fetchone() == ("secret3",)
        # A prepared statement, a cursor that is open and a plan that is shared are asked again.
        maker.execute("REVOKE SELECT ON account FROM grants_reader")
        with pytest.raises(DENIED):
            reader.execute("SELECT secret FROM account WHERE id = %s", [3], prepare=True)
        assert maker.execute("SELECT secret FROM account WHERE id = %s", [3], prepare=True).fetchone() == ("secret3",)
        with pytest.raises(DENIED):
            reader.execute("SELECT secret FROM account WHERE id = 3")
        # What is taken back was never granted.
        with pytest.raises(ZeroDivisionError), maker.transaction():
            maker.execute("GRANT SELECT ON account TO grants_reader")
            raise ZeroDivisionError
        with pytest.raises(DENIED):
            reader.execute("SELECT 1 FROM account")
        # A role of which one is a member counts at once, and no longer.
        server.execute("GRANT pg_read_all_data TO grants_reader")
        assert reader.execute("SELECT count(*) FROM account").fetchone() == (10,)
        server.execute("REVOKE pg_read_all_data FROM grants_reader")
        with pytest.raises(DENIED):
            reader.execute("SELECT count(*) FROM account")


def test_errors_tell_nothing_of_columns_that_may_not_be_read(server, roles):
    with as_role(server, "grants_maker") as maker, as_role(server, "grants_reader") as reader:
        maker.execute("GRANT USAGE ON SCHEMA grants TO grants_reader")
        maker.execute("GRANT SELECT (id), UPDATE (id, owner), INSERT ON account TO grants_reader")
        for statement in (
            "UPDATE account SET id = 2000 WHERE id = 1",
            "UPDATE account SET owner = 'o2' WHERE id = 1",
            "UPDATE account SET id = NULL WHERE id = 1",
            "INSERT INTO account (id, owner) VALUES (1, NULL)",
        ):
            with pytest.raises(errors.IntegrityError) as refused:
                reader.execute(statement)
            assert "secret1" not in str(refused.value), statement
        for statement in (
            "UPDATE account SET owner = secret WHERE id = 1",
            "UPDATE account SET owner = 'x' WHERE secret = 'secret1'",
            "UPDATE account SET owner = 'x' WHERE id = 1 RETURNING secret",
            "INSERT INTO account VALUES (1, 'x', 'y') ON CONFLICT (id) DO UPDATE SET owner = account.secret",
            "SELECT id FROM account ORDER BY secret",
            "SELECT id FROM account GROUP BY id, secret",
            "SELECT max(secret) FROM account",
            "SELECT id FROM account NATURAL JOIN (SELECT 'secret1' AS secret) s",
            "SELECT (SELECT secret FROM account a WHERE a.id = b.id) FROM account b",
            "WITH c AS (SELECT * FROM account) SELECT id FROM c",
            "SELECT id FROM (SELECT id, secret FROM account) s",
            "SELECT json_agg(account) FROM account",
            "SELECT row_to_json(a) FROM account a",
        ):
            with pytest.raises(psycopg.Error) as refused:
                reader.execute(statement)
            assert refused.value.sqlstate in ("42501", "0A000"), f"{statement}: {refused.value}"
        assert reader.execute("SELECT id FROM account WHERE id = 1").fetchone() == (1,)


def test_a_view_gives_what_its_owner_may_read(server, roles):
    with as_role(server, "grants_maker") as maker, as_role(server, "grants_reader") as reader:
        maker.execute("GRANT USAGE, CREATE ON SCHEMA grants TO grants_reader")
        maker.execute("GRANT SELECT, UPDATE (owner) ON owners TO grants_reader")
        assert reader.execute("SELECT count(*) FROM owners").fetchone() == (4,)
        reader.execute("UPDATE owners SET owner = 'mine' WHERE id = 1")
        for statement in ("UPDATE owners SET id = 99", "DELETE FROM owners", "SELECT * FROM account"):
            with pytest.raises(DENIED):
                reader.execute(statement)
        # A view of one's own over what one may not read gives nothing, not to its owner either.
        reader.execute("CREATE VIEW stolen AS SELECT * FROM account")
        with pytest.raises(DENIED):
            reader.execute("SELECT * FROM stolen")
        with pytest.raises(DENIED):
            reader.execute("CREATE MATERIALIZED VIEW stolen2 AS SELECT * FROM account")
        with pytest.raises(DENIED):
            reader.execute("CREATE TABLE child (id int REFERENCES account)")
        reader.execute("DROP VIEW stolen")
        # Nor does a temporary one, which is nobody's but the session's.
        reader.execute("CREATE TEMP VIEW stolen AS SELECT * FROM account")
        with pytest.raises(DENIED):
            reader.execute("SELECT * FROM stolen")
        with pytest.raises(DENIED):
            reader.execute("CREATE TEMP TABLE copy AS SELECT * FROM account")
        reader.execute("DROP VIEW stolen")


@pytest.mark.logstead_only
def test_owners_and_privileges_outlive_the_server(private_server):
    server = private_server
    server.start()
    server.execute(
        "CREATE ROLE grants_maker LOGIN",
        "CREATE ROLE grants_reader LOGIN",
        "CREATE SCHEMA grants AUTHORIZATION grants_maker",
        "GRANT USAGE ON SCHEMA grants TO grants_reader",
        "REVOKE CONNECT ON DATABASE logstead FROM PUBLIC",
        "ALTER DEFAULT PRIVILEGES FOR ROLE grants_maker GRANT SELECT ON TABLES TO grants_reader",
    )
    with as_role(server, "grants_maker") as maker:
        maker.execute("CREATE TABLE grants.t (a int, b int)")
        maker.execute("GRANT UPDATE (b) ON grants.t TO grants_reader WITH GRANT OPTION")
    asked = (
        "SELECT relowner::regrole::text, relacl::text, attacl::text FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid AND attname = 'b'"
        " WHERE relname = 't'",
        "SELECT nspowner::regrole::text, nspacl::text FROM pg_namespace WHERE nspname = 'grants'",
        "SELECT datacl::text FROM pg_database WHERE datname = 'logstead'",
        "SELECT defaclrole::regrole::text, defaclacl::text FROM pg_default_acl",
    )
    before = [server.execute(question) for question in asked]
    assert before[0] == [
        (
            "grants_maker",
            "{grants_maker=arwdDxt/grants_maker,grants_reader=r/grants_maker}",
            "{grants_reader=w*/grants_maker}",
        )
    ]
    for restart in (server.restart_after_kill, lambda: (server.execute("CHECKPOINT"), server.restart_after_kill())):
        restart()
        assert [server.execute(question) for question in asked] == before
        with as_role(server, "grants_reader") as reader:
            assert reader.execute("SELECT count(*) FROM grants.t").fetchone() == (0,)
            with pytest.raises(DENIED):
                reader.execute("DELETE FROM grants.t")
        with pytest.raises(psycopg.OperationalError, match='permission denied for database "logstead"'):
            psycopg.connect(host=server.host, port=server.port, user="grants_reader", dbname="logstead")


def test_a_name_of_ones_own_opens_nothing(server, roles):
    """A temporary object of the same name is asked about, and another's is not changed for that."""
    server.execute(
        "GRANT USAGE, CREATE ON SCHEMA grants TO grants_nobody",
        "CREATE SCHEMA grants_own AUTHORIZATION grants_nobody",
    )
    try:
        with as_role(server, "grants_nobody") as nobody:
            nobody.execute("CREATE TEMP TABLE x (a int)")
            nobody.execute("CREATE INDEX account ON x (a)")
            nobody.execute("SET search_path = grants, grants_own")
            # Where a table is looked for the temporary index is found first, as in PostgreSQL.
            for attempt, refusal in (
                ("CREATE INDEX ON account ((CASE WHEN id = 1 THEN secret::int END))", errors.WrongObjectType),
                ("CREATE INDEX ON grants.account (owner)", DENIED),
                ("COMMENT ON COLUMN account.id IS 'mine'", DENIED),
                ("COMMENT ON CONSTRAINT account_pkey ON account IS 'mine'", errors.WrongObjectType),
            ):
                with pytest.raises(refusal):
                    nobody.execute(attempt)
            with pytest.raises(errors.ObjectNotInPrerequisiteState, match="same owner"):
                nobody.execute("CREATE SEQUENCE grants.mine OWNED BY account.id")
            nobody.execute("CREATE TEMP VIEW owners AS SELECT 1 AS one")
            with pytest.raises(DENIED):
                nobody.execute("CREATE OR REPLACE VIEW grants.owners AS SELECT id, secret AS owner FROM grants.account")
            nobody.execute("SET search_path = grants")
            with pytest.raises(DENIED):
                nobody.execute("CREATE OR REPLACE VIEW owners AS SELECT id, secret AS owner FROM account")
            nobody.execute("CREATE TABLE grants_own.account (a int)")
        with as_role(server, "grants_maker") as maker:
            maker.execute("CREATE TABLE other (a int)")
            with pytest.raises(DENIED):
                maker.execute("ALTER TABLE other SET SCHEMA grants_own")
            maker.execute("DROP TABLE other")
        described = "SELECT count(*) FROM pg_description WHERE description = 'mine'"
        assert server.execute(described) == [(0,)]
        assert server.execute("SELECT count(*) FROM pg_indexes WHERE schemaname = 'grants'") == [(2,)]
    finally:
        server.execute("DROP SCHEMA grants_own CASCADE")


def test_a_materialized_view_is_not_filled_with_anothers_rights(server, roles):
    with as_role(server, "grants_maker") as maker:
        maker.execute("CREATE MATERIALIZED VIEW who AS SELECT current_user AS who WITH NO DATA")
        maker.execute("REFRESH MATERIALIZED VIEW who")
        assert maker.execute("SELECT who FROM who").fetchall() == [("grants_maker",)]
    with pytest.raises(errors.FeatureNotSupported, match="SET ROLE"), server.connect(autocommit=True) as admin:
        admin.execute("REFRESH MATERIALIZED VIEW grants.who")
    server.execute("SET ROLE grants_maker", "REFRESH MATERIALIZED VIEW grants.who")


def test_estimates_tell_nothing_of_hidden_rows(server, roles):
    """What LIKE and its kin say of the values of a whole table is no matter of who sees some rows of it."""
    with as_role(server, "grants_maker") as maker:
        maker.execute("CREATE TABLE papers (owner text, title text)")
        maker.execute("INSERT INTO papers SELECT 'x', CASE WHEN i % 2 = 0 THEN 'the secret' ELSE 'else' END FROM generate_series(1, 1000) i")
        maker.execute("ANALYZE papers")
        maker.execute("GRANT SELECT ON papers TO grants_reader")
        maker.execute("GRANT USAGE ON SCHEMA grants TO grants_reader")
    there, absent = "EXPLAIN SELECT FROM papers WHERE title LIKE '%secret'", "EXPLAIN SELECT FROM papers WHERE title LIKE '%nothin'"
    with as_role(server, "grants_reader") as reader:
        assert reader.execute(there).fetchone() != reader.execute(absent).fetchone()
        with as_role(server, "grants_maker") as maker:
            maker.execute("CREATE POLICY own ON papers USING (owner = 'x')")
            maker.execute("ALTER TABLE papers ENABLE ROW LEVEL SECURITY")
        assert reader.execute(there).fetchone() == reader.execute(absent).fetchone()


def test_functions_are_asked_for_where_copy_and_names_by_number_call_them(server, roles):
    with as_role(server, "grants_maker") as maker:
        maker.execute("CREATE TABLE copied (id int)")
        maker.execute("CREATE FUNCTION allowed(i int) RETURNS boolean LANGUAGE sql AS 'SELECT i > 0'")
        maker.execute("CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'")
        maker.execute("GRANT USAGE ON SCHEMA grants TO grants_reader")
        maker.execute("GRANT SELECT, INSERT ON copied TO grants_reader")
        maker.execute("REVOKE EXECUTE ON FUNCTION allowed FROM PUBLIC")
        number = maker.execute("SELECT 'allowed'::regproc::oid").fetchone()[0]

        def copied(statement: str) -> int:
            with as_role(server, "grants_reader") as reader, reader.cursor() as cursor:
                with cursor.copy(statement) as copy:
                    copy.write_row((1,))
                return cursor.rowcount

        assert copied("COPY copied FROM STDIN WHERE id > 0") == 1
        with pytest.raises(DENIED, match="permission denied for function allowed"):
            copied("COPY copied FROM STDIN WHERE allowed(id)")
        maker.execute("CREATE TRIGGER fired BEFORE INSERT ON copied FOR EACH ROW WHEN (allowed(NEW.id)) EXECUTE FUNCTION fired()")
        with pytest.raises(DENIED, match="permission denied for function allowed"):
            copied("COPY copied FROM STDIN")
        maker.execute("GRANT EXECUTE ON FUNCTION allowed TO grants_reader")
        assert copied("COPY copied FROM STDIN WHERE allowed(id)") == 1

        # Texts that the server keeps name functions by number: nobody else does.
        maker.execute("REVOKE USAGE ON SCHEMA grants FROM grants_reader")
        with as_role(server, "grants_reader") as reader:
            for name in (f'"\x03{number}:allowed"', f'U&"\\0003{number}:allowed"'):
                with pytest.raises((errors.FeatureNotSupported, errors.UndefinedFunction)):
                    reader.execute(f"SELECT {name}(1)")
                with pytest.raises((errors.FeatureNotSupported, errors.UndefinedFunction)):
                    reader.execute(f"DO $$ BEGIN PERFORM {name}(1); END $$")
