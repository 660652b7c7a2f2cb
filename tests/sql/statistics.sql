-- ANALYZE, and what it tells.
CREATE TABLE sta_a (id int PRIMARY KEY, k int, t text, n numeric, empty text, doc json);
INSERT INTO sta_a SELECT i, CASE WHEN i % 10 <> 0 THEN i % 4 END, 'v' || i % 3, i / 2.0, NULL, '{}' FROM generate_series(1, 1000) i;
SELECT reltuples FROM pg_class WHERE relname = 'sta_a';
SELECT count(*) FROM pg_stats WHERE tablename = 'sta_a';
ANALYZE sta_a;
SELECT reltuples, relpages > 0 AS pages FROM pg_class WHERE relname IN ('sta_a', 'sta_a_pkey') ORDER BY relname;
SELECT attname, inherited, null_frac, n_distinct, most_common_vals, most_common_freqs, histogram_bounds IS NULL AS whole
FROM pg_stats WHERE tablename = 'sta_a' ORDER BY attname;
SELECT avg_width FROM pg_stats WHERE tablename = 'sta_a' AND attname IN ('id', 'k', 't') ORDER BY attname;
SELECT histogram_bounds FROM pg_stats WHERE tablename = 'sta_a' AND attname = 'id';
SELECT attname, correlation FROM pg_stats WHERE tablename = 'sta_a' AND attname IN ('id', 'n') ORDER BY attname;
SELECT staattnum, stakind1, stakind2, stakind3, stakind4, staop1, staop2, stacoll1, stanumbers1
FROM pg_statistic WHERE starelid = 'sta_a'::regclass AND staattnum IN (1, 2, 3, 5, 6) ORDER BY staattnum;
-- Some columns only; the others' stay.
UPDATE sta_a SET k = 7, t = 'new';
ANALYZE sta_a (t);
SELECT attname, most_common_vals FROM pg_stats WHERE tablename = 'sta_a' AND attname IN ('k', 't') ORDER BY attname;
VACUUM ANALYZE sta_a (k);
SELECT attname, most_common_vals FROM pg_stats WHERE tablename = 'sta_a' AND attname IN ('k', 't') ORDER BY attname;
-- What is said wrong.
ANALYZE sta_a (nothing);
ANALYZE sta_a (k, k);
ANALYZE sta_nothing;
ANALYZE (nonsense) sta_a;
VACUUM sta_a (k);
BEGIN;
VACUUM sta_a;
ROLLBACK;
CREATE VIEW sta_v AS SELECT * FROM sta_a;
ANALYZE sta_v;
ANALYZE (VERBOSE false, SKIP_LOCKED) sta_a;
VACUUM (FULL, ANALYZE) sta_a;
VACUUM (FREEZE, PARALLEL 0, INDEX_CLEANUP auto) sta_a;
-- In a transaction, and undone.
CREATE TABLE sta_b (a int);
INSERT INTO sta_b VALUES (1), (1), (2);
BEGIN;
ANALYZE sta_b;
SELECT n_distinct, most_common_vals FROM pg_stats WHERE tablename = 'sta_b';
ROLLBACK;
SELECT count(*) FROM pg_stats WHERE tablename = 'sta_b';
-- A column of another type is unknown again, one that is dropped is gone.
ANALYZE sta_b;
ALTER TABLE sta_b ALTER a TYPE text;
SELECT count(*) FROM pg_stats WHERE tablename = 'sta_b';
ANALYZE sta_b;
SELECT most_common_vals FROM pg_stats WHERE tablename = 'sta_b';
ALTER TABLE sta_b DROP a;
SELECT count(*) FROM pg_stats WHERE tablename = 'sta_b';
-- Values of other types.
CREATE TYPE sta_mood AS ENUM ('sad', 'ok');
CREATE TABLE sta_c (m sta_mood, a int[], d date, b boolean, u text);
INSERT INTO sta_c SELECT 'ok', ARRAY[1, 2], '2020-01-01', i % 2 = 0, 'a b' FROM generate_series(1, 10) i;
ANALYZE sta_c;
SELECT attname, n_distinct, most_common_vals, most_common_freqs FROM pg_stats WHERE tablename = 'sta_c' ORDER BY attname;
-- Only what may be read is seen.
CREATE ROLE sta_reader;
GRANT SELECT (t) ON sta_a TO sta_reader;
SET ROLE sta_reader;
SELECT attname FROM pg_stats WHERE tablename = 'sta_a' ORDER BY attname;
SELECT count(*) FROM pg_statistic;
ANALYZE sta_a;
RESET ROLE;
-- TRUNCATE makes the number of rows unknown.
TRUNCATE sta_a;
SELECT reltuples FROM pg_class WHERE relname = 'sta_a';
DROP TABLE sta_a CASCADE;
SELECT count(*) FROM pg_stats WHERE tablename = 'sta_a';
DROP TABLE sta_b, sta_c;
DROP TYPE sta_mood;
DROP ROLE sta_reader;
