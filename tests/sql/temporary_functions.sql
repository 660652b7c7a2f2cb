-- Functions that one session has for itself.
\set VERBOSITY verbose
CREATE TABLE tef (id int PRIMARY KEY, name text UNIQUE);
CREATE FUNCTION pg_temp.twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2';
SELECT pg_temp.twice(4);
-- Never by its bare name.
SELECT twice(4);
SET search_path = pg_temp, public;
SELECT twice(4);
SELECT pg_temp.twice(5);
RESET search_path;
CREATE FUNCTION pg_temp.twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 3';
CREATE OR REPLACE FUNCTION pg_temp.twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2 + 0';
SELECT pg_temp.twice(6), pg_temp.twice(id) FROM (VALUES (7)) AS v(id);
CREATE FUNCTION pg_temp.rows(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT n; RETURN NEXT n + 1; END $$;
SELECT * FROM pg_temp.rows(3);
-- As Sequelize makes what it has not found.
CREATE OR REPLACE FUNCTION pg_temp.testfunc(OUT response tef, OUT caught text) RETURNS RECORD AS $func$ BEGIN INSERT INTO tef VALUES (1, 'Zed') RETURNING * INTO response; EXCEPTION WHEN unique_violation THEN GET STACKED DIAGNOSTICS caught = PG_EXCEPTION_DETAIL; END $func$ LANGUAGE plpgsql;
SELECT (testfunc.response).id, (testfunc.response).name, testfunc.caught FROM pg_temp.testfunc();
SELECT (testfunc.response).id, (testfunc.response).name, testfunc.caught FROM pg_temp.testfunc();
DROP FUNCTION IF EXISTS pg_temp.testfunc();
SELECT pg_temp.testfunc();
DROP FUNCTION IF EXISTS pg_temp.testfunc();
-- In transactions.
BEGIN;
CREATE FUNCTION pg_temp.gone() RETURNS int LANGUAGE sql AS 'SELECT 1';
SELECT pg_temp.gone();
ROLLBACK;
SELECT pg_temp.gone();
BEGIN;
DROP FUNCTION pg_temp.twice(int);
SAVEPOINT s;
SELECT pg_temp.twice(1);
ROLLBACK;
SELECT pg_temp.twice(1);
-- Of a type that others see.
CREATE TYPE tef_mood AS ENUM ('sad', 'ok');
CREATE FUNCTION pg_temp.mood(tef_mood) RETURNS text LANGUAGE sql AS 'SELECT $1::text';
SELECT pg_temp.mood('ok');
\set VERBOSITY terse
DROP TYPE tef_mood;
\set VERBOSITY verbose
DROP FUNCTION pg_temp.mood(tef_mood);
DROP TYPE tef_mood;
-- What they are.
SELECT proname, pronamespace::regnamespace::text LIKE 'pg\_temp\_%' AS temporary, prosrc FROM pg_proc WHERE pronamespace = pg_my_temp_schema() ORDER BY 1;
ALTER FUNCTION pg_temp.twice(int) STRICT;
ALTER FUNCTION pg_temp.twice(int) RENAME TO double;
SELECT pg_temp.double(NULL), pg_temp.double(2);
ALTER FUNCTION pg_temp.double(int) SET SCHEMA public;
COMMENT ON FUNCTION pg_temp.double(int) IS 'times two';
SELECT obj_description(oid, 'pg_proc') FROM pg_proc WHERE proname = 'double';
-- Whoever may make temporary objects may.
CREATE ROLE tef_role;
SET ROLE tef_role;
CREATE FUNCTION pg_temp.mine() RETURNS name LANGUAGE sql AS 'SELECT current_user';
SELECT pg_temp.mine(), pg_temp.double(3);
RESET ROLE;
DROP FUNCTION pg_temp.mine();
DROP ROLE tef_role;
-- They go with the session, or before.
DISCARD TEMP;
SELECT pg_temp.double(3);
CREATE FUNCTION pg_temp.other() RETURNS int LANGUAGE sql AS 'SELECT 1';
SELECT pg_temp.other();
\c
SELECT count(*) FROM pg_proc WHERE proname = 'other';
DROP TABLE tef;
