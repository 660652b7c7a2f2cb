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
SCRIPTS = ["functions", "operators", "casts", "aggregates", "selects", "joins", "groups", "windows", "set_operations", "ctes", "subqueries", "changes"]

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
        if retset or name in skipped or not known(kinds) or name.startswith(("database_to", "schema_to", "table_to", "query_to", "cursor_to")):
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


FROM_CATALOG = {"functions": functions, "operators": operators, "casts": casts, "aggregates": aggregates}


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
