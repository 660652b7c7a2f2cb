-- A range's type does not follow from its elements'.
CREATE FUNCTION f(anyelement) RETURNS anyrange LANGUAGE sql AS 'SELECT int4range(1, 10)';
CREATE FUNCTION f(i anyelement, OUT r anymultirange, OUT t text) LANGUAGE sql AS $$SELECT '{}', 'x'$$;
CREATE FUNCTION f(i anyelement) RETURNS TABLE (i2 anyelement, r anyrange) LANGUAGE sql AS $$SELECT $1, '[1,10]'$$;
CREATE FUNCTION f(r anyrange) RETURNS anyelement LANGUAGE sql AS 'SELECT lower(r)';
SELECT f(int4range(3, 5));
DROP FUNCTION f(anyrange);
-- What returns void gives NULL, if its language is SQL.
CREATE TABLE kept (n int);
CREATE FUNCTION g(n int) RETURNS void LANGUAGE sql AS 'INSERT INTO kept VALUES (n)';
\pset null (null)
SELECT g(1);
SELECT g(2) IS NULL, n FROM kept;
DROP FUNCTION g(int);
CREATE FUNCTION g(n int) RETURNS void LANGUAGE plpgsql AS 'BEGIN END';
SELECT g(1) IS NULL;
DROP FUNCTION g(int);
CREATE FUNCTION g() RETURNS void LANGUAGE plpgsql AS 'BEGIN RETURN 5; END';
-- Both names of a parameter are one value to GROUP BY.
CREATE FUNCTION h(p int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE x int; y int;
BEGIN
  SELECT INTO x, y n / p, n / $1 FROM kept GROUP BY n / p ORDER BY 1 LIMIT 1;
  RETURN x + y;
END$$;
SELECT h(1);
DROP FUNCTION h(int);
-- Arguments of bound cursors.
CREATE FUNCTION c() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c1 CURSOR (p1 int, p2 int) FOR SELECT p1 + p2; x int;
BEGIN OPEN c1(p2 := 20, p1 := 1); FETCH c1 INTO x; CLOSE c1; RETURN x; END$$;
SELECT c();
CREATE OR REPLACE FUNCTION c() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c1 CURSOR (p1 int, p2 int) FOR SELECT p1 + p2;
BEGIN OPEN c1(p2 := 20, 21); END$$;
CREATE OR REPLACE FUNCTION c() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c1 CURSOR (p1 int, p2 int) FOR SELECT p1 + p2;
BEGIN OPEN c1(p2 := 20); END$$;
CREATE OR REPLACE FUNCTION c() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c1 CURSOR (p1 int, p2 int) FOR SELECT p1 + p2;
BEGIN OPEN c1(1, 2, 3); END$$;
CREATE OR REPLACE FUNCTION c() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c1 CURSOR (p1 int, p2 int) FOR SELECT p1 + p2;
BEGIN OPEN c1(1, p3 := 3); END$$;
CREATE FUNCTION constant_cursor() RETURNS refcursor LANGUAGE plpgsql AS $$
DECLARE rc CONSTANT refcursor;
BEGIN OPEN rc FOR SELECT 1; RETURN rc; END$$;
SELECT constant_cursor();
-- A function of CREATE AGGREGATE with types behind it.
CREATE AGGREGATE total(int4) (SFUNC = int4_sum(int8, int4), STYPE = int8, INITCOND = '0');
SELECT total(n) FROM kept;
DROP AGGREGATE total(int4);
DROP FUNCTION c(), constant_cursor();
DROP TABLE kept;
-- Where a set or a record may not stand.
SELECT * FROM generate_series(1, generate_series(1, 3));
SELECT jsonb_populate_recordset(null::record, '[{"x": 0}]');
CREATE TYPE pair AS (a int, b int);
CREATE FUNCTION pairs() RETURNS SETOF pair LANGUAGE sql AS 'SELECT 1, 2';
SELECT * FROM pairs() AS t(x int, y int);
SELECT * FROM pg_get_keywords() AS t(x int, y int);
DROP FUNCTION pairs();
DROP TYPE pair;
SELECT jsonb_path_query('1e1000', '$.double()');
SELECT jsonb_path_query('"x"', '$.double()');
SELECT ts_headline('foo barbar', to_tsquery('foo'), 'StartSel=' || repeat('x', 32768));
WITH RECURSIVE f(i) AS (
  SELECT 1::numeric(3, 0) UNION ALL SELECT (i + 1)::numeric(10, 0) FROM f WHERE i < 10)
SELECT * FROM f;
BEGIN READ ONLY;
SELECT 1;
SAVEPOINT s;
SET TRANSACTION READ WRITE;
ROLLBACK;
-- FOREACH looks at its variable.
DO $$ DECLARE x int; BEGIN FOREACH x SLICE 1 IN ARRAY ARRAY[1, 2] LOOP END LOOP; END $$;
DO $$ DECLARE x int[]; BEGIN FOREACH x IN ARRAY ARRAY[1, 2] LOOP END LOOP; END $$;
-- A NULL default of a polymorphic argument has the others' type.
CREATE FUNCTION first_of(a anyelement, b anyelement = NULL, flag bool = true) RETURNS anyelement
  LANGUAGE sql AS 'SELECT CASE WHEN $3 THEN $1 ELSE $2 END';
SELECT first_of(1), first_of(a => -1), first_of('x'::text, flag => false);
DROP FUNCTION first_of(anyelement, anyelement, bool);
SELECT 'FFFFFFFF/FFFFFFFE'::pg_lsn + 2::numeric;
-- A moving aggregate takes nothing away that is computed anew each time.
CREATE FUNCTION join_up(text, text) RETURNS text IMMUTABLE STRICT LANGUAGE sql AS $$SELECT $1 || '+' || $2$$;
CREATE FUNCTION take_off(text, text) RETURNS text IMMUTABLE STRICT LANGUAGE sql AS $$SELECT $1 || '-' || $2$$;
CREATE AGGREGATE joined(text) (STYPE = text, SFUNC = join_up, MSTYPE = text, MSFUNC = join_up, MINVFUNC = take_off);
SELECT joined(v) OVER w, joined(v || CASE WHEN random() < 0 THEN '?' ELSE '' END) OVER w
FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c')) t(i, v) WINDOW w AS (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW);
DROP AGGREGATE joined(text);
DROP FUNCTION join_up(text, text), take_off(text, text);
