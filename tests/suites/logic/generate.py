"""Makes scripts of statements from seeds: every function, operator, cast and aggregate that PostgreSQL's catalog has for the types of
`values.py`, and random queries over tables of all types.

What is generated is text; the answers come from PostgreSQL (`suite.py`). A random query that fails there is left out: which of several
errors of one statement is told depends on the plan. A call with constants that fails is kept, with its SQLSTATE.
"""

from __future__ import annotations

import random

import queries
from script import Record
from values import LITERALS, POLYMORPHIC, tables

SEED = 20240229
SCRIPTS = ["functions", "operators", "casts", "aggregates", "selects", "joins", "groups", "windows", "set_operations", "ctes", "subqueries", "changes", "pictures", "patterns", "spans"]

# Functions of the machinery of types, indexes and planner, and those that tell of the server.
MACHINERY = """
    p.proname !~ '^(pg_|_pg|binary_upgrade|has_|hash|inet_|col_description|obj_description|shobj|txid|current_|session_|version|to_reg|row_security)'
    AND p.proname !~ '(in|out|recv|send|typmodin|typmodout|analyze|sel|joinsel|support|_accum|_combine|_serialize|_deserialize|_transfn|_finalfn)$'
    AND p.proname !~ '^(bt|gin|gist|brin|spg|ts_|tsvector|tsquery|array_(in|out)|RI_|lo_|xml|ws_|currtid|in_range|unique_key|jsonb_object_agg|json_object_agg|int[248]_avg|interval_avg|numeric_(avg|inc|poly)|dlog|dcbrt)'
    AND NOT EXISTS (SELECT FROM pg_operator o WHERE o.oprcode = p.oid)
    AND NOT EXISTS (SELECT FROM pg_cast c WHERE c.castfunc = p.oid)
    AND NOT EXISTS (SELECT FROM pg_amproc a WHERE a.amproc = p.oid)
    AND NOT EXISTS (SELECT FROM pg_aggregate a WHERE p.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn))
    AND p.pronamespace = 'pg_catalog'::regnamespace"""  # fmt: skip

TYPES_OF = "ARRAY(SELECT t.typname::text FROM unnest(p.proargtypes) WITH ORDINALITY a(oid, n) JOIN pg_type t ON t.oid = a.oid ORDER BY n)"


def value(rng, kind: str) -> str:
    """A literal of a type, sometimes NULL."""
    return f"NULL::{kind}" if rng.random() < 0.06 else rng.choice(LITERALS[kind])


def known(kinds) -> bool:
    return all(kind in LITERALS or kind in POLYMORPHIC[0] for kind in kinds)


def calls(rng, connection, template, kinds, tries=7, shown=4):
    """Records that call one function with several arguments: those that work in one row, one of those that fail for each SQLSTATE."""
    good, failed = [], {}
    for _ in range(tries):
        binding = rng.choice(POLYMORPHIC)
        sql = template(*(value(rng, binding.get(kind, kind)) for kind in kinds))
        result = connection.pgconn.exec_(f"SELECT {sql}".encode())
        if result.status == 2:
            # What is too long says nothing more than its beginning.
            cell = result.get_value(0, 0) if result.ntuples else b""
            if sql not in good and len(cell or b"") < 400:
                good.append(sql)
        else:
            failed.setdefault(result.error_field(67), sql)
    records = [Record("SELECT " + ", ".join(good[:shown]))] if good else []
    # An internal error or one of time is nothing to hold others to.
    return records + [Record(f"SELECT {sql}") for code, sql in failed.items() if code not in (b"XX000", b"57014", b"53200")]


