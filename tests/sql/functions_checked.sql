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
