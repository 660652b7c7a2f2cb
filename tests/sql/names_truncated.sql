-- Names longer than 63 bytes are cut, with a notice each.
CREATE TABLE trunc_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg (a int, "Ccccccccccbbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggähh" int);
INSERT INTO trunc_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffg VALUES (1, 2);
SELECT TRUNC_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgXYZ.a AS "Rrrrrrrrrrbbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggghhhh" FROM trunc_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgq;
UPDATE trunc_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffg t SET "Ccccccccccbbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggä" = 3;
SELECT xxxxxxxxxxxaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg FROM trunc_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffg;
WITH www_aaaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggghhh (n) AS (VALUES (1)) SELECT n FROM www_aaaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg;
CREATE VIEW trunc_view AS SELECT v.a AS vvv_aaaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggh FROM trunc_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffg v;
SELECT pg_get_viewdef('trunc_view');
SELECT * FROM trunc_view;
PREPARE prepared_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg AS SELECT 1;
EXECUTE prepared_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff;
EXECUTE prepared_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggh;
DROP TABLE IF EXISTS nosuch_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggh;
SET client_min_messages = warning;
SELECT 1 AS rrrr_aaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggghhhh;
RESET client_min_messages;
DROP VIEW trunc_view;
DROP TABLE trunc_aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffg;
-- Each time that a text is read, whatever is known of it.
CREATE TABLE trunc_key (id int PRIMARY KEY, a int);
INSERT INTO trunc_key VALUES (1, 10), (2, 20);
SELECT a AS rrrr_aaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggghhhh FROM trunc_key WHERE id = 1;
SELECT a AS rrrr_aaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggghhhh FROM trunc_key WHERE id = 2;
SELECT a AS rrrr_aaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggghhhh FROM trunc_key WHERE id = 1;
SELECT a AS rrrr_aaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggghhhh FROM trunc_key WHERE id = 2;
SET client_min_messages = warning;
DO $$
DECLARE
  vvvv_aaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggghhhh int := 3;
BEGIN
  vvvv_aaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggh := vvvv_aaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeefffffffff + 1;
  ASSERT (SELECT vvvv_aaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff) = 4;
END $$;
RESET client_min_messages;
DROP TABLE trunc_key;