def functions(rng, connection):
    """Every immutable function, and the stable ones that only look at settings."""
    rows = connection.execute(
        f"SELECT p.proname, {TYPES_OF}, p.provariadic <> 0, p.proretset FROM pg_proc p WHERE {MACHINERY} AND p.prokind = 'f'"
        " AND p.provolatile IN ('i', 's') AND p.prorettype NOT IN (SELECT oid FROM pg_type WHERE typname IN ('internal', 'trigger', 'record'))"
        " ORDER BY 1, 2"
    ).fetchall()
    # Nobody calls these by name: what operators, casts and other functions are made of.
    skipped = {"dexp", "dround", "dtrunc", "textlen", "like", "notlike", "like_escape", "similar_escape", "numeric_div_trunc", "numeric_exp", "numeric_ln", "numeric_log", "int4inc", "int8inc", "int8_sum", "getdatabaseencoding", "getpgusername", "makeaclitem", "oidvectortypes", "fmgr_c_validator", "fmgr_internal_validator", "fmgr_sql_validator", "postgresql_fdw_validator", "daterange_subdiff", "int4range_subdiff", "int8range_subdiff", "numrange_subdiff", "tsrange_subdiff", "tstzrange_subdiff", "timestamp", "timestamptz"}  # fmt: skip
    skipped |= {"now", "statement_timestamp", "transaction_timestamp", "timeofday", "ts_rank", "set_config", "current_setting", "format_type"}
    records = []
    for name, kinds, variadic, retset in rows:
        if retset or name in skipped or (name == "age" and len(kinds) == 1) or not known(kinds) or name.startswith(("database_to", "schema_to", "table_to", "query_to", "cursor_to")):
            continue
        quoted = f'"{name}"' if name in ("overlay", "position", "substring", "overlaps", "char", "bit", "time", "timestamp", "interval") else name
        if variadic:
            records += calls(rng, connection, lambda *a, q=quoted: f"{q}({', '.join([*a[:-1], 'VARIADIC ' + a[-1]])})", [k if k != "any" else "_text" for k in kinds])
        else:
            records += calls(rng, connection, lambda *a, q=quoted: f"{q}({', '.join(a)})", kinds)
    return records


def operators(rng, connection):
    """Every operator."""
    rows = connection.execute(
        "SELECT o.oprname, l.typname::text, r.typname::text FROM pg_operator o LEFT JOIN pg_type l ON l.oid = o.oprleft JOIN pg_type r ON r.oid = o.oprright"
        " WHERE o.oprcode <> 0 ORDER BY 1, 2, 3"
    ).fetchall()
    records = []
    for name, left, right in rows:
        kinds = [kind for kind in (left, right) if kind]
        if known(kinds):
            template = (lambda a, b, o=name: f"{a} {o} {b}") if left else (lambda a, o=name: f"{o} {a}")
            records += calls(rng, connection, template, kinds)
    return records


def casts(rng, connection):
    """Every cast between two of the types, and to and from text."""
    rows = connection.execute(
        "SELECT s.typname::text, t.typname::text FROM pg_cast c JOIN pg_type s ON s.oid = c.castsource JOIN pg_type t ON t.oid = c.casttarget ORDER BY 1, 2"
    ).fetchall()
    pairs = sorted({(s, t) for s, t in rows} | {(k, "text") for k in LITERALS} | {("text", k) for k in LITERALS})
    named = {"bpchar": ["bpchar", "char(2)"], "varchar": ["varchar", "varchar(3)"], "numeric": ["numeric", "numeric(8,3)"], "interval": ["interval", "interval hour to minute", "interval(1)"], "timestamp": ["timestamp", "timestamp(1)"], "time": ["time", "time(0)"], "timestamptz": ["timestamptz", "timestamptz(2)"]}  # fmt: skip
    records = []
    for source, target in pairs:
        if known([source]) and target in LITERALS:
            for kind in named.get(target, [target]):
                records += calls(rng, connection, lambda a, k=kind: f"({a})::{k}", [source], tries=6)
    return records


def aggregates(rng, connection):
    """Every aggregate: plain, DISTINCT, ordered, filtered, over a window, over nothing."""
    rows = connection.execute(
        f"SELECT p.proname, {TYPES_OF} FROM pg_proc p WHERE p.prokind = 'a' AND p.pronamespace = 'pg_catalog'::regnamespace"
        " AND NOT EXISTS (SELECT FROM pg_aggregate a WHERE a.aggfnoid = p.oid AND a.aggkind <> 'n') ORDER BY 1, 2"
    ).fetchall()
    records = []
    for name, kinds in rows:
        if not known(kinds) or name.startswith("range"):
            continue
        for _ in range(2):
            binding = rng.choice(POLYMORPHIC)
            types = [binding.get(kind, kind) for kind in kinds]
            lines = [", ".join([str(n), *(value(rng, kind) for kind in types)]) for n in range(6)]
            names = [f"c{n}" for n in range(len(types))]
            source = f"(VALUES {', '.join(f'({line})' for line in lines)}) AS v({', '.join(['n', *names])})"
            arguments = ", ".join(names) or "*"
            forms = [
                f"SELECT {name}({arguments}{' ORDER BY n' if names else ''}), {name}({arguments}) FILTER (WHERE n > 2) FROM {source}",
                f"SELECT {name}({arguments}) FROM {source} WHERE n < 0",
                f"SELECT n, {name}({arguments}) OVER (ORDER BY n ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM {source} ORDER BY n",
                f"SELECT n % 2, {name}({arguments}{' ORDER BY n DESC' if names else ''}) FROM {source} GROUP BY n % 2 ORDER BY 1",
            ]
            if len(names) == 1:
                forms.append(f"SELECT {name}(DISTINCT {arguments}) FROM {source}")
            for sql in forms:
                if connection.pgconn.exec_(sql.encode()).status == 2:
                    records.append(Record(sql))
    return records


