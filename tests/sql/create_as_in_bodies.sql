-- CREATE TABLE AS in bodies: variables, arguments and parameters are what they are around it.
CREATE TABLE src AS SELECT i FROM generate_series(1, 10) i;
DO $$
DECLARE n int := 3;
BEGIN
    CREATE TABLE of_variable AS SELECT n AS n;
    CREATE TABLE by_variable AS SELECT i FROM src WHERE i <= n;
    CREATE TABLE of_values AS VALUES (n, n + 1);
END $$;
SELECT * FROM of_variable;
SELECT * FROM by_variable ORDER BY i;
SELECT * FROM of_values;
CREATE FUNCTION made(m int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    written bigint;
    r record;
BEGIN
    SELECT max(i) AS last INTO r FROM src;
    CREATE TABLE by_argument AS SELECT m + i AS s, r.last FROM src;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
END $$;
SELECT made(5);
SELECT min(s), max(s), min(last) FROM by_argument;
DO $$
BEGIN
    EXECUTE 'CREATE TABLE by_parameter AS SELECT i FROM src WHERE i <= $1' USING 2;
END $$;
SELECT count(*) FROM by_parameter;
DROP TABLE src, of_variable, by_variable, of_values, by_argument, by_parameter;
DROP FUNCTION made(int);

-- A query of query_to_xml that asks for itself.
\set VERBOSITY terse
CREATE FUNCTION again() RETURNS xml LANGUAGE sql AS $$ SELECT query_to_xml('SELECT again()', true, false, '') $$;
SELECT again() IS NULL;
DROP FUNCTION again();
CREATE VIEW itself AS SELECT 1::text AS x;
CREATE OR REPLACE VIEW itself AS SELECT query_to_xml('SELECT * FROM itself', true, false, '')::text AS x;
SELECT length(x) FROM itself;
DROP VIEW itself;

-- Sequences of unlogged tables.
CREATE UNLOGGED TABLE with_sequences (a int GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME its_own UNLOGGED START WITH 5), b serial);
SELECT relname, relpersistence FROM pg_class WHERE relname IN ('its_own', 'with_sequences_b_seq') ORDER BY relname;
ALTER TABLE with_sequences SET LOGGED;
SELECT relname, relpersistence FROM pg_class WHERE relname IN ('its_own', 'with_sequences_b_seq') ORDER BY relname;
INSERT INTO with_sequences DEFAULT VALUES RETURNING *;
DROP TABLE with_sequences;
CREATE UNLOGGED SEQUENCE alone;
SELECT nextval('alone');
DROP SEQUENCE alone;
