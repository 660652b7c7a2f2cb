"""Cursors as drivers use them."""

import psycopg
import pytest


@pytest.fixture
def numbers(server):
    """A table with 5,000 rows of some size."""
    server.execute(
        "DROP TABLE IF EXISTS numbers",
        "CREATE TABLE numbers (id int PRIMARY KEY, text text)",
        "INSERT INTO numbers SELECT i, repeat('x', 100) || i FROM generate_series(1, 5000) i",
    )
    yield server
    server.execute("DROP TABLE numbers")


def test_server_side_cursor_gives_all_rows_in_pieces(numbers):
    with numbers.connect() as connection, connection.cursor(name="piece by piece") as cursor:
        cursor.itersize = 700
        cursor.execute("SELECT id, text FROM numbers WHERE id > %s ORDER BY id", (10,))
        assert [column.name for column in cursor.description] == ["id", "text"]
        rows = list(cursor)
    assert rows == [(i, "x" * 100 + str(i)) for i in range(11, 5001)]


def test_scrollable_cursor_goes_where_it_is_told(numbers):
    with numbers.connect() as connection, connection.cursor(name="there and back", scrollable=True) as cursor:
        cursor.execute("SELECT id FROM numbers ORDER BY id")
        assert cursor.fetchmany(3) == [(1,), (2,), (3,)]
        cursor.scroll(-2)
        assert cursor.fetchone() == (2,)
        cursor.scroll(4000, mode="absolute")
        assert cursor.fetchone() == (4001,)
        assert len(cursor.fetchall()) == 999


def test_held_cursor_outlives_its_transaction_and_sees_no_later_change(numbers):
    with numbers.connect(autocommit=True) as connection:
        with connection.cursor(name="held", withhold=True) as cursor:
            cursor.execute("SELECT id FROM numbers ORDER BY id")
            connection.execute("DELETE FROM numbers WHERE id > 100")
            assert cursor.fetchmany(2) == [(1,), (2,)]
            assert len(cursor.fetchall()) == 4998
        with pytest.raises(psycopg.errors.InvalidCursorName):
            connection.execute("FETCH held")


def test_cursor_keeps_its_rows_while_others_write(numbers):
    with numbers.connect() as reading, numbers.connect(autocommit=True) as writing:
        with reading.cursor(name="steady") as cursor:
            cursor.itersize = 100
            cursor.execute("SELECT id FROM numbers ORDER BY id")
            assert cursor.fetchone() == (1,)
            writing.execute("DELETE FROM numbers WHERE id % 2 = 0")
            # A statement in between takes the rest of the cursor's rows into memory.
            assert reading.execute("SELECT count(*) FROM numbers").fetchone() == (2500,)
            writing.execute("DELETE FROM numbers")
            assert len(cursor.fetchall()) == 4999


def test_binary_cursor(numbers):
    with numbers.connect() as connection:
        connection.execute("DECLARE b BINARY CURSOR FOR SELECT id FROM numbers WHERE id = 258")
        result = connection.pgconn.exec_(b"FETCH b")
        assert (result.fformat(0), result.get_value(0, 0)) == (1, b"\x00\x00\x01\x02")


def test_cursor_of_a_large_result_is_told_of_as_it_comes(numbers):
    with numbers.connect() as connection:
        connection.execute("DECLARE much NO SCROLL CURSOR FOR SELECT a.text FROM numbers a, generate_series(1, 20)")
        assert len(connection.execute("FETCH ALL much").fetchall()) == 100_000
        assert connection.execute("MOVE 1 much").statusmessage == "MOVE 0"