def combined(rng, connection, templates, count):
    """Records of templates whose places are filled from lists, each list with equal chances."""
    records = []
    for _ in range(count):
        template, *lists = rng.choice(templates)
        filled = [template.format(*(rng.choice(words) for words in lists)) for _ in range(4)]
        good, failed = [], {}
        for sql in filled:
            result = connection.pgconn.exec_(f"SELECT {sql}".encode())
            if result.status == 2:
                good.append(sql)
            else:
                failed.setdefault(result.error_field(67), sql)
        records += [Record("SELECT " + ", ".join(good))] if good else []
        records += [Record(f"SELECT {sql}") for code, sql in failed.items() if code not in (b"XX000", b"57014", b"53200")]
    return records


def pictures(rng, connection):
    """Numbers and moments by pictures, and back."""
    numbers = ["0", "0.0", "0.1", "-0.01", "-1.456", "7.5", "12.3", "485", "-485", "1234567.891", "(-0.25)::float8", "1.5::float4", "1e20::float8", "'NaN'::float8", "'-Infinity'::numeric", "2147483647", "(-5)::int8", "1.2345e-12", "99.999"]
    parts = ["9", "0", "99", "00", "999", "9,999", "9G999", ".9", ".99", "D99", ".00", "9.9", "S", "MI", "PL", "SG", "PR", "FM", "L", "th", "TH", "V9", "EEEE", "RN", "rn", "B", " ", '"x"', "-", "\\"]
    shapes = ["".join(rng.choice(parts) for _ in range(rng.randint(1, 4))) for _ in range(150)] + ["999.99", "FM990.009", "S9,999.9", "9.99EEEE", "999PR", "FM9.9", "0009", "9999.99MI"]
    moments = ["'2024-02-29 12:34:56.789'::timestamp", "'1999-12-31 23:59:59'::timestamp", "'2000-01-01 00:00'::timestamp", "'0044-03-15 BC'::timestamp", "'2024-07-01 12:00+05:30'::timestamptz", "'2 years 3 mons 4 days 05:06:07.89'::interval", "'-36:00:00'::interval", "'infinity'::timestamp"]
    fields = ["YYYY", "YYY", "YY", "Y", "Y,YYY", "IYYY", "IY", "MM", "Mon", "MONTH", "Month", "FMMonth", "RM", "rm", "DD", "DDD", "IDDD", "D", "ID", "Day", "FMDAY", "Dy", "HH", "HH12", "HH24", "MI", "SS", "MS", "US", "FF3", "SSSS", "AM", "p.m.", "BC", "a.d.", "CC", "Q", "WW", "W", "IW", "J", "DDth", "FMDDth", "TZH", "OF", "TZ"]
    times = [rng.choice(["-", " ", "/", ":", "", '"of"']).join(rng.choice(fields) for _ in range(rng.randint(1, 4))) for _ in range(150)]
    texts = ["2024-02-29", "29 Feb 2024", "February 29, 2024", "20240229", "12:34:56", "2024-02-29 12:34:56.789", "24-2-9", "1-2-3", "2024-366", "2024-W09-4", "Thursday", "12 PM", "99", "0001 BC"]
    read = ["YYYY-MM-DD", "DD Mon YYYY", "Month DD, YYYY", "YYYYMMDD", "HH24:MI:SS", "YYYY-MM-DD HH24:MI:SS.MS", "YY-MM-DD", "Y-MM-DD", "YYYY-DDD", 'IYYY-"W"IW-ID', "Day", "HH AM", "YY", "YYYY BC", "FMYYYY-FMMM-FMDD", "FXYYYY-MM-DD"]
    figures = ["-34,338,492", "0.00001-", "5.01-", "5 4 4 . 7 8", ".01", "<564.65>", "$1,234.56", "42nd", "123456", "+7", "", "abc", "1e5"]
    return combined(rng, connection, [("to_char({}, '{}')", numbers, shapes), ("to_char({}, '{}')", moments, times), ("to_date('{}', '{}')", texts, read), ("to_timestamp('{}', '{}')", texts, read), ("to_number('{}', '{}')", figures, shapes)], 300)


