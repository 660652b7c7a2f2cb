-- Temporary tables, sequences, views: names, transactions, ON COMMIT, what may refer to what.
CREATE TABLE tt_perm (a int PRIMARY KEY, b text);
INSERT INTO tt_perm VALUES (1, 'perm');
CREATE TEMP TABLE tt (a int PRIMARY KEY, b text DEFAULT 'x', c serial);
INSERT INTO tt (a) VALUES (1), (2) RETURNING *;
INSERT INTO tt (a) VALUES (1);
UPDATE tt SET b = 'y' WHERE a = 2 RETURNING a, b;
DELETE FROM tt WHERE a = 1 RETURNING a;
INSERT INTO tt (a, b) VALUES (2, 'z') ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING *;
SELECT * FROM tt ORDER BY a;
SELECT * FROM pg_temp.tt;
CREATE TEMP TABLE tt (a int);
CREATE TEMP TABLE IF NOT EXISTS tt (a int);
CREATE LOCAL TEMPORARY TABLE tt_local (a int);
CREATE GLOBAL TEMPORARY TABLE tt_global (a int);
DROP TABLE tt_local, tt_global;

-- They hide permanent ones.
CREATE TEMP TABLE tt_perm (a int, note text);
INSERT INTO tt_perm VALUES (7, 'temporary');
SELECT * FROM tt_perm;
SELECT * FROM public.tt_perm;
SELECT t.note, p.b FROM tt_perm t, public.tt_perm p;
SELECT 'tt_perm'::regclass = 'pg_temp.tt_perm'::regclass AS hides, 'public.tt_perm'::regclass::text;
SET search_path = public, pg_temp;
SELECT * FROM tt_perm;
RESET search_path;
DROP TABLE tt_perm;
SELECT * FROM tt_perm;

-- Names.
CREATE TEMP TABLE public.tt_wrong (a int);
CREATE TEMP TABLE pg_temp.tt_named (a int);
CREATE TABLE pg_temp.tt_also (a int);
SELECT relname, relpersistence FROM pg_class WHERE relname IN ('tt_named', 'tt_also', 'tt', 'tt_pkey', 'tt_c_seq', 'tt_perm') ORDER BY relname;
SELECT table_name, table_type FROM information_schema.tables WHERE table_name LIKE 'tt%' ORDER BY 1;
SELECT nspname LIKE 'pg\_temp\_%' AS its_own FROM pg_namespace WHERE oid = pg_my_temp_schema();
SELECT pg_is_other_temp_schema(pg_my_temp_schema());
SELECT (current_schemas(true))[2], (current_schemas(true))[3];
SELECT current_schemas(false);
SELECT pg_table_is_visible('tt'::regclass);
DROP TABLE tt_named, tt_also;

-- Transactions.
BEGIN;
INSERT INTO tt (a) VALUES (10);
SAVEPOINT s;
UPDATE tt SET b = 'saved' WHERE a = 10;
INSERT INTO tt (a) VALUES (11);
CREATE TEMP TABLE tt_gone (a int);
INSERT INTO tt_gone VALUES (1);
ROLLBACK TO s;
SELECT a, b FROM tt ORDER BY a;
SELECT * FROM tt_gone;
ROLLBACK TO s;
INSERT INTO tt (a) VALUES (12);
COMMIT;
SELECT a, b FROM tt ORDER BY a;
BEGIN;
CREATE TEMP TABLE tt_gone (a int);
INSERT INTO tt (a) VALUES (13);
INSERT INTO tt_perm VALUES (2, 'both');
ROLLBACK;
SELECT * FROM tt_gone;
SELECT a FROM tt ORDER BY a;
BEGIN;
INSERT INTO tt (a) VALUES (14);
INSERT INTO tt_perm VALUES (2, 'both');
COMMIT;
SELECT a FROM tt ORDER BY a;
SELECT * FROM tt_perm ORDER BY a;
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE tt SET b = 'rr' WHERE a = 14;
SELECT b FROM tt WHERE a = 14;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE tt SET b = b || 's' WHERE a = 14 RETURNING b;
COMMIT;
SELECT b FROM tt WHERE a = 14;

