"""json and jsonb with client libraries: their adapters, text and binary format, parameters, and documents that survive a crash."""

import os

import psycopg
import pytest
from psycopg.types.json import Json, Jsonb

DOCUMENT = {
    "name": "naïve ☃ \U0001f9ca",
    "quote": 'a "b" \\ \n\t\x01',
    "list": [1, -2.5, 1e3, True, False, None, [], {}],
    "nested": {"a": {"b": [{"c": "d"}]}},
    "": 12345678901234567890,
}


@pytest.fixture
def documents(server):
    """A table of documents."""
    server.execute("DROP TABLE IF EXISTS document", "CREATE TABLE document (id int PRIMARY KEY, j json, b jsonb)")
    yield "document"
    server.execute("DROP TABLE IF EXISTS document")


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg(server, documents, binary):
    with server.connect() as connection, connection.cursor(binary=binary) as cursor:
        form = "%b" if binary else "%s"
        cursor.execute(f"INSERT INTO document VALUES (1, {form}, {form})", (Json(DOCUMENT), Jsonb(DOCUMENT)))
        cursor.execute("SELECT j, b, ARRAY[b, b], to_jsonb(d) FROM document d WHERE b @> %s", (Jsonb({"list": [-2.5]}),))
        j, b, both, whole = cursor.fetchone()
        assert j == b == DOCUMENT
        assert both == [DOCUMENT, DOCUMENT]
        assert whole == {"id": 1, "j": DOCUMENT, "b": DOCUMENT}
        cursor.execute("SELECT b -> %s, b ->> %s FROM document", ("nested", "name"))
        assert cursor.fetchone() == (DOCUMENT["nested"], DOCUMENT["name"])
        cursor.execute("UPDATE document SET b = jsonb_set(b, %s, %s) RETURNING b #>> '{nested,a}'", (["nested", "a"], Jsonb(None)))
        assert cursor.fetchone() == (None,)
        with pytest.raises(psycopg.errors.InvalidTextRepresentation) as refused:
            cursor.execute("SELECT %s::jsonb", ('{"a" 1}',))
        assert refused.value.diag.message_detail == 'Expected ":", but found "1".'


def test_aggregated_rows(server, documents):
    """What tools that answer with JSON send: whole rows gathered under their parents."""
    server.execute("INSERT INTO document VALUES (1, '1', '{\"of\": 2}'), (2, null, '{\"of\": null}')")
    with server.connect() as connection:
        found = connection.execute(
            "SELECT coalesce(json_agg(row_to_json(parent)), '[]') FROM (SELECT d.id, (SELECT coalesce(json_agg(c), '[]')"
            " FROM (SELECT e.id, e.j FROM document e WHERE (e.b ->> 'of')::int = d.id) c) AS children FROM document d ORDER BY d.id) parent"
        ).fetchone()
    assert found == ([{"id": 1, "children": []}, {"id": 2, "children": [{"id": 1, "j": 1}]}],)


def test_copy_binary(server, documents):
    with server.connect() as connection:
        with connection.cursor().copy("COPY document (id, j, b) FROM STDIN") as copy:
            for i in range(100):
                copy.write_row((i, Json({"i": i}), Jsonb({"text": "x" * i * 100})))
        size = connection.execute("SELECT sum(length(b ->> 'text')), sum((j ->> 'i')::int) FROM document").fetchone()
        assert size == (495000, 4950)


def test_node_postgres(server):
    modules = os.environ.get("E2E_NODE_MODULES")
    if not modules:
        pytest.skip("no node-postgres: run through ./test")
    script = """
    const { Client } = require('pg');
    (async () => {
      const client = new Client();
      await client.connect();
      const asked = { list: [1, 'two', null], deep: { x: true } };
      const { rows } = await client.query('SELECT $1::jsonb AS b, $2::json AS j, $3::jsonb[] AS a', [asked, asked, [{ n: 1 }]]);
      const same = (x, y) => JSON.stringify(x) === JSON.stringify(y);
      if (!same(rows[0].j, asked) || !same(rows[0].b.list, asked.list) || !same(rows[0].a, [{ n: 1 }])) {
        throw new Error(JSON.stringify(rows));
      }
      await client.end();
      console.log('json: ok');
    })();
    """
    done = server.run("node", "-e", script, env={"NODE_PATH": modules})
    assert "json: ok" in done.stdout


def test_survives_a_crash(private_server):
    private_server.start()
    private_server.execute("CREATE TABLE document (id int PRIMARY KEY, j json, b jsonb)", "CREATE INDEX ON document (b)")
    with private_server.connect(autocommit=True) as connection:
        for i in range(50):
            connection.execute("INSERT INTO document VALUES (%s, %s, %s)", (i, Json([i]), Jsonb({"i": i, "x": "y" * 50})))
    private_server.restart_after_kill()
    with private_server.connect() as connection:
        rows = connection.execute("SELECT id, j, b -> 'i' FROM document ORDER BY b").fetchall()
        assert rows == [(i, [i], i) for i in range(50)]
        one = connection.execute("SELECT id FROM document WHERE b = %s", (Jsonb({"x": "y" * 50, "i": 7.0}),)).fetchone()
        assert one == (7,)
