"""Values of every type, as SQL, and the tables that generated scripts ask: the edges of each type before its ordinary values."""

from __future__ import annotations

# Exact in binary, where it matters: sums of floats must not hang on their order.
LITERALS = {
    "bool": ["true", "false"],
    "int2": ["0::int2", "1::int2", "(-1)::int2", "7::int2", "32767::int2", "(-32768)::int2"],
    "int4": ["0", "1", "-1", "2", "3", "10", "-7", "42", "2147483647", "(-2147483648)"],
    "int8": ["0::int8", "1::int8", "(-5)::int8", "100::int8", "9223372036854775807", "(-9223372036854775808)"],
    "numeric": ["0.0", "1.5", "-2.25", "100.00", "0.001", "12345678901234567890.12345", "-7", "'NaN'::numeric", "'Infinity'::numeric", "1e20", "3.14159"],
    "float4": ["0::float4", "1.5::float4", "(-0.25)::float4", "'Infinity'::float4", "'NaN'::float4", "3e10::float4", "1e-10::float4"],
    "float8": ["0::float8", "1.5::float8", "(-2.5)::float8", "0.1::float8", "1e15::float8", "1e-7::float8", "'-Infinity'::float8", "'NaN'::float8"],
    "text": ["''::text", "'a'::text", "'Hello World'::text", "'äöü ß'::text", "'  pad '::text", "'x%y_z'::text", "'123'::text", "'b\\c'::text", "'日本語'::text", "'aaa'::text"],
    "varchar": ["'vc'::varchar", "''::varchar", "'Longer Value'::varchar(12)"],
    "bpchar": ["'c'::char(3)", "'abc'::char(5)", "''::char(2)"],
    "name": ["'a_name'::name", "'B'::name"],
    "bytea": ["'\\x'::bytea", "'\\x00ff10'::bytea", "'abc'::bytea", "'\\xdeadbeef'::bytea"],
    "date": ["'2024-02-29'::date", "'1999-12-31'::date", "'0044-03-15 BC'::date", "'infinity'::date", "'2000-01-01'::date"],
    "time": ["'00:00'::time", "'12:34:56.789'::time", "'23:59:59.999999'::time", "'24:00'::time"],
    "timetz": ["'12:34:56+02'::timetz", "'00:00:00-05:30'::timetz"],
    "timestamp": ["'2024-02-29 12:34:56.789'::timestamp", "'1999-12-31 23:59:59'::timestamp", "'-infinity'::timestamp", "'0001-01-01 00:00'::timestamp", "'2000-01-01'::timestamp"],
    "timestamptz": ["'2024-07-01 12:00+05:30'::timestamptz", "'1969-07-20 20:17:40Z'::timestamptz", "'infinity'::timestamptz", "'2024-01-31 23:30:00-08'::timestamptz"],
    "interval": ["'1 day'::interval", "'-3 mons 4 days 05:06:07.89'::interval", "'0'::interval", "'2 years 11 mons'::interval", "'36:00:00'::interval", "'1 mon -1 day'::interval"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "'00000000-0000-0000-0000-000000000000'::uuid"],
    "json": ["'{\"a\": 1, \"b\": [1, null, \"x\"]}'::json", "'[]'::json", "'null'::json", "'\"s\"'::json", "'[1, {\"k\": \"v\"}, 2.50]'::json"],
    "jsonb": ["'{\"a\": 1, \"b\": [1, null, \"x\"]}'::jsonb", "'[]'::jsonb", "'null'::jsonb", "'3.0'::jsonb", "'[1, {\"k\": \"v\"}, 2.50]'::jsonb", "'{\"a\": {\"c\": true}}'::jsonb"],
    "jsonpath": ["'$.a'::jsonpath", "'$[*] ? (@ > 1)'::jsonpath", "'$.b[*]'::jsonpath"],
    "_int4": ["'{}'::int4[]", "ARRAY[1,2,3]", "ARRAY[3,NULL,1]", "'{{1,2},{3,4}}'::int4[]", "'[0:1]={5,6}'::int4[]"],
    "_text": ["'{}'::text[]", "ARRAY['a','b']", "ARRAY['x',NULL,'with space','q\"t']::text[]", "ARRAY['a','b','a']"],
    "_numeric": ["ARRAY[1.5,2.50]", "ARRAY[0.1,NULL]::numeric[]"],
    "_float8": ["ARRAY[0.25,0.5,1]::float8[]", "ARRAY[0.1]::float8[]"],
    "bit": ["B'101'", "B'0'", "B'11111111'"],
    "varbit": ["B'1010'::varbit", "B''::varbit"],
    "money": ["12.34::numeric::money", "(-5)::money"],
    "oid": ["0::oid", "23::oid", "4294967295::oid"],
}  # fmt: skip

