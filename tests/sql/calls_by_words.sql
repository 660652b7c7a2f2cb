-- What SQL's own words call, and what only looks like a call: bound by what it is, not by a name.
CREATE SCHEMA g_calls_by_words;
SET search_path = g_calls_by_words;
CREATE TABLE t (a int, b int, c int, s text, d date, ts timestamptz, x xml);
INSERT INTO t VALUES (1, 2, 3, 'Thomas', '2020-02-29', '2020-02-29 12:00+00', '<a/>');
SET timezone = 'UTC';

-- Names in quotes are functions, which there are not.
SELECT "coalesce"(1, 2);
SELECT "nullif"(1, 2);
SELECT "row"(1, 2);
SELECT "grouping"(a) FROM t GROUP BY a;
SELECT "greatest"(1, 2), 3;
SELECT "xmlconcat"('<a/>');

-- Users' functions of these names are found by name, not by words.
CREATE FUNCTION ceil(text) RETURNS text LANGUAGE sql AS $$ SELECT 'own ceil of ' || $1 $$;
CREATE FUNCTION substr(int, int) RETURNS text LANGUAGE sql AS $$ SELECT 'own substr' $$;
CREATE FUNCTION "coalesce"(int, int) RETURNS text LANGUAGE sql AS $$ SELECT 'own coalesce' $$;
CREATE FUNCTION "position"(int, int) RETURNS text LANGUAGE sql AS $$ SELECT 'own position' $$;
SELECT ceil('x'::text), ceil(1.5), substr(1, 2), substr('abc', 2), "coalesce"(1, 2), coalesce(1, 2), "position"(1, 2);
SELECT position(1 IN 2);
DROP FUNCTION ceil(text);
DROP FUNCTION substr(int, int);
DROP FUNCTION "coalesce"(int, int);
DROP FUNCTION "position"(int, int);

-- Their errors name pg_catalog, and stand where the words do.
SELECT 1, extract(day FROM 1);
SELECT 1, 2 AT TIME ZONE 'UTC';
SELECT 1, position(true IN 'abc');
SELECT 1, overlay(1 PLACING 2 FROM 3);
SELECT 1, trim(BOTH 1 FROM 2);
SELECT 1, (1, 2) OVERLAPS (3, 4);
SELECT 1, true IS NORMALIZED;
SELECT 1, trim('a', 'b', 'c');

-- The names of columns.
SELECT extract(day FROM d), position('o' IN s), trim(s), trim(LEADING 'T' FROM s), substring(s FROM 2),
       overlay(s PLACING 'x' FROM 1), ts AT TIME ZONE 'UTC', s IS NORMALIZED, s IS NOT NFC NORMALIZED, normalize(s),
       (d, d) OVERLAPS (d, d), COLLATION FOR (s), x IS DOCUMENT, x IS NOT DOCUMENT, xmlconcat(x), xmlforest(s),
       coalesce(a, b), nullif(a, b), greatest(a, b), least(a, b), ROW(a, b), (a, b)
FROM t;

-- How they are shown.
CREATE VIEW words AS SELECT
  extract(day FROM d) AS c1, extract('DOW' FROM ts) AS c2, position('o' IN s) AS c3, trim(s) AS c4,
  trim(LEADING 'T' FROM s) AS c5, trim(TRAILING FROM s) AS c6, substring(s FROM 2) AS c7, substring(s FROM 2 FOR 3) AS c8,
  substring(s FOR 3) AS c9, substring(s FROM 'T(.*)s') AS c10, substring(s FROM s) AS c11,
  substring(s SIMILAR 'T#"%#"s' ESCAPE '#') AS c12, substring(s, 2) AS c13, substr(s, 2) AS c14,
  overlay(s PLACING 'x' FROM 1 FOR 2) AS c15, (ts + interval '1 day') AT TIME ZONE 'UTC' AS c16,
  s IS NORMALIZED AS c17, s || 'x' IS NOT NFKC NORMALIZED AS c18, normalize(s) AS c19, normalize(s, NFD) AS c20,
  (d, d) OVERLAPS (d, d) AS c21, COLLATION FOR (s) AS c22, x IS DOCUMENT AS c23, x IS NOT DOCUMENT AS c24,
  ceil(a + 0.5) AS c25, floor(a + 0.5) AS c26, NOT s IS NORMALIZED AS c27