-- Read-only transactions may write them.
BEGIN READ ONLY;
INSERT INTO tt (a) VALUES (20) RETURNING a, c > 0 AS numbered;
UPDATE tt SET b = 'ro' WHERE a = 20;
SELECT a FROM tt WHERE a = 20 FOR UPDATE;
COPY tt (a) FROM stdin;
21
\.
INSERT INTO tt_perm VALUES (3, 'no');
ROLLBACK;
BEGIN READ ONLY;
INSERT INTO tt (a) VALUES (22);
COMMIT;
BEGIN READ ONLY;
CREATE TEMP TABLE tt_ro (a int);
ROLLBACK;
SELECT a FROM tt WHERE a >= 20;

-- ON COMMIT.
CREATE TEMP TABLE tt_delete (a int PRIMARY KEY) ON COMMIT DELETE ROWS;
INSERT INTO tt_delete VALUES (1);
SELECT count(*) FROM tt_delete;
BEGIN;
INSERT INTO tt_delete VALUES (1), (2);
SELECT count(*) FROM tt_delete;
COMMIT;
SELECT count(*) FROM tt_delete;
BEGIN;
INSERT INTO tt_delete VALUES (1), (2);
SELECT a FROM tt_delete WHERE a = 2;
COMMIT;
SELECT a FROM tt_delete WHERE a = 2;
BEGIN;
CREATE TEMP TABLE tt_drop (a int) ON COMMIT DROP;
INSERT INTO tt_drop VALUES (1);
SELECT * FROM tt_drop;
COMMIT;
SELECT * FROM tt_drop;
CREATE TEMP TABLE tt_keep (a int) ON COMMIT PRESERVE ROWS;
INSERT INTO tt_keep VALUES (1);
SELECT * FROM tt_keep;
CREATE TABLE tt_not (a int) ON COMMIT DROP;
CREATE TEMP TABLE tt_as ON COMMIT DELETE ROWS AS SELECT 1 AS a;
SELECT * FROM tt_as;
BEGIN;
CREATE TEMP TABLE tt_as2 ON COMMIT DROP AS SELECT 1 AS a;
SELECT * FROM tt_as2;
COMMIT;
SELECT * FROM tt_as2;

-- AS and INTO.
CREATE TEMP TABLE tt_made AS SELECT a, b FROM tt_perm;
SELECT * FROM tt_made ORDER BY a;
SELECT a, upper(b) AS u INTO TEMP tt_into FROM tt_perm WHERE a < 2;
SELECT * FROM tt_into;
SELECT a INTO TEMPORARY TABLE tt_into2 FROM tt_perm;
SELECT a INTO tt_into3 FROM tt_perm ORDER BY a;
SELECT relname, relpersistence FROM pg_class WHERE relname LIKE 'tt\_into%' ORDER BY 1;
DROP TABLE tt_into, tt_into2, tt_into3;

-- Sequences and views.
CREATE TEMP SEQUENCE tt_seq START 5;
SELECT nextval('tt_seq'), nextval('tt_seq'), currval('tt_seq');
SELECT setval('tt_seq', 100), nextval('tt_seq');
ALTER SEQUENCE tt_seq RESTART WITH 3;
SELECT nextval('tt_seq');
DROP SEQUENCE tt_seq;
CREATE VIEW tt_view AS SELECT a FROM tt_made;
CREATE TEMP VIEW tt_view2 AS SELECT b FROM tt_perm;
SELECT * FROM tt_view ORDER BY a;
SELECT * FROM tt_view2 ORDER BY b;
SELECT relname, relkind, relpersistence FROM pg_class WHERE relname LIKE 'tt\_view%' ORDER BY 1;
CREATE MATERIALIZED VIEW tt_mat AS SELECT a FROM tt_made;
DROP TABLE tt_made;
DROP TABLE tt_made CASCADE;
DROP VIEW tt_view2;

