"""Ranges: what drivers read and write in both formats, a crash and a dump."""

from datetime import date

from psycopg.types.multirange import Int4Multirange, Multirange
from psycopg.types.range import Int4Range, Range

RANGES = """
CREATE TABLE rg_bookings (id int PRIMARY KEY, days daterange UNIQUE, nums numrange, many int4multirange, list int4range[], j jsonb);
INSERT INTO rg_bookings VALUES
    (1, '[2020-01-01,2020-01-05]', '(1.5,]', '{[1,3),[5,9]}', '{"[1,2)",empty,NULL}', '{}'), (2, 'empty', NULL, '{}', '{}', NULL), (3, '(,)', 'empty', '{(,)}', NULL, '[]');
UPDATE rg_bookings SET j['a']['b'] = '1' WHERE id = 1;
"""


def test_ranges_outlive_a_crash_and_pg_dump_and_drivers_know_them(private_server):
    bookings = lambda: private_server.execute(  # noqa: E731
        "SET enable_seqscan = off", "SELECT id, days::text, nums::text, many::text, list::text, j::text FROM rg_bookings AS b ORDER BY b.days"
    )
    expected = [
        (2, "empty", None, "{}", "{}", None),
        (3, "(,)", "empty", "{(,)}", None, "[]"),
        (1, "[2020-01-01,2020-01-06)", "(1.5,)", "{[1,3),[5,10)}", '{"[1,2)",empty,NULL}', '{"a": {"b": 1}}'),
    ]
    private_server.start()
    private_server.psql("-q", "-v", "ON_ERROR_STOP=1", stdin=RANGES)
    private_server.kill()
    private_server.start()
    assert bookings() == expected
    assert private_server.execute("SELECT id FROM rg_bookings WHERE days = '[2020-01-01,2020-01-06)'") == [(1,)]
    dump = private_server.run("pg_dump").stdout
    private_server.execute("DROP TABLE rg_bookings")
    private_server.psql("-q", "-v", "ON_ERROR_STOP=1", stdin=dump)
    assert bookings() == expected
    with private_server.connect() as connection:
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                found = cursor.execute("SELECT days, nums, many, list FROM rg_bookings WHERE id = 1").fetchone()
                assert found[0] == Range(date(2020, 1, 1), date(2020, 1, 6))
                assert (found[1].lower, found[1].upper, found[1].lower_inc) == (1.5, None, False)
                assert found[2] == Multirange([Range(1, 3), Range(5, 10)])
                assert found[3] == [Range(1, 2), Range(empty=True), None]
                # What was read goes back as it came, in both formats.
                for place in ("%t", "%b"):
                    wanted = [found[0], Int4Multirange([Int4Range(5, 10), Int4Range(1, 2), Int4Range(2, 3)])]
                    same = cursor.execute(f"SELECT id FROM rg_bookings WHERE days = {place} AND many = {place}", wanted).fetchall()
                    assert same == [(1,)]
