"""Random queries over the tables of `values.py`."""

from __future__ import annotations

from script import Record
from values import COLUMNS, LITERALS

COUNT = {"selects": 260, "joins": 220, "groups": 200, "windows": 160, "set_operations": 140, "ctes": 120, "subqueries": 200, "changes": 160}

# Templates by what they give; the arguments are types. Nothing that fails for ordinary values, nothing that hangs on time or place.
SHAPES = {
    "int4": [
        ("({} + {})", "int4", "int2"), ("({} - {})", "int4", "int4"), ("abs({})", "int4"), ("length({})", "text"), ("({} * {})", "int2", "int4"), ("({} / nullif({}, 0))", "int4", "int4"),
        ("({} % nullif({}, 0))", "int4", "int4"), ("cardinality({})", "_int4"), ("array_length({}, 1)", "_text"), ("position({} in {})", "text", "text"), ("({} - {})", "date", "date"), ("ascii({})", "text"),
        ("({} & {})", "int4", "int4"), ("sign({})::int4", "numeric"), ("octet_length({})", "text"), ("array_position({}, {})", "_int4", "int4"), ("({})[1]", "_int4"), ("jsonb_array_length(CASE jsonb_typeof({}) WHEN 'array' THEN {} END)", "jsonb", "jsonb"),
        ("extract(year from {})::int4", "date"), ("{}::int4", "bool"), ("strpos({}, {})", "text", "text"), ("width_bucket({}, 0, 10, 5)", "numeric"), ("mod({}, 3)", "int4"), ("num_nulls({}, {})", "text", "int4"),
    ],
    "int2": [("{}::int2", "bool_int"), ("abs({})", "int2")],
    "int8": [("({} + {})", "int8", "int4"), ("{}::int8", "int4"), ("({} - {})", "int8", "int2"), ("greatest({}, {})", "int8", "int4"), ("round({})::int8", "numeric")],
    "numeric": [
        ("({} + {})", "numeric", "numeric"), ("({} * {})", "numeric", "int4"), ("round({}, 1)", "numeric"), ("({} / nullif({}, 0))", "numeric", "int4"), ("{}::numeric", "int4"), ("trunc({}, 1)", "numeric"),
        ("extract(epoch from {})", "interval"), ("extract(month from {})", "timestamp"), ("ceil({})", "numeric"), ("abs({})", "numeric"), ("{}::numeric(12,4)", "numeric"), ("power({}, 2)", "numeric"), ("-{}", "numeric"),
    ],
    "float8": [("({} + {})", "float8", "int4"), ("({} * {})", "float8", "float8"), ("{}::float8", "int4"), ("floor({})", "float8"), ("{}::float8", "numeric"), ("abs({})", "float8")],
    "bool": [
        ("({} = {})", "int4", "int8"), ("({} < {})", "text", "text"), ("({} AND {})", "bool", "bool"), ("({} OR {})", "bool", "bool"), ("(NOT {})", "bool"), ("({} IS NULL)", "text"), ("({} IS DISTINCT FROM {})", "int4", "int4"),
        ("({} BETWEEN {} AND {})", "int4", "int2", "int4"), ("({} IN ({}, {}, 3))", "int4", "int4", "int4"), ("({} LIKE '%a%')", "text"), ("({} ~ '^[a-c]')", "text"), ("({} = ANY ({}))", "int4", "_int4"), ("({} @> {})", "_int4", "_int4"),
        ("({} >= {})", "date", "timestamp"), ("({} < {})", "timestamptz", "timestamptz"), ("({} = {})", "interval", "interval"), ("({} ? 'a')", "jsonb"), ("({} IS TRUE)", "bool"), ("({} IS NOT UNKNOWN)", "bool"), ("({} <> ALL ({}))", "int4", "_int4"),
        ("({} = {})", "bpchar", "text"), ("({} = {})", "varchar", "bpchar"), ("(({}, {}) < ({}, {}))", "int4", "text", "int4", "text"), ("({} <> {})", "jsonb", "jsonb"), ("({} ILIKE 'A%')", "varchar"), ("starts_with({}, 'a')", "text"),
        ("({} && {})", "_text", "_text"), ("({} NOT IN ({}, {}))", "text", "text", "varchar"), ("({} > {})", "numeric", "float8"), ("({} IS JSON)", "never"), ("({} = {})", "uuid", "uuid"), ("({} BETWEEN SYMMETRIC {} AND {})", "numeric", "int4", "int4"),
    ],
    "text": [
        ("({} || {})", "text", "text"), ("upper({})", "text"), ("lower({})", "varchar"), ("substr({}, 2)", "text"), ("left({}, 2)", "text"), ("coalesce({}, {})", "text", "varchar"), ("{}::text", "int4"), ("{}::text", "date"), ("{}::text", "numeric"),
        ("{}::text", "bool"), ("{}::text", "interval"), ("trim({})", "text"), ("replace({}, 'a', {})", "text", "text"), ("({} || {})", "text", "int4"), ("concat({}, {}, {})", "text", "int4", "bool"), ("concat_ws('-', {}, {})", "text", "date"),
        ("lpad({}, 5, '*')", "text"), ("to_char({}, 'YYYY-MM-DD HH24:MI')", "timestamp"), ("to_char({}, 'FM990.00')", "numeric"), ("array_to_string({}, ',', '*')", "_int4"), ("({} ->> 'a')", "jsonb"), ("reverse({})", "text"), ("md5({})", "text"),
        ("repeat({}, 2)", "text"), ("initcap({})", "text"), ("split_part({}, ' ', 1)", "text"), ("({})[1]", "_text"), ("format('%s|%L|%I', {}, {}, 'x')", "text", "int4"), ("overlay({} placing 'ZZ' from 2)", "text"), ("nullif({}, {})", "text", "text"),
        ("greatest({}, {})", "text", "varchar"), ("quote_nullable({})", "text"), ("translate({}, 'ab', 'x')", "text"), ("regexp_replace({}, '[a-z]', '<\\&>')", "text"), ("{}::text", "_int4"), ("{}::text", "jsonb"), ("{}::text", "timestamptz"), ("jsonb_typeof({})", "jsonb"),
    ],
    "varchar": [("{}::varchar(3)", "text"), ("{}::varchar", "int4")],
    "bpchar": [("{}::char(3)", "text")],
    "date": [("({} + {})", "date", "int2"), ("{}::date", "timestamp"), ("({} - {})", "date", "int2"), ("least({}, {})", "date", "date"), ("date_trunc('month', {})::date", "timestamp"), ("make_date(2024, 1 + abs({}) % 12, 15)", "int4")],
    "timestamp": [("({} + {})", "timestamp", "interval"), ("({} - {})", "timestamp", "interval"), ("{}::timestamp", "date"), ("date_trunc('hour', {})", "timestamp"), ("({} + {})", "date", "interval"), ("({} AT TIME ZONE 'Europe/Berlin')", "timestamptz")],
    "timestamptz": [("({} + {})", "timestamptz", "interval"), ("({} AT TIME ZONE 'America/New_York')", "timestamp"), ("date_trunc('day', {})", "timestamptz")],
    "interval": [("({} + {})", "interval", "interval"), ("({} * {})", "interval", "int2"), ("({} - {})", "timestamp", "timestamp"), ("-{}", "interval"), ("age({}, {})", "timestamp", "timestamp"), ("justify_hours({})", "interval"), ("make_interval(days => {})", "int4")],
    "uuid": [("coalesce({}, {})", "uuid", "uuid")],
    "jsonb": [("to_jsonb({})", "int4"), ("to_jsonb({})", "text"), ("jsonb_build_object('k', {}, 'l', {})", "text", "int4"), ("({} || {})", "jsonb", "jsonb"), ("({} - 'a')", "jsonb"), ("({} -> 'a')", "jsonb"), ("to_jsonb({})", "_text"), ("jsonb_build_array({}, {})", "numeric", "date"), ("jsonb_strip_nulls({})", "jsonb")],
    "_int4": [("({} || {})", "_int4", "_int4"), ("({} || {})", "_int4", "int4"), ("ARRAY[{}, {}]", "int4", "int4"), ("array_remove({}, {})", "_int4", "int4"), ("({})[1:2]", "_int4"), ("array_append({}, {})", "_int4", "int4")],
    "_text": [("({} || {})", "_text", "text"), ("ARRAY[{}, {}]", "text", "text"), ("string_to_array({}, ' ')", "text"), ("array_replace({}, 'a', {})", "_text", "text")],
}  # fmt: skip
EVERY = [kind for kind in SHAPES]
FEW = ["int4", "text", "numeric", "bool", "date", "int8", "varchar", "jsonb", "timestamp"]


