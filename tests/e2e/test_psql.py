"""psql: connecting, the describe commands, and what a person types in the first ten minutes."""

import pytest

TABLES = """
CREATE TABLE psql_author (id serial PRIMARY KEY, name varchar(40) NOT NULL UNIQUE, born date);
CREATE TABLE psql_book (
    isbn text PRIMARY KEY,
    title text NOT NULL,
    author_id integer NOT NULL,
    price numeric(8,2) DEFAULT 0.00 CHECK (price >= 0),
    added timestamptz DEFAULT now()
);
CREATE INDEX psql_book_author ON psql_book (author_id, title);
CREATE TABLE psql_ident (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text);
"""


@pytest.fixture
def tables(server):
    server.psql("-q", "-c", "DROP TABLE IF EXISTS psql_author, psql_book, psql_ident")
    server.psql("-q", stdin=TABLES)
    yield server
    server.psql("-q", "-c", "DROP TABLE IF EXISTS psql_author, psql_book, psql_ident")


def test_version_and_session(server):
    assert server.psql("-Atc", "SELECT version()").startswith("PostgreSQL 15.")
    assert server.psql("-Atc", "SELECT current_database(), current_user, 1 + 1") == "postgres|postgres|2\n"


@pytest.mark.parametrize("database", ["postgres", "logstead"])
def test_databases(server, is_postgres, database):
    if is_postgres and database == "logstead":
        pytest.skip("PostgreSQL has no such database")
    assert server.psql("-d", database, "-Atc", "SELECT current_database()") == f"{database}\n"


def test_unknown_database_is_refused(server):
    result = server.run("psql", "-X", "-d", "nowhere", "-c", "SELECT 1", check=False)
    assert result.returncode == 2
    assert 'FATAL:  database "nowhere" does not exist' in result.stderr


def test_list_tables(tables):
    listed = tables.psql("-Atc", "\\dt").splitlines()
    assert [line for line in listed if "psql_" in line] == [
        "public|psql_author|table|postgres",
        "public|psql_book|table|postgres",
        "public|psql_ident|table|postgres",
    ]
    assert tables.psql("-Atc", "\\dt psql_b*") == "public|psql_book|table|postgres\n"


def test_list_indexes(tables):
    listed = [line for line in tables.psql("-Atc", "\\di").splitlines() if "psql_" in line]
    assert listed == [
        "public|psql_author_name_key|index|postgres|psql_author",
        "public|psql_author_pkey|index|postgres|psql_author",
        "public|psql_book_author|index|postgres|psql_book",
        "public|psql_book_pkey|index|postgres|psql_book",
        "public|psql_ident_pkey|index|postgres|psql_ident",
    ]


def test_list_sequences(tables):
    listed = [line for line in tables.psql("-Atc", "\\ds").splitlines() if "psql_" in line]
    assert listed == ["public|psql_author_id_seq|sequence|postgres", "public|psql_ident_id_seq|sequence|postgres"]


def test_describe_table(tables):
    assert tables.psql("-c", "\\d psql_author") == (
        '                                   Table "public.psql_author"\n'
        " Column |         Type          | Collation | Nullable |                 Default                 \n"
        "--------+-----------------------+-----------+----------+-----------------------------------------\n"
        " id     | integer               |           | not null | nextval('psql_author_id_seq'::regclass)\n"
        " name   | character varying(40) |           | not null | \n"
        " born   | date                  |           |          | \n"
        "Indexes:\n"
        '    "psql_author_pkey" PRIMARY KEY, btree (id)\n'
        '    "psql_author_name_key" UNIQUE CONSTRAINT, btree (name)\n'
        "\n"
    )