FROM t;
SELECT pg_get_viewdef('words', false);
SELECT pg_get_viewdef('words', true);
SELECT * FROM words;

-- Conditions in parentheses stay apart, except where they begin the whole.
CREATE VIEW conditions AS SELECT
  a = 1 AND (b = 2 AND c = 3) AS c1, (a = 1 AND b = 2) AND c = 3 AS c2, a = 1 OR (b = 2 OR c = 3) AS c3,
  (a = 1 OR b = 2) AND c = 3 AS c4, NOT (a = 1 AND b = 2) AS c5, a BETWEEN 1 AND 2 AND b = 2 AS c6,
  a = 1 AND b BETWEEN 1 AND 2 AS c7, (a, b) = (1, 2) AND c = 3 AS c8, c = 3 AND (a, b) = (1, 2) AS c9,
  (a, b) < (1, 2) AND c = 3 AS c10, NOT (a IS NULL) AS c11, (a = 1) IS TRUE AS c12, - (- a) AS c13,
  a - (b - c) AS c15, (a - b) - c AS c16, a * (b + c) AS c17, (a = b) = (b = c) AS c18, (s || 'x') || s AS c19
FROM t;
SELECT pg_get_viewdef('conditions', false);
SELECT pg_get_viewdef('conditions', true);
SELECT * FROM conditions;
CREATE TABLE checked (a int, b int, c int, CONSTRAINT k CHECK (a > 0 AND (b > 0 AND c > 0)),
  CONSTRAINT l CHECK ((a > 0 OR b > 0) AND (a, b) IN ((1, 2), (3, 4))), CONSTRAINT m CHECK (a BETWEEN 1 AND 9 AND b > 0));
SELECT conname, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint
WHERE conrelid = 'checked'::regclass ORDER BY conname;

-- Rows compared with those of a query, and keys that are rows.
CREATE VIEW compared AS SELECT (a, b) IN (SELECT 1, 2) AS c1, ROW(a, b) NOT IN (SELECT 1, 2) AS c2,
  (a, b) = ANY (SELECT 1, 2) AS c3
FROM t ORDER BY ROW(a, b), coalesce(a, b), abs(a), xmlconcat(x) IS DOCUMENT;
SELECT pg_get_viewdef('compared', false);
SELECT pg_get_viewdef('compared', true);
SELECT * FROM compared;

-- Indexes on them.
CREATE INDEX ON t (coalesce(a, b));
CREATE INDEX ON t (greatest(a, b));
CREATE INDEX ON t (nullif(a, b));
CREATE INDEX ON t (trim(s));
CREATE INDEX ON t ((a + b));
CREATE INDEX ON t (position('o' IN s));
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 't'::regclass ORDER BY indexrelid;

-- Functions in FROM.
SELECT count(*) FROM current_date;
SELECT * FROM substring('Thomas' FROM 2 FOR 3);
SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a']) AS u(n, l);
SELECT * FROM t, LATERAL unnest(ARRAY[a, b], ARRAY[c]) AS u(n, m);
CREATE VIEW functions AS SELECT u.n, g.g, k.k FROM t, unnest(ARRAY[t.a], ARRAY[t.b]) AS u(n, m),
  pg_catalog.generate_series(1, t.a) AS g, substring('Thomas' FROM 2) AS k;
SELECT pg_get_viewdef('functions', false);
SELECT * FROM functions;
SET client_min_messages = warning;
DROP SCHEMA g_calls_by_words CASCADE;
