-- Foreign keys: making them, what they refuse, what they do, what depends on them.
\set VERBOSITY verbose
CREATE TABLE fk_p (id int PRIMARY KEY, code text UNIQUE, v int);
CREATE TABLE fk_c (id int PRIMARY KEY, p int REFERENCES fk_p, code text CONSTRAINT by_code REFERENCES fk_p (code));
INSERT INTO fk_p VALUES (1, 'one', 10), (2, 'two', 20), (3, NULL, 30);
INSERT INTO fk_c VALUES (1, 1, 'two'), (2, NULL, NULL), (3, 2, NULL);
INSERT INTO fk_c VALUES (4, 4, NULL);
INSERT INTO fk_c VALUES (4, 1, 'three');
INSERT INTO fk_c SELECT i, i, NULL FROM generate_series(1, 9) i ON CONFLICT DO NOTHING;
COPY fk_c FROM stdin;
20	1	\N
21	99	\N
\.
COPY fk_c FROM stdin;
22	1	one
\.
DELETE FROM fk_c WHERE id > 20;
PREPARE fk_add(int, int) AS INSERT INTO fk_c VALUES ($1, $2, NULL);
EXECUTE fk_add(30, 2);
EXECUTE fk_add(31, 77);
DELETE FROM fk_c WHERE id = 30;
DEALLOCATE fk_add;
BEGIN;
SAVEPOINT a;
INSERT INTO fk_c VALUES (40, 40, NULL);
ROLLBACK TO a;
INSERT INTO fk_c VALUES (41, 1, NULL);
COMMIT;
DELETE FROM fk_c WHERE id = 41;
UPDATE fk_c SET p = 9 WHERE id = 1;
UPDATE fk_c SET p = 3 WHERE id = 1;
UPDATE fk_c SET p = NULL, code = NULL WHERE id = 3;
INSERT INTO fk_c VALUES (1, 9, NULL) ON CONFLICT (id) DO UPDATE SET p = excluded.p;
INSERT INTO fk_c VALUES (1, 9, NULL) ON CONFLICT (id) DO UPDATE SET p = 1 RETURNING *;
DELETE FROM fk_p WHERE id = 1;
DELETE FROM fk_p WHERE id = 3;
UPDATE fk_p SET id = 9 WHERE id = 1;
UPDATE fk_p SET code = 'deux' WHERE id = 2;
UPDATE fk_p SET v = v + 1, id = id RETURNING *;
DELETE FROM fk_p WHERE id = 2;
SELECT * FROM fk_c ORDER BY id;
-- What is consistent at the end of the statement passes.
CREATE TABLE fk_self (id int PRIMARY KEY, parent int REFERENCES fk_self);
INSERT INTO fk_self VALUES (1, 2), (2, 1), (3, 3), (4, NULL);
INSERT INTO fk_self VALUES (5, 6);
UPDATE fk_self SET id = 3 - id, parent = 3 - parent WHERE id < 3;
UPDATE fk_self SET id = id + 10, parent = parent + 10;
UPDATE fk_self SET id = id + 10;
DELETE FROM fk_self WHERE id = 11;
DELETE FROM fk_self WHERE id < 13;
DELETE FROM fk_self;
SELECT count(*) FROM fk_self;
-- Composite keys: MATCH SIMPLE and FULL.
CREATE TABLE fk_pp (a int, b text, c int, PRIMARY KEY (b, a));
INSERT INTO fk_pp VALUES (1, 'x', 0), (2, 'y', 0);
CREATE TABLE fk_cc (n int, a int, b text, FOREIGN KEY (a, b) REFERENCES fk_pp (a, b), FOREIGN KEY (b, a) REFERENCES fk_pp MATCH FULL);
\d fk_cc
INSERT INTO fk_cc VALUES (1, 1, 'x'), (2, NULL, NULL);
INSERT INTO fk_cc VALUES (3, 1, NULL);
INSERT INTO fk_cc VALUES (3, 1, 'y');
ALTER TABLE fk_cc DROP CONSTRAINT fk_cc_b_a_fkey;
INSERT INTO fk_cc VALUES (3, 7, NULL);
INSERT INTO fk_cc VALUES (4, 2, 'x');
DELETE FROM fk_pp WHERE a = 1;
DELETE FROM fk_pp WHERE a = 2;
DROP TABLE fk_cc, fk_pp;
-- Actions.
CREATE TABLE fk_a (id int PRIMARY KEY);
CREATE TABLE fk_cascade (n int PRIMARY KEY, p int REFERENCES fk_a ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE fk_deep (n int, p int REFERENCES fk_cascade ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE fk_null (n int, p int REFERENCES fk_a ON DELETE SET NULL ON UPDATE SET NULL);
CREATE TABLE fk_default (n int, p int DEFAULT 0 REFERENCES fk_a ON DELETE SET DEFAULT ON UPDATE SET DEFAULT);
CREATE TABLE fk_restrict (n int, p int REFERENCES fk_a ON DELETE RESTRICT ON UPDATE RESTRICT);
INSERT INTO fk_a SELECT generate_series(0, 6);
INSERT INTO fk_cascade VALUES (10, 1), (20, 2), (30, 3);
INSERT INTO fk_deep VALUES (1, 10), (2, 20), (3, 30), (4, 10);
INSERT INTO fk_null VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO fk_default VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO fk_restrict VALUES (6, 6);
DELETE FROM fk_a WHERE id = 1;
UPDATE fk_a SET id = 22 WHERE id = 2;
UPDATE fk_cascade SET n = n + 1;
SELECT * FROM fk_cascade ORDER BY n;
SELECT * FROM fk_deep ORDER BY n;
SELECT * FROM fk_null ORDER BY n;
SELECT * FROM fk_default ORDER BY n;
DELETE FROM fk_a WHERE id = 6;
UPDATE fk_a SET id = 66 WHERE id = 6;
-- The default must be there too.
DELETE FROM fk_default WHERE n < 3;
DELETE FROM fk_a WHERE id = 0;
DELETE FROM fk_a WHERE id = 3;
UPDATE fk_a SET id = 33 WHERE id = 3;
SELECT * FROM fk_a ORDER BY id;
-- Errors inside an action say where they come from.
ALTER TABLE fk_null ALTER p SET NOT NULL;
DELETE FROM fk_null WHERE p IS NULL;
ALTER TABLE fk_null ALTER p SET NOT NULL;
DELETE FROM fk_default;
DELETE FROM fk_a WHERE id = 3;
ALTER TABLE fk_null ALTER p DROP NOT NULL;
ALTER TABLE fk_cascade ADD CONSTRAINT small CHECK (p < 100);
UPDATE fk_a SET id = 333 WHERE id = 3;
SELECT * FROM fk_cascade ORDER BY n;
DROP TABLE fk_deep, fk_cascade, fk_null, fk_default, fk_restrict, fk_a;
-- SET NULL of some columns.
CREATE TABLE fk_t (tenant int, id int, PRIMARY KEY (tenant, id));
CREATE TABLE fk_u (tenant int NOT NULL, id int, ref int DEFAULT 7, FOREIGN KEY (tenant, ref) REFERENCES fk_t ON DELETE SET NULL (ref));
CREATE TABLE fk_w (tenant int NOT NULL, id int, ref int DEFAULT 7, FOREIGN KEY (tenant, ref) REFERENCES fk_t ON DELETE SET DEFAULT (ref) ON UPDATE CASCADE);
INSERT INTO fk_t VALUES (1, 1), (1, 2), (1, 7), (2, 1);
INSERT INTO fk_u VALUES (1, 1, 1), (1, 2, 2);
INSERT INTO fk_w VALUES (1, 1, 1), (2, 1, 1);
DELETE FROM fk_t WHERE id = 1 AND tenant = 1;
UPDATE fk_t SET tenant = 3 WHERE id = 7;
SELECT * FROM fk_u ORDER BY id;
SELECT * FROM fk_w ORDER BY tenant;
\d fk_u
DROP TABLE fk_u, fk_w, fk_t;
-- Cycles and diamonds.
CREATE TABLE fk_tree (id int PRIMARY KEY, up int REFERENCES fk_tree ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO fk_tree VALUES (1, NULL), (2, 1), (3, 1), (4, 2), (5, 4), (6, 6), (7, NULL);
UPDATE fk_tree SET id = 10 WHERE id = 1;
UPDATE fk_tree SET id = 60 WHERE id = 6;
SELECT * FROM fk_tree ORDER BY id;
DELETE FROM fk_tree WHERE id = 10;
SELECT * FROM fk_tree ORDER BY id;
CREATE TABLE fk_top (id int PRIMARY KEY);
CREATE TABLE fk_left (id int PRIMARY KEY REFERENCES fk_top ON UPDATE CASCADE ON DELETE CASCADE);
CREATE TABLE fk_right (id int PRIMARY KEY REFERENCES fk_top ON UPDATE CASCADE ON DELETE CASCADE);
CREATE TABLE fk_bottom (l int REFERENCES fk_left ON UPDATE CASCADE ON DELETE CASCADE, r int REFERENCES fk_right ON UPDATE CASCADE ON DELETE CASCADE);
INSERT INTO fk_top VALUES (1), (2);
INSERT INTO fk_left VALUES (1), (2);
INSERT INTO fk_right VALUES (1), (2);
INSERT INTO fk_bottom VALUES (1, 1), (1, 2), (2, 2);
UPDATE fk_top SET id = id + 2;
SELECT * FROM fk_bottom ORDER BY l, r;
DELETE FROM fk_top WHERE id = 3;
SELECT * FROM fk_bottom ORDER BY l, r;
DROP TABLE fk_top, fk_left, fk_right, fk_bottom, fk_tree;
-- Types that differ.
CREATE TABLE fk_wide (id bigint PRIMARY KEY, s varchar(3) UNIQUE, n numeric UNIQUE);
CREATE TABLE fk_narrow (i smallint REFERENCES fk_wide ON UPDATE CASCADE, s text REFERENCES fk_wide (s) ON UPDATE CASCADE, n int REFERENCES fk_wide (n) ON DELETE SET NULL);
CREATE INDEX ON fk_narrow (n);
INSERT INTO fk_wide VALUES (1, 'a', 1.0), (100000, 'b', 2.5), (3, 'c', 3.00);
INSERT INTO fk_narrow VALUES (1, 'a', 1), (3, 'b', 3);
INSERT INTO fk_narrow VALUES (2, NULL, NULL);
INSERT INTO fk_narrow VALUES (NULL, 'z', NULL);
INSERT INTO fk_narrow VALUES (NULL, NULL, 2);
UPDATE fk_wide SET id = 5 WHERE id = 1;
UPDATE fk_wide SET id = 100001 WHERE id = 5;
UPDATE fk_wide SET n = 1.00 WHERE id = 5;
UPDATE fk_wide SET n = 1.5 WHERE id = 5;
DELETE FROM fk_wide WHERE id = 100000;
UPDATE fk_narrow SET s = NULL, i = NULL;
DELETE FROM fk_wide WHERE id IN (3, 100000);
SELECT * FROM fk_narrow ORDER BY n;
CREATE TABLE fk_bad (t text REFERENCES fk_wide);
CREATE TABLE fk_bad (a int REFERENCES fk_wide (n, id));
DROP TABLE fk_narrow, fk_wide;
-- Added later: rows are looked at, unless NOT VALID.
CREATE TABLE fk_late (n int, p int);
INSERT INTO fk_late VALUES (1, 1), (2, 77);
ALTER TABLE fk_late ADD FOREIGN KEY (p) REFERENCES fk_p;
ALTER TABLE fk_late ADD CONSTRAINT later FOREIGN KEY (p) REFERENCES fk_p NOT VALID;
\d fk_late
INSERT INTO fk_late VALUES (3, 78);
ALTER TABLE fk_late VALIDATE CONSTRAINT later;
DELETE FROM fk_late WHERE p = 77;
ALTER TABLE fk_late VALIDATE CONSTRAINT later;
ALTER TABLE fk_late VALIDATE CONSTRAINT nope;
ALTER TABLE fk_p ADD CHECK (v > 10) NOT VALID;
ALTER TABLE fk_p ADD CONSTRAINT big CHECK (v > 50) NOT VALID;
UPDATE fk_p SET v = 5 WHERE id = 1;
ALTER TABLE fk_p VALIDATE CONSTRAINT fk_p_v_check;
ALTER TABLE fk_p VALIDATE CONSTRAINT big;
ALTER TABLE fk_p VALIDATE CONSTRAINT fk_p_pkey;
ALTER TABLE fk_p DROP CONSTRAINT big;
ALTER TABLE fk_late ADD COLUMN q int DEFAULT 1 REFERENCES fk_p;
ALTER TABLE fk_late ADD COLUMN r int DEFAULT 99 REFERENCES fk_p;
\d fk_late
\d fk_p
SELECT conname, contype, condeferrable, condeferred, convalidated, conrelid::regclass, conindid::regclass, confrelid::regclass, confupdtype, confdeltype, confmatchtype, conkey, confkey, pg_get_constraintdef(oid) FROM pg_constraint WHERE confrelid = 'fk_p'::regclass ORDER BY conname;
SELECT constraint_name, unique_constraint_name, match_option, update_rule, delete_rule FROM information_schema.referential_constraints WHERE constraint_name LIKE 'fk\_%' ORDER BY 1;
SELECT constraint_name, table_name, column_name, ordinal_position, position_in_unique_constraint FROM information_schema.key_column_usage WHERE table_name LIKE 'fk\_%' ORDER BY 1, 4;
SELECT constraint_name, table_name, column_name FROM information_schema.constraint_column_usage WHERE table_name = 'fk_p' ORDER BY 1, 3;
-- Renaming changes nothing.
ALTER TABLE fk_p RENAME TO fk_parent;
ALTER TABLE fk_parent RENAME id TO key;
ALTER TABLE fk_late RENAME CONSTRAINT later TO sooner;
INSERT INTO fk_late VALUES (5, 55);
ALTER TABLE fk_parent RENAME key TO id;
ALTER TABLE fk_parent RENAME TO fk_p;
-- What depends on what.
DROP TABLE fk_p;
ALTER TABLE fk_p DROP COLUMN code;
ALTER TABLE fk_p DROP CONSTRAINT fk_p_code_key;
ALTER TABLE fk_p DROP CONSTRAINT fk_p_code_key CASCADE;
CREATE UNIQUE INDEX fk_p_v ON fk_p (v);
CREATE TABLE fk_by_index (v int REFERENCES fk_p (v));
DROP INDEX fk_p_v;
DROP INDEX fk_p_v CASCADE;
TRUNCATE fk_p;
TRUNCATE fk_p, fk_c;
ALTER TABLE fk_late DROP COLUMN q;
BEGIN;
TRUNCATE fk_p CASCADE;
SELECT count(*) FROM fk_late;
ROLLBACK;
SELECT count(*) FROM fk_late;
CREATE SCHEMA fk_s;
CREATE TABLE fk_s.p (id int PRIMARY KEY);
CREATE TABLE fk_outside (id int REFERENCES fk_s.p);
DROP SCHEMA fk_s;
DROP SCHEMA fk_s CASCADE;
\d fk_outside
DROP TABLE fk_p CASCADE;
\d fk_late
DROP TABLE fk_c, fk_late, fk_self, fk_outside, fk_by_index;
-- What is refused.
CREATE TABLE fk_r (id int PRIMARY KEY, a int, b int, UNIQUE (a, b));
CREATE TABLE fk_x (a int REFERENCES fk_nope);
CREATE TABLE fk_x (a int REFERENCES fk_r (nope));
CREATE TABLE fk_x (a int REFERENCES fk_r (a));
CREATE TABLE fk_x (a int, FOREIGN KEY (nope) REFERENCES fk_r);
CREATE TABLE fk_x (a int, b int, FOREIGN KEY (a, b) REFERENCES fk_r);
CREATE TABLE fk_x (a int, b int, FOREIGN KEY (a, b) REFERENCES fk_r (a, a));
CREATE TABLE fk_x (a int REFERENCES fk_r MATCH PARTIAL);
CREATE TABLE fk_x (a int, b int, FOREIGN KEY (a) REFERENCES fk_r ON DELETE SET NULL (b));
CREATE TABLE fk_x (a int REFERENCES fk_r ON UPDATE SET NULL (a));
CREATE TABLE fk_x (a text REFERENCES fk_r);
CREATE TABLE fk_x (a int REFERENCES pg_class);
CREATE TABLE fk_x (a int CONSTRAINT twice REFERENCES fk_r, b int CONSTRAINT twice REFERENCES fk_r);
CREATE TABLE fk_nokey (a int);
CREATE TABLE fk_x (a int REFERENCES fk_nokey);
CREATE TABLE fk_x (a int REFERENCES fk_r, b int REFERENCES fk_r, FOREIGN KEY (b, a) REFERENCES fk_r (b, a));
ALTER TABLE fk_x ADD FOREIGN KEY (a) REFERENCES fk_r;
ALTER TABLE fk_x ALTER a TYPE text;
ALTER TABLE fk_r ALTER id TYPE bigint;
INSERT INTO fk_x VALUES (1, NULL);
\d fk_x
DROP TABLE fk_x, fk_r, fk_nokey;
-- A row that has its default already still references what goes away.
CREATE TABLE fk_d (id int PRIMARY KEY);
CREATE TABLE fk_e (n int, d int DEFAULT 0 REFERENCES fk_d ON DELETE SET DEFAULT ON UPDATE SET DEFAULT);
INSERT INTO fk_d VALUES (0), (1);
INSERT INTO fk_e VALUES (1, 0), (2, 1);
DELETE FROM fk_d WHERE id = 0;
UPDATE fk_d SET id = 9 WHERE id = 0;
DELETE FROM fk_d WHERE id = 1;
SELECT * FROM fk_e ORDER BY n;
DROP TABLE fk_e, fk_d;
-- A new key that compares equal to the old one.
CREATE TABLE fk_d (id numeric PRIMARY KEY);
CREATE TABLE fk_e (d numeric REFERENCES fk_d ON UPDATE CASCADE);
INSERT INTO fk_d VALUES (1.0);
INSERT INTO fk_e VALUES (1.0);
UPDATE fk_d SET id = 1.00;
SELECT * FROM fk_e;
DROP TABLE fk_e, fk_d;
