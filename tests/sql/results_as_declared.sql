-- What goes into arrays of another type, out of functions with declared columns, and through CALL.
CREATE TEMP TABLE c (a char(5), aa char(3)[], v varchar(9));
INSERT INTO c VALUES ('ab', '{x,yz}', 'v  ');
CREATE TEMP TABLE d (ta text[], va varchar(2)[], na name[]);
INSERT INTO d (ta) SELECT array['x', a] FROM c;
INSERT INTO d (ta, va, na) SELECT aa, aa, aa FROM c;
INSERT INTO d (ta) SELECT array[v] FROM c;
SELECT * FROM d;
UPDATE d SET ta = (SELECT aa FROM c) WHERE ta[1] = 'v  ' RETURNING ta;
SELECT aa::text[], aa::varchar[], (aa::text[])[1] || '|' FROM c;
SELECT array[a, 'q']::text[] FROM c;
CREATE TYPE rt AS (f1 numeric(35, 6), f2 numeric(35, 2));
CREATE FUNCTION rf() RETURNS rt AS $$ SELECT 7.136178319899999964, 7.136178319899999964 $$ LANGUAGE sql;
SELECT * FROM rf();
SELECT rf();
SELECT (rf()).f2;
CREATE FUNCTION rfs() RETURNS SETOF rt AS $$ SELECT n, n + 0.123456789 FROM (VALUES (1.5), (2.25)) v(n) ORDER BY n $$ LANGUAGE sql;
SELECT * FROM rfs();
CREATE FUNCTION array_to_set(anyarray) RETURNS SETOF record AS $$ SELECT i, $1[i] FROM generate_subscripts($1, 1) i $$ LANGUAGE sql IMMUTABLE;
SELECT * FROM array_to_set(array['one', 'two']) AS t(f1 numeric(4, 2), f2 text);
SELECT * FROM array_to_set(array['one', 'two']) AS t(f1 int, f2 text);
SELECT * FROM array_to_set(array['one', 'two']) AS t(f1 int, f2 varchar(2));
SELECT * FROM array_to_set(array['one', 'two']) AS t(f1 int, f2 char(5));
CREATE TYPE rv AS (a varchar(3), b char(4));
CREATE FUNCTION rvf(t text) RETURNS rv AS $$ SELECT t, t $$ LANGUAGE sql;
SELECT a, b || '|' FROM rvf('ab');
\set VERBOSITY terse
SELECT * FROM rvf('abcd');
\set VERBOSITY default
DROP FUNCTION rf, rfs, array_to_set, rvf;
DROP TYPE rt, rv;
CREATE PROCEDURE ptest11(a OUT int, VARIADIC b int[]) LANGUAGE sql AS $$ SELECT b[1] + b[2] $$;
CALL ptest11(NULL, 11, 12, 13);
CALL ptest11(NULL, 3, 4);
CALL ptest11(NULL, VARIADIC ARRAY[5, 6]);
CREATE PROCEDURE pvar(INOUT n int, OUT s text, VARIADIC b text[]) LANGUAGE plpgsql AS $$ BEGIN s := array_to_string(b, '-'); n := n + cardinality(b); END $$;
CALL pvar(1, NULL, 'x', 'y');
DO $$ DECLARE n int := 10; s text; BEGIN CALL pvar(n, s, 'p', 'q', 'r'); RAISE NOTICE '% %', n, s; END $$;
DROP PROCEDURE ptest11, pvar;