-- Foreign keys.
CREATE TABLE tt_fk (a int REFERENCES tt);
CREATE TEMP TABLE tt_fk (a int REFERENCES tt_perm);
CREATE TEMP TABLE tt_fk (a int REFERENCES tt ON DELETE CASCADE);
INSERT INTO tt_fk VALUES (2);
INSERT INTO tt_fk VALUES (99);
DELETE FROM tt WHERE a = 2;
SELECT * FROM tt_fk;
TRUNCATE tt;
TRUNCATE tt, tt_fk;
SELECT count(*) FROM tt;
DROP TABLE tt_fk;

-- ALTER, indexes, comments.
ALTER TABLE tt ADD COLUMN d int DEFAULT 4;
CREATE INDEX tt_d ON tt (d);
CREATE UNIQUE INDEX tt_b ON tt (lower(b)) WHERE a > 5;
INSERT INTO tt (a, b) VALUES (6, 'One'), (1, 'one');
INSERT INTO tt (a, b) VALUES (7, 'ONE');
ALTER TABLE tt RENAME TO tt_other;
ALTER TABLE tt_other RENAME COLUMN d TO e;
COMMENT ON TABLE tt_other IS 'mine';
SELECT obj_description('tt_other'::regclass);
SELECT a, e FROM tt_other ORDER BY a;
ALTER TABLE tt_other DROP COLUMN c;
ALTER TABLE tt_other ALTER COLUMN a TYPE bigint;
SELECT * FROM tt_other ORDER BY a;
PREPARE tt_p AS SELECT b FROM tt_other WHERE a = $1;
EXECUTE tt_p(6);
ALTER TABLE tt_other ADD COLUMN f int;
EXECUTE tt_p(1);
DEALLOCATE tt_p;
DECLARE tt_c CURSOR WITH HOLD FOR SELECT a FROM tt_other ORDER BY a;
FETCH ALL FROM tt_c;
CLOSE tt_c;

-- DISCARD.
CREATE TEMP TABLE tt_gone (a int);
DISCARD TEMP;
SELECT * FROM tt_gone;
SELECT * FROM tt_other;
CREATE TEMP TABLE tt_gone (a int);
DISCARD ALL;
SELECT * FROM tt_gone;
SELECT count(*) FROM pg_class WHERE relpersistence = 't';
DROP TABLE tt_perm;

-- What lasts owns nothing that does not.
CREATE TABLE lasting (a int);
CREATE TEMP SEQUENCE passing OWNED BY lasting.a;
CREATE TEMP SEQUENCE passing;
ALTER SEQUENCE passing OWNED BY lasting.a;
DROP SEQUENCE passing;
DROP TABLE lasting;

-- A table is emptied at COMMIT, and what references it is not.
CREATE TEMP TABLE tt_parent (a int PRIMARY KEY) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE tt_child (a int REFERENCES tt_parent);
CREATE TEMP TABLE tt_child (a int REFERENCES tt_parent) ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO tt_parent VALUES (1);
INSERT INTO tt_child VALUES (1);
COMMIT;
SELECT (SELECT count(*) FROM tt_parent), (SELECT count(*) FROM tt_child);
BEGIN;
CREATE TEMP TABLE tt_keeps (a int);
INSERT INTO tt_keeps VALUES (1);
ALTER TABLE tt_keeps ADD FOREIGN KEY (a) REFERENCES tt_parent;
INSERT INTO tt_parent VALUES (1);
ALTER TABLE tt_keeps ADD FOREIGN KEY (a) REFERENCES tt_parent;
COMMIT;
DROP TABLE tt_child, tt_parent;
DROP SCHEMA pg_temp;
CREATE TYPE tt_mood AS ENUM ('fine');
CREATE TEMP TABLE tt_moods (a tt_mood, b tt_mood[]);
DROP TYPE tt_mood;
DROP TYPE tt_mood CASCADE;
SELECT count(*) FROM pg_attribute WHERE attrelid = 'tt_moods'::regclass AND attnum > 0 AND NOT attisdropped;
DROP TABLE tt_moods;