def patterns(rng, connection):
    """Regular expressions, SIMILAR TO, LIKE."""
    texts = ["", "a", "ab", "abc", "aaab", "abcabc", "foo123bar", "key: value here", "x=1;y=22", "<b>x</b><b>y</b>", "one two  three", "a.b-c_d", "Äpfel öl", "line1\nline2", "2024-02-29", "ABCabc"]
    atoms = ["a", "b", "[a-c]", "[^a]", ".", "\\d", "\\w", "\\s", "(a|ab)", "(b|bc)?", "(?:x|xy)", "\\y", "^", "$", "[[:alpha:]]", "ö", "=", "foo", "(.)", "(.*)", "(.*?)", "(\\d+)"]
    marks = ["", "", "*", "+", "?", "*?", "+?", "{1,2}", "{2}", "{1,2}?"]
    shapes = ["".join(rng.choice(atoms) + rng.choice(marks) for _ in range(rng.randint(1, 3))) + rng.choice(["", "", "|b", "|abc"]) for _ in range(200)]
    similar = ["a%", "%b%", "(a|b)+", "_+", "[a-c]*", "a|abc", "%#\"b%#\"c", "a{2,3}b", "x_1%"]
    flags = ["", "g", "i", "n", "gi"]
    forms = [("'{}' ~ '{}'", texts, shapes), ("regexp_match('{}', '{}')", texts, shapes), ("regexp_replace('{}', '{}', '<\\&>', '{}')", texts, shapes, flags), ("regexp_split_to_array('{}', '{}')", texts, shapes), ("substring('{}' from '{}')", texts, shapes), ("regexp_count('{}', '{}')", texts, shapes), ("regexp_instr('{}', '{}', 1, 1, {})", texts, shapes, ["0", "1"]), ("regexp_substr('{}', '{}', 1, {})", texts, shapes, ["1", "2"]), ("'{}' SIMILAR TO '{}'", texts, similar), ("substring('{}' similar '{}' escape '#')", texts, similar), ("'{}' LIKE '{}'", texts, ["a%", "%b%", "_b_", "%", "", "a\\_", "%o%o%"])]
    return combined(rng, connection, forms, 300)


def spans(rng, connection):
    """Intervals as text, and reckoning with them; OVERLAPS."""
    amounts = ["1", "-1", "2.5", "-0.5", "100", "36", "0"]
    units = ["microseconds", "ms", "sec", "minutes", "hours", "days", "weeks", "mons", "years", "decades", "centuries", "quarters", "fortnights"]
    texts = [" ".join(f"{rng.choice(amounts)} {rng.choice(units)}" for _ in range(rng.randint(1, 3))) + rng.choice(["", "", " ago"]) for _ in range(120)]
    texts += ["P1Y2M3DT4H5M6S", "P0001-02-03T04:05:06", "PT36H", "1-2", "1-2 3 4:05:06", "-1-2 +3 -4:05:06", "@ 1 day 2 hours ago", "04:05", "04:05:06.789", "P1.5W", "infinity", ""]
    numbers = ["2", "0.5", "-3", "7", "49", "1.1", "0.0"]
    ends = ["date '2024-01-01'", "date '2024-02-29'", "NULL::date", "date '2023-12-31'", "date '2024-03-01'"]
    lengths = ["interval '1 day'", "interval '1 mon'", "interval '-5 days'", "date '2024-01-15'"]
    forms = [("interval '{}'", texts), ("interval '{}' * {}", texts, numbers), ("interval '{}' / {}", texts, numbers), ("timestamp '2024-01-31 10:00' + interval '{}'", texts), ("justify_interval(interval '{}')", texts), ("extract({} from interval '{}')", ["epoch", "day", "month", "hour", "second", "century"], texts), ("({}, {}) OVERLAPS ({}, {})", ends, lengths, ends, lengths), ("interval '{}' < interval '{}'", texts, texts)]
    return combined(rng, connection, forms, 250)


FROM_CATALOG = {"pictures": pictures, "patterns": patterns, "spans": spans, "functions": functions, "operators": operators, "casts": casts, "aggregates": aggregates}


def scripts(connect, only) -> dict[str, list[Record]]:
    """The generated scripts by name, or those that are asked for; `connect` opens a session in an empty schema."""
    made = {}
    for number, name in enumerate(SCRIPTS):
        if only and name not in only:
            continue
        rng = random.Random(SEED + number)
        connection = connect()
        connection.execute("SET statement_timeout = '1s'")
        if name in FROM_CATALOG:
            made[name] = FROM_CATALOG[name](rng, connection)
        else:
            setup = tables(rng)
            for statement in setup:
                connection.execute(statement)
            made[name] = [Record(statement) for statement in setup] + queries.make(name, rng, connection)
        connection.close()
        # The same text twice would be one test.
        made[name] = list({record.sql: record for record in made[name]}.values())
    return made