class Maker:
    """Makes expressions over what is in scope: names of tables with all columns."""

    def __init__(self, rng):
        self.rng = rng

    def column(self, kind, scope):
        found = [name for name, _, of in COLUMNS if of == kind]
        if kind == "int4" and self.rng.random() < 0.3:
            found = ["id"]
        return f"{self.rng.choice(scope)}.{self.rng.choice(found)}" if found and scope else None

    def expression(self, kind, depth, scope):
        if kind == "bool_int":
            kind = "int4"
            return f"({self.expression('int4', 0, scope)} % 100)"
        chance = self.rng.random()
        if depth <= 0 or chance < 0.25:
            return (self.column(kind, scope) if self.rng.random() < 0.8 else None) or self.rng.choice(LITERALS[kind][:6])
        if chance < 0.33:
            return f"CASE WHEN {self.expression('bool', depth - 1, scope)} THEN {self.expression(kind, depth - 1, scope)} ELSE {self.expression(kind, depth - 1, scope)} END"
        if chance < 0.38:
            return f"coalesce({self.expression(kind, depth - 1, scope)}, {self.expression(kind, 0, scope)})"
        shape, *kinds = self.rng.choice(SHAPES[kind])
        if "never" in kinds:
            return self.expression(kind, depth, scope)
        return shape.format(*(self.expression(of, depth - 1, scope) for of in kinds))

    def some(self, scope, count, depth=2, kinds=EVERY):
        return [self.expression(self.rng.choice(kinds), depth, scope) for _ in range(count)]

    def condition(self, scope, depth=2):
        return self.expression("bool", depth, scope)

    def joined(self, count):
        """A FROM of several tables, and the names in it."""
        names = ["x", "y", "z"][:count]
        text = f"{self.rng.choice(['t1', 't2', 't3'])} x"
        for place in range(1, count):
            name = names[place]
            kind = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "JOIN", "LEFT JOIN"])
            table = f"{self.rng.choice(['t1', 't2', 't3'])} {name}"
            if kind == "CROSS JOIN":
                text += f" CROSS JOIN {table}"
                continue
            column = self.rng.choice(["i", "id", "t", "s", "d", "v", "n"])
            on = f"{name}.{column} = {self.rng.choice(names[:place])}.{column}"
            if kind != "FULL JOIN" and self.rng.random() < 0.35:
                on += f" AND {self.condition(names[: place + 1], 1)}"
            text += f" {kind} {table} ON {on}"
        return text, names

    # -- kinds of queries ---------------------------------------------------------------------------------------------
    def selects(self):
        table = self.rng.choice(["t1", "t2", "t3"])
        outputs = self.some([table], self.rng.randint(1, 4), 3)
        where = f" WHERE {self.condition([table], 3)}" if self.rng.random() < 0.7 else ""
        form = self.rng.random()
        if form < 0.2:
            return f"SELECT DISTINCT {', '.join(outputs)} FROM {table}{where}", True
        if form < 0.3:
            return f"SELECT DISTINCT ON ({outputs[0]}) {', '.join(outputs)} FROM {table}{where} ORDER BY {outputs[0]}, id", False
        if form < 0.5:
            direction = self.rng.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
            limit = self.rng.choice(["", " LIMIT 3", " LIMIT 4 OFFSET 2", " OFFSET 5", " FETCH FIRST 2 ROWS ONLY"])
            return f"SELECT {', '.join(outputs)} FROM {table}{where} ORDER BY {self.expression(self.rng.choice(FEW), 1, [table])}{direction}, id{limit}", False
        return f"SELECT id, {', '.join(outputs)} FROM {table}{where} ORDER BY id", False

    def joins(self):
        text, names = self.joined(self.rng.choice([2, 2, 2, 3]))
        outputs = [f"{name}.id" for name in names] + self.some(names, self.rng.randint(1, 2), 2)
        if self.rng.random() < 0.15:
            column = self.rng.choice(["i", "t", "id", "v"])
            kind = self.rng.choice(["JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"])
            return f"SELECT {column}, x.id, y.id FROM t1 x {kind} t2 y USING ({column})", True
        where = f" WHERE {self.condition(names)}" if self.rng.random() < 0.6 else ""
        return f"SELECT {', '.join(outputs)} FROM {text}{where}", True

    AGGREGATES = ["count(*)", "count({text})", "sum({int4})", "sum({numeric})", "avg({int4})", "avg({numeric})", "min({text})", "max({date})", "min({int8})", "bool_and({bool})", "bool_or({bool})", "count(DISTINCT {int4})", "sum({float8})", "max({numeric})", "string_agg({text}, ',' ORDER BY {text}, x.id)", "array_agg({int4} ORDER BY x.id)", "sum({int8})", "sum(DISTINCT {int2})", "count(*) FILTER (WHERE {bool})", "sum({int4}) FILTER (WHERE {bool})", "min({timestamp})", "max({interval})", "every({bool})", "bit_or({int4})", "variance({int4})", "stddev_samp({numeric})", "jsonb_agg({int4} ORDER BY x.id)", "max({bpchar})", "sum({interval})", "min({_int4})"]  # fmt: skip

    def aggregate(self, scope):
        form = self.rng.choice(self.AGGREGATES)
        for kind in EVERY:
            while "{" + kind + "}" in form:
                form = form.replace("{" + kind + "}", self.expression(kind, 1, scope), 1)
        return form

    def groups(self):
        two = self.rng.random() < 0.3
        text, scope = ("t1 x JOIN t2 y ON x.i = y.i", ["x", "y"]) if two else (f"{self.rng.choice(['t1', 't2', 't3'])} x", ["x"])
        if two:
            # Which of several rows with one x.id comes first is not said.
            aggregates = [form for form in (self.aggregate(scope) for _ in range(6)) if "ORDER BY" not in form][:2] or ["count(*)"]
        else:
            aggregates = [self.aggregate(scope) for _ in range(self.rng.randint(1, 3))]
        where = f" WHERE {self.condition(scope, 1)}" if self.rng.random() < 0.4 else ""
        if self.rng.random() < 0.15:
            return f"SELECT {', '.join(aggregates)} FROM {text}{where}", True
        keys = [self.column(self.rng.choice(FEW), scope) if self.rng.random() < 0.6 else self.expression(self.rng.choice(FEW), 1, scope) for _ in range(self.rng.randint(1, 2))]
        by = ", ".join(str(place + 1) for place in range(len(keys)))
        if self.rng.random() < 0.25:
            columns = [self.column(self.rng.choice(["int4", "bool", "text"]), scope) for _ in range(2)]
            by = self.rng.choice([f"ROLLUP ({', '.join(columns)})", f"CUBE ({', '.join(columns)})", f"GROUPING SETS (({columns[0]}), ({columns[1]}), ())"])
            keys = [*columns, f"grouping({', '.join(columns)})"]
        having = f" HAVING count(*) {self.rng.choice(['> 1', '< 4', '<> 2'])}" if self.rng.random() < 0.3 else ""
        return f"SELECT {', '.join(keys + aggregates)} FROM {text}{where} GROUP BY {by}{having}", True

    WINDOWS = ["row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)", "lag({int4})", "lag({text}, 2, 'none')", "lead({numeric})", "first_value({text})", "last_value({int4})", "nth_value({date}, 2)", "sum({int4})", "count(*)", "avg({numeric})", "min({text})", "max({int8})", "array_agg({int4})", "string_agg({text}, '/')", "count({bool}) FILTER (WHERE {bool})", "bool_or({bool})"]  # fmt: skip
    FRAMES = ["", "", "ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING", "RANGE UNBOUNDED PRECEDING", "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW"]  # fmt: skip

    def windows(self):
        table = self.rng.choice(["t1", "t2"])
        calls = []
        for _ in range(self.rng.randint(1, 3)):
            call = self.rng.choice(self.WINDOWS)
            for kind in ["int4", "text", "numeric", "date", "int8", "bool"]:
                while "{" + kind + "}" in call:
                    call = call.replace("{" + kind + "}", self.expression(kind, 1, [table]), 1)
            partition = f"PARTITION BY {self.expression(self.rng.choice(['int4', 'bool', 'text']), 1, [table])} " if self.rng.random() < 0.5 else ""
            order = f"ORDER BY {self.expression(self.rng.choice(FEW), 1, [table])}{self.rng.choice(['', ' DESC'])}, {table}.id"
            calls.append(f"{call} OVER ({partition}{order} {self.rng.choice(self.FRAMES)})".replace(" )", ")"))
        where = f" WHERE {self.condition([table], 1)}" if self.rng.random() < 0.3 else ""
        return f"SELECT id, {', '.join(calls)} FROM {table}{where} ORDER BY id", False

    def set_operations(self):
        kinds = [self.rng.choice(FEW) for _ in range(self.rng.randint(1, 2))]
        wider = {"int4": ["int4", "int8", "numeric", "int2"], "text": ["text", "varchar"], "date": ["date", "timestamp"], "numeric": ["numeric", "int4", "float8"]}
        branches = []
        for _ in range(self.rng.choice([2, 2, 3])):
            table = self.rng.choice(["t1", "t2", "t3"])
            outputs = [self.expression(self.rng.choice(wider.get(kind, [kind])), 1, [table]) for kind in kinds]
            where = f" WHERE {self.condition([table], 1)}" if self.rng.random() < 0.4 else ""
            branches.append(f"SELECT {', '.join(outputs)} FROM {table}{where}")
        text = branches[0]
        for branch in branches[1:]:
            operation = self.rng.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
            text += f" {operation} {branch}" if self.rng.random() < 0.8 else f" {operation} ({branch})"
        if self.rng.random() < 0.2:
            text = f"SELECT count(*) FROM ({text}) AS q"
        return text, True

    def ctes(self):
        form = self.rng.random()
        inner, _ = self.selects() if form < 0.4 else (None, None)
        if form < 0.2:
            return f"WITH w AS ({inner}) SELECT count(*) FROM w", True
        if form < 0.4:
            kinds = ["int4", "text", "numeric"]
            outputs = ", ".join(f"{self.expression(kind, 2, ['t1'])} AS c{n}" for n, kind in enumerate(kinds))
            materialized = self.rng.choice(["", "MATERIALIZED ", "NOT MATERIALIZED "])
            return f"WITH w AS {materialized}(SELECT id, {outputs} FROM t1) SELECT a.id, b.c1, a.c2 + b.c2 FROM w a JOIN w b ON a.c0 = b.c0 WHERE a.id <= b.id", True
        if form < 0.6:
            step = self.rng.randint(1, 3)
            bound = self.rng.randint(5, 12)
            extra = self.rng.choice(["s || n::text", "s || '.'", "left(s || n, 4)"])
            union = self.rng.choice(["UNION ALL", "UNION"])
            return f"WITH RECURSIVE r(n, s) AS (SELECT 1, 'a' {union} SELECT n + {step}, {extra} FROM r WHERE n < {bound}) SELECT * FROM r ORDER BY n", False
        if form < 0.75:
            return f"WITH RECURSIVE r AS (SELECT id, i, 1 AS depth FROM t1 WHERE {self.condition(['t1'], 1)} UNION SELECT t1.id, t1.i, depth + 1 FROM r JOIN t1 ON t1.id = r.i WHERE depth < 4) SELECT * FROM r", True
        if form < 0.9:
            return f"WITH a AS (SELECT i, count(*) AS n FROM t1 GROUP BY i), b AS (SELECT i, {self.aggregate(['x'])} AS m FROM t2 x GROUP BY i) SELECT a.i, n, m FROM a LEFT JOIN b ON a.i IS NOT DISTINCT FROM b.i", True
        lines = [f"({self.expression('int4', 1, [])}, {self.expression('text', 1, [])})" for _ in range(3)]
        return f"WITH v(a, b) AS (VALUES {', '.join(lines)}) SELECT * FROM v, t3 WHERE v.a >= t3.id", True

    def subqueries(self):
        outer, inner = "x", "y"
        table, other = self.rng.choice(["t1", "t2", "t3"]), self.rng.choice(["t1", "t2", "t3"])
        both = [outer, inner]
        kind = self.rng.choice(["int4", "text", "numeric"])
        column = {"int4": "i", "text": "t", "numeric": "n"}[kind]
        link = f"{inner}.{self.rng.choice(['i', 't', 's', 'd'])}"
        link = f"{link} = {link.replace(inner + '.', outer + '.')}"
        forms = [
            lambda: f"SELECT x.id, (SELECT {self.rng.choice(['max', 'min', 'count'])}({self.expression(kind, 1, both)}) FROM {other} y WHERE {link}) FROM {table} x",
            lambda: f"SELECT x.id FROM {table} x WHERE {self.rng.choice(['', 'NOT '])}EXISTS (SELECT FROM {other} y WHERE {link} AND {self.condition(both, 1)})",
            lambda: f"SELECT x.id FROM {table} x WHERE {self.expression(kind, 1, ['x'])} {self.rng.choice(['IN', 'NOT IN'])} (SELECT {self.expression(kind, 1, ['y'])} FROM {other} y WHERE {self.condition(['y'], 1)})",
            lambda: f"SELECT x.id FROM {table} x WHERE x.{column} {self.rng.choice(['>', '<=', '=', '<>'])} {self.rng.choice(['ANY', 'ALL'])} (SELECT y.{column} FROM {other} y WHERE {self.condition(['y'], 1)})",
            lambda: f"SELECT x.id, q.* FROM {table} x {self.rng.choice(['CROSS JOIN LATERAL', 'LEFT JOIN LATERAL'])} (SELECT {', '.join(f'{e} AS c{n}' for n, e in enumerate(self.some(both, 2, 1)))} FROM {other} y WHERE {link} ORDER BY y.id LIMIT 2) q",
            lambda: f"SELECT q.g, q.a FROM (SELECT x.{column} AS g, {self.aggregate(['x'])} AS a FROM {table} x GROUP BY x.{column}) q WHERE q.g IS NOT NULL",
            lambda: f"SELECT x.id, ARRAY(SELECT y.id FROM {other} y WHERE {link} ORDER BY y.id) FROM {table} x WHERE {self.condition(['x'], 1)}",
            lambda: f"SELECT x.id, (x.i, x.s) IN (SELECT y.i, y.s FROM {other} y) FROM {table} x",
            lambda: f"SELECT x.id, CASE WHEN EXISTS (SELECT FROM {other} y WHERE {link}) THEN {self.expression(kind, 1, ['x'])} END FROM {table} x",
        ]
        text = self.rng.choice(forms)()
        return (text + " ON true" if "LEFT JOIN LATERAL" in text else text), True

    def changes(self):
        table = self.rng.choice(["t2", "t3"])
        column, _, kind = self.rng.choice(COLUMNS[:13])
        form = self.rng.random()
        returning = f" RETURNING id, {column}"
        if form < 0.45:
            where = self.condition([table], 2)
            source = f" FROM t1 y WHERE y.id = {table}.id AND " if self.rng.random() < 0.3 else " WHERE "
            scope = [table, "y"] if "FROM" in source else [table]
            return f"UPDATE {table} SET {column} = {self.expression(kind, 2, scope)}{source}{where}{returning}", True
        if form < 0.6:
            return f"DELETE FROM {table} WHERE id = {self.rng.randint(1, 30)} AND {self.condition([table], 1)}{returning}", True
        if form < 0.8:
            key = self.rng.randint(1, 40)
            return f"INSERT INTO {table} (id, {column}) VALUES ({key}, {self.expression(kind, 1, [])}) ON CONFLICT (id) DO {self.rng.choice(['NOTHING', f'UPDATE SET {column} = excluded.{column}'])}{returning}", True
        if form < 0.9:
            return f"WITH w AS (UPDATE {table} SET {column} = NULL WHERE {self.condition([table], 1)} RETURNING *) SELECT count(*), count({column}) FROM w", True
        return f"SELECT id, {column}, t FROM {table} ORDER BY id", False


def make(name, rng, connection):
    """As many queries of a kind as `COUNT` says, each with an answer from PostgreSQL."""
    maker, records = Maker(rng), []
    form = getattr(maker, name)
    while len(records) < COUNT[name]:
        sql, rowsort = form()
        result = connection.pgconn.exec_(sql.encode())
        if result.status != 2 or result.ntuples > 200:
            continue
        # Most that are empty say little.
        if not result.ntuples and rng.random() < 0.8 and name != "changes":
            continue
        records.append(Record(sql, rowsort=rowsort))
    return records