# What clients see as an argument of a polymorphic function, alternatives of equal types.
POLYMORPHIC = [
    {"anyelement": "int4", "anyarray": "_int4", "anynonarray": "int4", "anycompatible": "int4", "anycompatiblearray": "_int4", "anycompatiblenonarray": "int4", "any": "int4"},
    {"anyelement": "text", "anyarray": "_text", "anynonarray": "text", "anycompatible": "text", "anycompatiblearray": "_text", "anycompatiblenonarray": "text", "any": "text"},
    {"anyelement": "numeric", "anyarray": "_numeric", "anynonarray": "numeric", "anycompatible": "numeric", "anycompatiblearray": "_numeric", "anycompatiblenonarray": "numeric", "any": "date"},
]  # fmt: skip

# The columns of the tables: name, declaration, type.
COLUMNS = [
    ("i", "int4", "int4"), ("s", "int2", "int2"), ("l", "int8", "int8"), ("n", "numeric(10,2)", "numeric"), ("f", "float8", "float8"),
    ("b", "bool", "bool"), ("t", "text", "text"), ("v", "varchar(20)", "varchar"), ("c", "char(4)", "bpchar"), ("d", "date", "date"),
    ("ts", "timestamp", "timestamp"), ("tz", "timestamptz", "timestamptz"), ("iv", "interval", "interval"), ("u", "uuid", "uuid"),
    ("j", "jsonb", "jsonb"), ("a", "int4[]", "_int4"), ("ta", "text[]", "_text"),
]  # fmt: skip

# What the columns hold: small sets, so that keys meet and groups have members.
CELLS = {
    "int4": ["0", "1", "2", "3", "-1", "5", "8"],
    "int2": ["0", "1", "2", "-3", "7"],
    "int8": ["0", "1", "4000000000", "-2", "5"],
    "numeric": ["0", "1.50", "2.25", "-3.10", "99.99"],
    "float8": ["0", "0.5", "-1.25", "2", "1024"],
    "bool": ["true", "false"],
    "text": ["'a'", "'b'", "'abc'", "'Zeta'", "''", "'été'", "'a b'"],
    "varchar": ["'x'", "'y'", "'xyz'", "'b'"],
    "bpchar": ["'p'", "'q'", "'pq'", "'a'"],
    "date": ["'2024-01-31'", "'2024-02-29'", "'1999-12-31'", "'2023-06-15'"],
    "timestamp": ["'2024-01-31 10:00'", "'2024-02-29 23:59:59.5'", "'1999-12-31 00:00'"],
    "timestamptz": ["'2024-01-31 10:00+02'", "'2024-07-01 00:00Z'", "'2000-01-01 00:00-05'"],
    "interval": ["'1 day'", "'25:00'", "'1 mon'", "'-2 days 03:00'"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000001'"],
    "jsonb": ["'{\"a\": 1}'", "'[1, 2]'", "'{\"a\": \"x\", \"b\": null}'", "'7'"],
    "_int4": ["'{1,2}'", "'{}'", "'{3,NULL}'", "'{1,2,3}'"],
    "_text": ["'{a,b}'", "'{}'", "'{x}'"],
}  # fmt: skip


def tables(rng) -> list[str]:
    """The statements that make t1, t2 and t3 and fill them."""
    statements = []
    for name, rows in [("t1", 18), ("t2", 12), ("t3", 7)]:
        columns = ", ".join(f"{column} {declared}" for column, declared, _ in COLUMNS)
        statements.append(f"CREATE TABLE {name} (id int4 PRIMARY KEY, {columns})")
        values = []
        for number in range(1, rows + 1):
            cells = [rng.choice(CELLS[kind]) if rng.random() > 0.12 else "NULL" for _, _, kind in COLUMNS]
            values.append(f"({number}, {', '.join(cells)})")
        statements.append(f"INSERT INTO {name} VALUES\n" + ",\n".join(values))
    statements += ["CREATE INDEX ON t1 (i)", "CREATE INDEX ON t2 (t, i)", "CREATE INDEX ON t1 (d DESC)", "CREATE INDEX ON t3 (lower(t))"]
    return statements
