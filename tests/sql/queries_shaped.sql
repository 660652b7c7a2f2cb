-- A recursive query that names itself in a WITH of its recursive term.
WITH RECURSIVE q(n) AS (
  VALUES (1)
  UNION ALL
  (WITH x AS (SELECT n + 1 AS n FROM q WHERE n < 4) SELECT n FROM x)
)
SELECT * FROM q;
WITH RECURSIVE x(a) AS (
  (VALUES ('a'), ('b'))
  UNION ALL
  (WITH z AS NOT MATERIALIZED (SELECT * FROM x)
   SELECT z.a || z1.a AS a FROM z CROSS JOIN z AS z1 WHERE length(z.a || z1.a) < 5)
)
SELECT * FROM x ORDER BY length(a), a;
WITH RECURSIVE q(n) AS (
  VALUES (1), (2)
  UNION ALL
  (WITH RECURSIVE x(n) AS (SELECT n * 10 FROM q WHERE n < 100 UNION ALL SELECT n + 1 FROM x WHERE n % 10 < 2)
   SELECT n FROM x)
)
SELECT * FROM q ORDER BY 1 LIMIT 12;
WITH RECURSIVE q(n) AS (
  VALUES (1)
  UNION ALL
  (WITH x AS (SELECT n FROM q), y AS (SELECT n FROM q) SELECT x.n + y.n FROM x, y WHERE x.n < 5)
)
SELECT * FROM q;
WITH RECURSIVE q(n) AS (
  VALUES (1)
  UNION ALL
  SELECT n + (SELECT max(n) FROM q) FROM q WHERE n < 5
)
SELECT * FROM q;
-- The older spelling of a table with its children.
CREATE TABLE person (name text, age int);
INSERT INTO person VALUES ('joe', 20), ('sally', 34);
SELECT p.name FROM person* p ORDER BY 1;
SELECT * FROM person * WHERE age > 20;
SELECT count(*) FROM public.person*, person * AS q;
SELECT extract(day FROM d * e) FROM (SELECT interval '2 days' AS d, 3 AS e) t;
SELECT substring('abcdef' FROM n * m) FROM (SELECT 2 AS n, 2 AS m) t;
SELECT 1 IS DISTINCT FROM n * m AS d FROM (SELECT 1 AS n, 1 AS m) t;
ALTER TABLE person ALTER age TYPE bigint USING age * length(name);
SELECT name, age FROM person ORDER BY age, name * 1;
SELECT name, age FROM person ORDER BY age;
-- Tables that are there, but not in sight.
SELECT * FROM person a, (SELECT a.age AS g) ss;
SELECT * FROM person a CROSS JOIN (SELECT a.age AS g) ss;
SELECT * FROM person a, LATERAL (SELECT a.age AS g) ss ORDER BY 1;
UPDATE person SET age = 1 FROM (SELECT * FROM person q WHERE q.age = person.age) ss;
DELETE FROM person USING (SELECT 1 WHERE person.age = 1) ss;
SELECT * FROM (SELECT nowhere.age) ss;
-- NULL in VALUES has the column's type in a view.
CREATE VIEW typed AS SELECT * FROM (VALUES (1, 'a'), (NULL, NULL), (3, 'c')) v(n, t);
SELECT pg_get_viewdef('typed'::regclass);
CREATE VIEW typed_dates AS VALUES (NULL, date '2020-01-01'), ('x', NULL);
SELECT pg_get_viewdef('typed_dates'::regclass);
-- Where the syntax is wrong.
CREATE TABLE foo (id int NOT NUL, b int);
SELECT 1 NOT wrong;
CREATE TABLE foo (a, b, c) AS SELECT 1, 2;
PREPARE three AS SELECT generate_series(1, 3);
CREATE TABLE foo (a) AS EXECUTE three WITH NO DATA;
SELECT count(*) FROM foo;
-- Transaction numbers are read as C reads them.
SELECT ''::xid, 'asdf'::xid, '010'::xid, '0x1f'::xid, '-1'::xid, '12x'::xid, ' 7'::cid, 'x'::xid8, '0x10'::xid8;
DROP VIEW typed, typed_dates;
DROP TABLE person, foo;
-- What stays in doubt in ORDER BY comes as from PostgreSQL's sort; rows made of one row stay together.
CREATE TABLE ties (four int, n int);
INSERT INTO ties VALUES (0, 4), (2, 2), (1, 1), (2, 6), (1, 9), (0, 8), (1, 5), (3, 3), (3, 7), (0, 0);
SELECT * FROM ties ORDER BY four;
SELECT * FROM ties ORDER BY four DESC;
SELECT four, n, row_number() OVER (PARTITION BY four), last_value(n) OVER (ORDER BY four ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING) FROM ties;
SELECT array_agg(n ORDER BY four) FROM ties;
SELECT four, generate_series(1, 3) FROM ties WHERE n < 4 ORDER BY four;
DROP TABLE ties;
-- EXPLAIN of DECLARE, and SELECT INTO where it may not be.
EXPLAIN (COSTS OFF) DECLARE c CURSOR FOR SELECT 1;
DECLARE c CURSOR FOR SELECT 1 INTO ties;
