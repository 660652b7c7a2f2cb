-- Calls that may mean several functions, sets of nothing, and arrays of which nobody knows what they are of.
CREATE FUNCTION dfunc(int = 1, int = 2) RETURNS int LANGUAGE sql AS 'SELECT 2';
CREATE FUNCTION dfunc(int = 1, int = 2, int = 3, int = 4) RETURNS int LANGUAGE sql AS 'SELECT 4';
SELECT dfunc();
SELECT dfunc(1);
SELECT dfunc(1, 2);
SELECT dfunc(1, 2, 3);
SELECT dfunc(1, 2, 3, 4);
DROP FUNCTION dfunc(int, int);
SELECT dfunc(1, 2);
CREATE SCHEMA told_apart;
CREATE FUNCTION told_apart.dfunc(int, int) RETURNS int LANGUAGE sql AS 'SELECT 20';
SET search_path TO told_apart, public;
SELECT dfunc(1, 2), dfunc(1, 2, 3);
SET search_path TO public, told_apart;
SELECT dfunc(1, 2);
RESET search_path;
DROP SCHEMA told_apart CASCADE;
DROP FUNCTION dfunc(int, int, int, int);
CREATE FUNCTION vfunc(int, VARIADIC int[]) RETURNS text LANGUAGE sql AS $$ SELECT 'variadic' $$;
CREATE FUNCTION vfunc(int, int) RETURNS text LANGUAGE sql AS $$ SELECT 'plain' $$;
SELECT vfunc(1, 2), vfunc(1, 2, 3);
DROP FUNCTION vfunc(int, int[]);
DROP FUNCTION vfunc(int, int);

CREATE FUNCTION nothing_often(a int) RETURNS SETOF void LANGUAGE sql STABLE AS $$ SELECT generate_series(1, a) $$;
SELECT * FROM nothing_often(3);
DROP FUNCTION nothing_often(int);

CREATE TYPE xy AS (x int, y int);
CREATE FUNCTION each(anyarray) RETURNS void LANGUAGE plpgsql AS $$
DECLARE x int; y int;
BEGIN
  FOREACH x, y IN ARRAY $1 LOOP RAISE NOTICE 'x = %, y = %', x, y; END LOOP;
END $$;
SELECT each(ARRAY[(10,20),(40,69),(35,78)]::xy[]);
SELECT each(ARRAY[[(10,20),(40,69)],[(35,78),(88,76)]]::xy[]);
SELECT each(ARRAY[1, 2]);
DROP FUNCTION each(anyarray);
DROP TYPE xy;

CREATE FUNCTION any_f(x anyelement) RETURNS anyelement LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$;
SELECT any_f(stavalues1) FROM pg_statistic;
DROP FUNCTION any_f(anyelement);
CREATE FUNCTION any_f(x anyarray) RETURNS anyelement LANGUAGE sql AS $$ SELECT x[1] $$;
SELECT any_f(stavalues1) FROM pg_statistic;
DROP FUNCTION any_f(anyarray);
CREATE FUNCTION any_f(x anyarray) RETURNS anyarray LANGUAGE sql AS $$ SELECT x $$;
SELECT any_f(stavalues1) FROM pg_statistic;
DROP FUNCTION any_f(anyarray);
CREATE FUNCTION any_f(x anyarray) RETURNS anyarray LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$;
SELECT any_f(stavalues1) FROM pg_statistic;
DROP FUNCTION any_f(anyarray);