def test_describe_table_with_defaults_and_checks(tables):
    assert tables.psql("-c", "\\d psql_book") == (
        '                       Table "public.psql_book"\n'
        "  Column   |           Type           | Collation | Nullable | Default \n"
        "-----------+--------------------------+-----------+----------+---------\n"
        " isbn      | text                     |           | not null | \n"
        " title     | text                     |           | not null | \n"
        " author_id | integer                  |           | not null | \n"
        " price     | numeric(8,2)             |           |          | 0.00\n"
        " added     | timestamp with time zone |           |          | now()\n"
        "Indexes:\n"
        '    "psql_book_pkey" PRIMARY KEY, btree (isbn)\n'
        '    "psql_book_author" btree (author_id, title)\n'
        "Check constraints:\n"
        '    "psql_book_price_check" CHECK (price >= 0::numeric)\n'
        "\n"
    )


def test_describe_identity(tables):
    assert " id     | bigint |           | not null | generated always as identity" in tables.psql("-c", "\\d psql_ident")


def test_describe_index(tables):
    assert tables.psql("-Atc", "\\d psql_book_author") == "author_id|integer|yes|author_id\ntitle|text|yes|title\n"
    assert 'btree, for table "public.psql_book"' in tables.psql("-c", "\\d psql_book_author")


def test_describe_unknown(server):
    result = server.run("psql", "-X", "-c", "\\d psql_nothing", check=False)
    assert 'Did not find any relation named "psql_nothing".' in result.stderr


def test_list_databases_and_roles(server, is_postgres):
    names = [line.split("|")[0] for line in server.psql("-Atc", "\\l").splitlines() if "|" in line]
    assert "postgres" in names
    if not is_postgres:
        assert "logstead" in names
    roles = server.psql("-Atc", "\\du")
    assert roles.startswith("postgres|Superuser")


def test_other_describe_commands_answer(tables):
    for command in ["\\d", "\\d+", "\\d+ psql_book", "\\dn", "\\df psql_none", "\\dv", "\\dT", "\\dp", "\\dx", "\\db", "\\l+"]:
        tables.psql("-c", command)


def test_expanded_and_timing_free_output(server):
    assert server.psql("-xAtc", "SELECT 1 AS one, 'x' AS two") == "one|1\ntwo|x\n"


def test_copy_meta_commands(tables, tmp_path):
    path = tmp_path / "authors.csv"
    path.write_text('id,name,born\n1,"Lem, Stanisław",1921-09-12\n2,Le Guin,\n')
    tables.psql("-q", "-c", f"\\copy psql_author from '{path}' with (format csv, header)")
    assert tables.psql("-Atc", "SELECT * FROM psql_author ORDER BY id") == "1|Lem, Stanisław|1921-09-12\n2|Le Guin|\n"
    out = tmp_path / "out.csv"
    tables.psql("-q", "-c", f"\\copy psql_author to '{out}' csv")
    assert out.read_text() == '1,"Lem, Stanisław",1921-09-12\n2,Le Guin,\n'


def test_error_position_is_shown(server):
    result = server.run("psql", "-X", "-c", "SELECT 1 FROM\npsql_missing", check=False)
    assert result.returncode == 1
    assert result.stderr == 'ERROR:  relation "psql_missing" does not exist\nLINE 2: psql_missing\n        ^\n'


def test_single_transaction_file(tables, tmp_path):
    script = tmp_path / "s.sql"
    script.write_text("INSERT INTO psql_ident (v) VALUES ('a');\nINSERT INTO psql_missing VALUES (1);\n")
    result = tables.run("psql", "-X", "-1", "-v", "ON_ERROR_STOP=1", "-f", script, check=False)
    assert result.returncode == 3
    assert tables.psql("-Atc", "SELECT count(*) FROM psql_ident") == "0\n"


def test_explain(tables):
    plan = tables.psql("-Atc", "EXPLAIN SELECT * FROM psql_book WHERE isbn = 'x'")
    assert "psql_book" in plan
    assert tables.psql("-Atc", "EXPLAIN ANALYZE SELECT count(*) FROM psql_book").strip()
    tables.psql("-Atc", "EXPLAIN INSERT INTO psql_ident (v) VALUES ('a')")
    assert tables.psql("-Atc", "SELECT count(*) FROM psql_ident") == "0\n"
