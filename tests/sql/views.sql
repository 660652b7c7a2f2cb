-- Views: what they show, what they follow, what depends on them.
\set VERBOSITY verbose
CREATE TABLE v_t (id int PRIMARY KEY, a int, b text, "Odd name" numeric(8,2) DEFAULT 1.5);
INSERT INTO v_t VALUES (1, 10, 'x', 1.25), (2, 20, 'y', 2.5), (3, NULL, NULL, NULL), (4, 10, 'z', 0);
CREATE TABLE v_u (id int PRIMARY KEY, t int, c varchar(5));
INSERT INTO v_u VALUES (1, 1, 'one'), (2, 1, 'uno'), (3, 2, 'two'), (4, 9, 'none');
-- Plain ones.
CREATE VIEW v_all AS SELECT * FROM v_t;
TABLE v_all;
SELECT a, count(*) FROM v_all GROUP BY a ORDER BY a NULLS LAST;
CREATE VIEW v_some (k, twice) AS SELECT id, a * 2 FROM v_t WHERE a IS NOT NULL;
SELECT * FROM v_some ORDER BY k;
SELECT k FROM v_some WHERE twice > 20;
SELECT s.twice, u.c FROM v_some s JOIN v_u u ON u.t = s.k ORDER BY u.id;
SELECT u.id, s.twice FROM v_u u LEFT JOIN v_some s ON u.t = s.k ORDER BY u.id;
SELECT u.id, s.k FROM v_some s RIGHT JOIN v_u u ON u.t = s.k ORDER BY u.id;
SELECT (SELECT max(twice) FROM v_some WHERE k <= t.id) AS m FROM v_t t ORDER BY id;
WITH w AS (SELECT * FROM v_some) SELECT sum(twice) FROM w;
SELECT * FROM v_t WHERE id IN (SELECT k FROM v_some WHERE twice = 20) ORDER BY id;
SELECT v_some.k, v_t.b FROM v_some, v_t WHERE v_some.k = v_t.id ORDER BY 1;
SELECT public.v_some.k FROM public.v_some ORDER BY 1;
SELECT x, y FROM v_some AS z (x, y) ORDER BY x;
SELECT x FROM v_some AS z (x, y, w);
SELECT v_some.k FROM v_some AS z;
SELECT nothing FROM v_some;
SELECT k FROM v_some GROUP BY twice;
SELECT b FROM v_all GROUP BY id;
-- Views of other shapes.
CREATE VIEW v_sum AS SELECT b, sum(a) AS total FROM v_t GROUP BY b HAVING sum(a) > 5;
SELECT * FROM v_sum WHERE total < 20 ORDER BY b;
CREATE VIEW v_top AS SELECT id, a FROM v_t ORDER BY a DESC NULLS LAST, id LIMIT 2;
SELECT * FROM v_top;
SELECT * FROM v_top WHERE id > 1;
CREATE VIEW v_distinct AS SELECT DISTINCT a FROM v_t;
SELECT count(*) FROM v_distinct;
CREATE VIEW v_union AS SELECT id FROM v_t UNION ALL SELECT id FROM v_u;
SELECT count(*), sum(id) FROM v_union;
CREATE VIEW v_values (n, word) AS VALUES (1, 'one'), (2, 'two');
SELECT * FROM v_values ORDER BY n DESC;
CREATE VIEW v_with AS WITH w AS (SELECT id, a FROM v_t WHERE a > 5) SELECT w.id, u.c FROM w JOIN v_u u ON u.t = w.id;
SELECT * FROM v_with ORDER BY id, c;
CREATE RECURSIVE VIEW v_count (n) AS VALUES (1) UNION ALL SELECT n + 1 FROM v_count WHERE n < 5;
SELECT sum(n) FROM v_count;
CREATE VIEW v_const AS SELECT 1 AS one, 'text' AS word, NULL AS nothing;
SELECT * FROM v_const;
CREATE VIEW v_natural AS SELECT * FROM v_t NATURAL JOIN v_u;
SELECT * FROM v_natural ORDER BY id;
CREATE VIEW v_using AS SELECT id, v_t.a, v_u.c FROM v_t FULL JOIN v_u USING (id);
SELECT * FROM v_using ORDER BY id;
CREATE VIEW v_corr AS SELECT id, (SELECT count(*) FROM v_u WHERE v_u.t = v_t.id) AS n FROM v_t WHERE EXISTS (SELECT 1 FROM v_u WHERE t = v_t.id);
SELECT * FROM v_corr ORDER BY id;
SELECT c.n, u.c FROM v_u u LEFT JOIN v_corr c ON c.id = u.t ORDER BY u.id;
-- Views on views.
CREATE VIEW v_on AS SELECT k + 1 AS k1, twice FROM v_some WHERE twice >= 20;
CREATE VIEW v_onon AS SELECT o.k1, s.total FROM v_on o CROSS JOIN v_sum s;
SELECT * FROM v_onon ORDER BY k1, total;
-- Errors of making one.
CREATE VIEW v_all AS SELECT 1;
CREATE VIEW v_e AS SELECT id, id FROM v_t;
CREATE VIEW v_e (a, b) AS SELECT id FROM v_t;
CREATE VIEW v_e AS SELECT nope FROM v_t;
CREATE VIEW v_e AS SELECT * FROM v_nope;
CREATE VIEW v_e AS SELECT $1 AS x;
CREATE VIEW nowhere.v_e AS SELECT 1;
CREATE VIEW v_e AS INSERT INTO v_t VALUES (9);
CREATE VIEW v_e AS SELECT 1 +;
CREATE VIEW v_e;
CREATE VIEW v_e WITH (nonsense) AS SELECT 1;
CREATE INDEX ON v_all (id);
TRUNCATE v_all;
DROP TABLE v_all;
DROP VIEW v_t;
DROP VIEW v_nope;
DROP VIEW IF EXISTS v_nope;
COPY v_all TO STDOUT;
COPY (SELECT k FROM v_some ORDER BY k) TO STDOUT;
-- OR REPLACE.
CREATE OR REPLACE VIEW v_t AS SELECT 1;
CREATE OR REPLACE VIEW v_some AS SELECT id FROM v_t;
CREATE OR REPLACE VIEW v_some AS SELECT id, a FROM v_t;
CREATE OR REPLACE VIEW v_some (k, twice) AS SELECT id, a::bigint FROM v_t;
CREATE OR REPLACE VIEW v_some (k, twice, extra) AS SELECT id, a * 3, b FROM v_t WHERE a IS NOT NULL;
SELECT * FROM v_some ORDER BY k;
SELECT * FROM v_on ORDER BY k1;
PREPARE p AS SELECT twice FROM v_some ORDER BY k LIMIT 1;
EXECUTE p;
CREATE OR REPLACE VIEW v_some (k, twice, extra) AS SELECT id, a * 2, b FROM v_t WHERE a IS NOT NULL;
EXECUTE p;
DEALLOCATE p;
-- What a view reads may change its names and get more columns; the view stays as it was.
ALTER TABLE v_t RENAME COLUMN a TO alpha;
ALTER TABLE v_t ADD COLUMN later int DEFAULT 7;
ALTER TABLE v_t RENAME TO v_table;
ALTER TABLE v_u ADD COLUMN later int;
SELECT * FROM v_all ORDER BY id;
SELECT * FROM v_some ORDER BY k;
SELECT * FROM v_natural ORDER BY id;
SELECT * FROM v_corr ORDER BY id;
CREATE TABLE v_t (id int);
SELECT * FROM v_all ORDER BY id;
DROP TABLE v_t;
ALTER TABLE v_table RENAME TO v_t;
-- What a view reads cannot go.
DROP TABLE v_u;
DROP TABLE v_u, v_t;
ALTER TABLE v_t DROP COLUMN later;
ALTER TABLE v_t DROP COLUMN alpha;
ALTER TABLE v_t DROP COLUMN "Odd name";
ALTER TABLE v_t ALTER COLUMN b TYPE varchar(10);
DROP VIEW v_some;
DROP VIEW v_on RESTRICT;
DROP VIEW v_some, v_on;
DROP VIEW v_onon, v_on;
-- DDL is undone with its transaction.
BEGIN;
CREATE VIEW v_tx AS SELECT id FROM v_t;
SELECT count(*) FROM v_tx;
CREATE OR REPLACE VIEW v_tx AS SELECT id + 1 AS id FROM v_t;
SELECT sum(id) FROM v_tx;
SAVEPOINT s;
DROP VIEW v_tx;
SELECT count(*) FROM v_tx;
ROLLBACK TO s;
SELECT count(*) FROM v_tx;
ROLLBACK;
SELECT count(*) FROM v_tx;
BEGIN;
DROP VIEW v_some CASCADE;
ROLLBACK;
SELECT count(*) FROM v_some;
-- The catalog.
SELECT relname, relkind, relnatts, relhasrules, relfilenode = 0 AS no_file FROM pg_class WHERE relname IN ('v_all', 'v_some') ORDER BY 1;
SELECT attname, atttypid::regtype, attnum, attnotnull FROM pg_attribute WHERE attrelid = 'v_all'::regclass ORDER BY attnum;
SELECT table_name, table_type FROM information_schema.tables WHERE table_name LIKE 'v\_%' ORDER BY 1;
SELECT table_name, column_name, ordinal_position, data_type, character_maximum_length FROM information_schema.columns WHERE table_name IN ('v_with', 'v_all') ORDER BY 1, 3;
SELECT table_name, check_option FROM information_schema.views WHERE table_schema = 'public' ORDER BY 1;
SELECT schemaname, viewname, viewowner FROM pg_views WHERE schemaname = 'public' ORDER BY 2;
SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'v\_%' ORDER BY 1;
COMMENT ON VIEW v_all IS 'everything';
COMMENT ON TABLE v_all IS 'no';
COMMENT ON VIEW v_t IS 'no';
SELECT obj_description('v_all'::regclass, 'pg_class');
-- In other schemas.
CREATE SCHEMA v_s;
CREATE VIEW v_s.v_inner AS SELECT id FROM v_t;
CREATE VIEW v_outer AS SELECT * FROM v_s.v_inner;
DROP SCHEMA v_s;
DROP SCHEMA v_s CASCADE;
-- CASCADE.
DROP VIEW v_sum CASCADE;
DROP TABLE v_u CASCADE;
ALTER TABLE v_t DROP COLUMN alpha CASCADE;
DROP TABLE v_t CASCADE;
DROP VIEW v_values, v_count, v_const;
SELECT viewname FROM pg_views WHERE schemaname = 'public';

-- Names given to columns in FROM stay with them when one of them is dropped.
CREATE TABLE aliased (a int, b int, c int, d int);
INSERT INTO aliased VALUES (1, 2, 3, 4);
CREATE VIEW aliases AS SELECT c1, c3 FROM aliased x (c1, c2, c3);
CREATE VIEW joined_aliases AS SELECT j1, j3 FROM (aliased x CROSS JOIN (SELECT 9 AS nine) y) j (j1, j2, j3);
ALTER TABLE aliased DROP COLUMN b;
ALTER TABLE aliased ADD COLUMN e int DEFAULT 5;
SELECT * FROM aliases;
SELECT * FROM joined_aliases;
UPDATE aliases SET c3 = 300;
INSERT INTO aliases VALUES (10, 30);
SELECT * FROM aliased ORDER BY a;
CREATE VIEW starred AS SELECT x.*, 1 AS one FROM aliased x;
SELECT pg_get_viewdef('starred'::regclass);
DROP TABLE aliased CASCADE;

-- The time of a transaction is known when its first statement is planned.
SELECT 'now'::timestamptz = now() AS same, 'today'::date = current_date AS today;
