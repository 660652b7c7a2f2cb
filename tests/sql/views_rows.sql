-- Rows of tables and views, as views have them: with the columns that have come since.
CREATE TABLE base (a int, b int);
INSERT INTO base VALUES (1, 2);
CREATE VIEW narrow AS SELECT a FROM base;
CREATE VIEW as_json AS SELECT to_json(narrow) AS j FROM narrow;
CREATE VIEW as_row AS SELECT narrow AS r, narrow IS NULL AS n FROM narrow;
CREATE VIEW of_table AS SELECT x.*, x AS r, count(x) OVER () AS n FROM base x;
CREATE VIEW outer_row AS SELECT l.v, r FROM (VALUES (1), (2)) l(v) LEFT JOIN narrow r ON r.a = l.v;
SELECT * FROM as_json;
CREATE OR REPLACE VIEW narrow AS SELECT a, 4 AS more FROM base;
SELECT * FROM as_json;
SELECT * FROM as_row;
SELECT (r).more FROM as_row;
SELECT * FROM outer_row ORDER BY v;
CREATE OR REPLACE VIEW narrow AS SELECT a, 4 AS more, b + 1 AS still FROM base;
SELECT * FROM as_json;
SELECT * FROM as_row;
SELECT * FROM outer_row ORDER BY v;
ALTER TABLE base ADD COLUMN c text DEFAULT 'c';
SELECT * FROM of_table;
SELECT (r).c FROM of_table;
SELECT * FROM as_json;
-- A view that reads a sequence names it.
CREATE SEQUENCE counted;
CREATE VIEW reads_it AS SELECT is_called, last_value FROM counted;
CREATE VIEW reads_alias AS SELECT s.is_called FROM counted s;
SELECT pg_get_viewdef('reads_it'::regclass);
SELECT pg_get_viewdef('reads_alias'::regclass);
ALTER SEQUENCE counted RENAME TO counted_on;
SELECT pg_get_viewdef('reads_it'::regclass);
SELECT pg_get_viewdef('reads_alias'::regclass);
SELECT * FROM reads_it;
DROP VIEW reads_it, reads_alias;
DROP SEQUENCE counted_on;
-- Rows of a subquery's tables are locked.
SELECT * FROM (SELECT * FROM base) s FOR UPDATE;
SELECT s.d FROM (SELECT a, b * 2 AS d FROM base WHERE b > 1) s(a, d) WHERE s.a = 1 FOR SHARE OF s;
SELECT s.a, t.b FROM (SELECT a FROM base) s JOIN base t ON t.a = s.a FOR UPDATE OF t;
SELECT s.a, t.b FROM (SELECT a FROM base) s JOIN base t ON t.a = s.a FOR UPDATE OF u;
SELECT s.*, s FROM (SELECT a, b FROM base) s FOR NO KEY UPDATE;
SELECT s.a FROM (SELECT a, b FROM base ORDER BY a) s, LATERAL (SELECT s.b) l WHERE false;
DROP TABLE base CASCADE;
-- Small things.
SELECT quote_literal(true), quote_literal(false), quote_nullable(false), quote_nullable(NULL::bool);
CREATE TABLE nothing (a date, b int[], c numeric, d bool, e text);
INSERT INTO nothing DEFAULT VALUES;
SELECT pg_typeof(a + 1), pg_typeof(extract(year FROM a)), pg_typeof(b[1]), pg_typeof(c + 1), pg_typeof(NOT d), pg_typeof(a - a), pg_typeof(b || 1), pg_typeof(e || 'x') FROM nothing;
SELECT pg_typeof(NULL), pg_typeof('x'), pg_typeof(NULL::int + 1);
DROP TABLE nothing;
