-- Parameters where there are some, and where there are none.
\set VERBOSITY verbose

-- An SQL function's, in statements that are not planned.
CREATE FUNCTION opens(like_this text, most int) RETURNS void LANGUAGE sql AS
    'DECLARE found CURSOR FOR SELECT name FROM (VALUES (''ba''), (''bb''), (''bc''), (''c'')) AS v (name) WHERE name LIKE $1 LIMIT most';
BEGIN;
SELECT opens('b%', 2);
FETCH ALL FROM found;
ROLLBACK;
CREATE FUNCTION holds(a int) RETURNS int LANGUAGE sql AS 'DECLARE held CURSOR WITH HOLD FOR SELECT a, $1 + 1; SELECT 1';
SELECT holds(3);
FETCH ALL FROM held;
CLOSE held;
CREATE PROCEDURE holds_too(a int) LANGUAGE sql AS 'DECLARE held CURSOR WITH HOLD FOR SELECT a + 1';
CALL holds_too(3);
FETCH ALL FROM held;
CLOSE held;
CREATE FUNCTION explains(a int) RETURNS int LANGUAGE sql AS 'EXPLAIN (COSTS OFF) SELECT a; EXPLAIN (ANALYZE) SELECT $1; SELECT 1';
SELECT explains(1);
CREATE FUNCTION plus(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 + 1; END';
CREATE FUNCTION makes(a int, b text) RETURNS void LANGUAGE sql AS
    'CREATE TABLE made AS SELECT a, $2 AS b; CREATE TABLE made_too AS SELECT plus(a), upper(b); CREATE TABLE not_filled AS SELECT a WITH NO DATA';
SELECT makes(4, 'four');
TABLE made;
TABLE made_too;
TABLE not_filled;
DROP TABLE made, made_too, not_filled;
DROP FUNCTION opens, holds, explains, makes, plus;
DROP PROCEDURE holds_too;

-- None: the first that is named is told of, before anything else is found wrong behind it.
CREATE TABLE few (a int);
SELECT $1;
SELECT a, $2 FROM few WHERE nothing = 1;
SELECT $1::int + 'x'::nothing;
VALUES ($1);
INSERT INTO few VALUES ($1);
UPDATE few SET a = $1;
DELETE FROM few WHERE a = $1;
MERGE INTO few USING (VALUES (1)) AS v (x) ON a = $1 WHEN MATCHED THEN DELETE;
EXPLAIN SELECT $1;
COPY (SELECT $1) TO STDOUT;
CREATE TABLE other AS SELECT $1;
CREATE TABLE other (a int DEFAULT $1);
CREATE TABLE other (a int CHECK (a > $1));
CREATE TABLE other (a int GENERATED ALWAYS AS ($1) STORED);
CREATE VIEW other AS SELECT $1;
CREATE MATERIALIZED VIEW other AS SELECT $1;
ALTER TABLE few ADD CHECK (a = $1);
DO $$ BEGIN EXECUTE 'SELECT $1'; END $$;
DO $$ BEGIN EXECUTE 'SELECT $1' USING 1; END $$;
DO $$ BEGIN EXECUTE 'SELECT $2' USING 1; END $$;
DO $$ DECLARE r record; BEGIN FOR r IN EXECUTE 'SELECT $1' LOOP NULL; END LOOP; END $$;
-- The same text prepared has one.
PREPARE has_one AS SELECT $1;
EXECUTE has_one('x');
SELECT $1;
DEALLOCATE has_one;
PREPARE has_one(int) AS SELECT $1 + $2::int;
EXECUTE has_one(1, 2);
DEALLOCATE has_one;
DROP TABLE few;
