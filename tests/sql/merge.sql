-- MERGE: clauses, their order, what rows become, what is refused.

CREATE TABLE mrg_t (id int PRIMARY KEY, n int, note text DEFAULT 'none');
CREATE TABLE mrg_s (id int, delta int);
INSERT INTO mrg_t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c');
INSERT INTO mrg_s VALUES (2, 5), (3, -30), (4, 44), (5, NULL);
\set QUIET off
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id
  WHEN MATCHED AND t.n + s.delta = 0 THEN DELETE
  WHEN MATCHED THEN UPDATE SET n = t.n + s.delta, note = t.note || s.delta
  WHEN NOT MATCHED AND s.delta IS NULL THEN DO NOTHING
  WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.delta);
\set QUIET on
SELECT * FROM mrg_t ORDER BY id;
-- The same in one transaction that goes back.
BEGIN;
MERGE INTO mrg_t USING mrg_s ON mrg_t.id = mrg_s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (mrg_s.id);
SELECT * FROM mrg_t ORDER BY id;
MERGE INTO mrg_t USING mrg_s ON mrg_t.id = mrg_s.id WHEN MATCHED THEN UPDATE SET n = DEFAULT, note = DEFAULT;
SELECT * FROM mrg_t ORDER BY id;
ROLLBACK;
SELECT * FROM mrg_t ORDER BY id;
-- DEFAULT VALUES, all columns, DEFAULT, a subquery and VALUES as the source.
CREATE TABLE mrg_d (a int DEFAULT 7, b text DEFAULT 'bee', c int GENERATED ALWAYS AS (a * 2) STORED);
MERGE INTO mrg_d USING (SELECT 1 AS x) s ON false WHEN NOT MATCHED THEN INSERT DEFAULT VALUES;
MERGE INTO mrg_d d USING (VALUES (1, 'one'), (7, 'seven'), (9, 'nine')) s (k, w) ON d.a = s.k
  WHEN MATCHED AND s.w <> 'one' THEN UPDATE SET (a, b) = (s.k + 100, s.w)
  WHEN NOT MATCHED THEN INSERT VALUES (s.k, DEFAULT, DEFAULT);
SELECT * FROM mrg_d ORDER BY a;
MERGE INTO mrg_d d USING generate_series(1, 3) i ON d.a = i WHEN NOT MATCHED THEN INSERT (b, a) VALUES ('i' || i, i);
SELECT * FROM mrg_d ORDER BY a;
MERGE INTO mrg_d d USING mrg_s s ON d.a = s.id WHEN MATCHED THEN UPDATE SET c = 5;
MERGE INTO mrg_d d USING mrg_s s ON d.a = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'x', 5);
-- WITH in front; joins and subqueries.
WITH w AS (SELECT id, delta FROM mrg_s WHERE delta > 0)
MERGE INTO mrg_t t USING w ON t.id = w.id WHEN MATCHED THEN UPDATE SET n = -w.delta;
SELECT * FROM mrg_t ORDER BY id;
WITH RECURSIVE w AS (SELECT 1 AS id) MERGE INTO mrg_t t USING w ON t.id = w.id WHEN MATCHED THEN DELETE;
WITH w AS (MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN DELETE) SELECT 1;
MERGE INTO mrg_t t USING (mrg_s a JOIN mrg_d d ON a.id = d.a) ON t.id = a.id WHEN MATCHED THEN UPDATE SET note = d.b;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id
  WHEN MATCHED AND EXISTS (SELECT 1 FROM mrg_d d WHERE d.a = s.id) THEN UPDATE SET n = (SELECT max(a) FROM mrg_d d WHERE d.a > t.id)
  WHEN NOT MATCHED THEN INSERT VALUES (s.id, (SELECT count(*) FROM mrg_d), (SELECT b FROM mrg_d WHERE a = 9 + 0 * s.id));
SELECT * FROM mrg_t ORDER BY id;
-- A source that nothing matches, and an empty one.
MERGE INTO mrg_t t USING (SELECT 1 WHERE false) s (id) ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (99);
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id AND false WHEN MATCHED THEN DELETE;
SELECT count(*) FROM mrg_t;
-- DO NOTHING alone.
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN DO NOTHING;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN NOT MATCHED THEN DO NOTHING;
-- A row twice.
INSERT INTO mrg_s VALUES (2, 6);
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.delta;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN DELETE;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED AND s.delta = 6 THEN UPDATE SET n = s.delta WHEN MATCHED THEN DO NOTHING;
MERGE INTO mrg_t t USING (VALUES (70), (70)) s (id) ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id);
SELECT * FROM mrg_t ORDER BY id;
-- Constraints.
CREATE TABLE mrg_c (id int PRIMARY KEY, n int NOT NULL CHECK (n < 100));
CREATE TABLE mrg_child (id int PRIMARY KEY, parent int REFERENCES mrg_c ON DELETE CASCADE);
INSERT INTO mrg_c VALUES (1, 1), (2, 2);
INSERT INTO mrg_child VALUES (10, 1), (20, 2);
MERGE INTO mrg_c c USING (VALUES (1, 100)) s (id, n) ON c.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n;
MERGE INTO mrg_c c USING (VALUES (3, 100)) s (id, n) ON c.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n);
MERGE INTO mrg_c c USING (VALUES (3, NULL::int)) s (id, n) ON c.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n);
MERGE INTO mrg_child c USING (VALUES (10, 5)) s (id, n) ON c.id = s.id WHEN MATCHED THEN UPDATE SET parent = s.n;
MERGE INTO mrg_child c USING (VALUES (30, 5)) s (id, n) ON c.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n);
MERGE INTO mrg_c c USING (VALUES (1), (4)) s (id) ON c.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.id);
SELECT * FROM mrg_child ORDER BY id;
SELECT * FROM mrg_c ORDER BY id;
-- Identity columns.
CREATE TABLE mrg_i (id int GENERATED ALWAYS AS IDENTITY, v text);
MERGE INTO mrg_i i USING (VALUES (5, 'five')) s (k, v) ON i.id = s.k WHEN NOT MATCHED THEN INSERT (v) VALUES (s.v);
MERGE INTO mrg_i i USING (VALUES (5, 'five')) s (k, v) ON i.id = s.k WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v);
MERGE INTO mrg_i i USING (VALUES (5, 'five')) s (k, v) ON i.id = s.k WHEN NOT MATCHED THEN INSERT (id, v) OVERRIDING SYSTEM VALUE VALUES (s.k, s.v);
MERGE INTO mrg_i i USING (VALUES (6, 'six')) s (k, v) ON i.id = s.k WHEN NOT MATCHED THEN INSERT OVERRIDING USER VALUE VALUES (s.k, s.v);
SELECT * FROM mrg_i ORDER BY id;
-- What the clauses see.
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (t.id);
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN NOT MATCHED AND t.n > 1 THEN INSERT VALUES (s.id);
MERGE INTO mrg_t t USING mrg_s t ON t.id = t.id WHEN MATCHED THEN DELETE;
MERGE INTO mrg_t USING mrg_t ON true WHEN MATCHED THEN DELETE;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED AND count(*) > 1 THEN DELETE;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1, n = 2;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, n) VALUES (1);
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2);
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2);
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN DO NOTHING;
-- What the grammar refuses.
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN INSERT VALUES (1);
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN NOT MATCHED THEN DELETE;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN DELETE RETURNING *;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1 WHERE true;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (1), (2);
MERGE mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN DELETE;
-- What cannot be merged into.
CREATE VIEW mrg_v AS SELECT * FROM mrg_t;
CREATE MATERIALIZED VIEW mrg_m AS SELECT * FROM mrg_t;
MERGE INTO mrg_v v USING mrg_s s ON v.id = s.id WHEN MATCHED THEN DELETE;
MERGE INTO mrg_m v USING mrg_s s ON v.id = s.id WHEN MATCHED THEN DELETE;
MERGE INTO mrg_gone v USING mrg_s s ON v.id = s.id WHEN MATCHED THEN DELETE;
-- A view as the source.
MERGE INTO mrg_t t USING (SELECT id + 100, n FROM mrg_v) v (id, n) ON t.id = v.id WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.n);
MERGE INTO mrg_t t USING mrg_v v ON t.id = v.id AND v.id > 100 WHEN MATCHED THEN DELETE;
SELECT * FROM mrg_t ORDER BY id;
-- Prepared, and explained.
PREPARE mrg_p (int, int) AS MERGE INTO mrg_t t USING (SELECT $1 AS id, $2 AS n) s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n);
EXECUTE mrg_p (50, 1);
EXECUTE mrg_p (50, 2);
SELECT * FROM mrg_t WHERE id = 50;
START TRANSACTION READ ONLY;
EXECUTE mrg_p (50, 3);
ROLLBACK;
-- Privileges.
CREATE ROLE mrg_role;
GRANT SELECT, UPDATE ON mrg_t TO mrg_role;
GRANT SELECT ON mrg_s TO mrg_role;
SET ROLE mrg_role;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED AND s.delta = 44 THEN UPDATE SET n = 1;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN DELETE;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id);
MERGE INTO mrg_t t USING mrg_d s ON t.id = s.a WHEN MATCHED THEN UPDATE SET n = 1;
RESET ROLE;
REVOKE SELECT ON mrg_t FROM mrg_role;
SET ROLE mrg_role;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1;
-- Nothing is done: it takes the right to read some column, and no other does.
MERGE INTO mrg_t t USING mrg_s s ON true WHEN MATCHED THEN DO NOTHING;
RESET ROLE;
GRANT INSERT, DELETE ON mrg_t TO mrg_role;
SET ROLE mrg_role;
MERGE INTO mrg_t t USING mrg_s s ON true WHEN NOT MATCHED THEN DO NOTHING;
RESET ROLE;
GRANT SELECT (n) ON mrg_t TO mrg_role;
SET ROLE mrg_role;
MERGE INTO mrg_t t USING mrg_s s ON true WHEN MATCHED THEN DO NOTHING;
MERGE INTO mrg_t t USING mrg_s s ON t.n = s.id WHEN MATCHED THEN DO NOTHING;
MERGE INTO mrg_t t USING mrg_s s ON t.id = s.id WHEN MATCHED THEN DO NOTHING;
RESET ROLE;
-- Other statements with those words.
SELECT 1 AS merge INTO mrg_into WHERE true;
DROP TABLE mrg_into;
WITH merge AS (SELECT 1), b (c) AS MATERIALIZED (SELECT 2) SELECT (1) merge INTO mrg_into WHERE true;
DROP TABLE mrg_into;
-- MERGE behind others.
WITH a AS NOT MATERIALIZED (SELECT 70), b (c) AS (SELECT 71) MERGE INTO mrg_t USING b ON id = c WHEN NOT MATCHED THEN INSERT DEFAULT VALUES;
PREPARE mrg_q AS WITH b (c) AS (SELECT 71) MERGE INTO mrg_t USING b ON id = c WHERE true;
EXPLAIN (COSTS OFF) MERGE INTO mrg_t USING mrg_s s ON true WHERE true;
EXPLAIN ANALYZE VERBOSE MERGE INTO mrg_t USING mrg_s s ON true WHERE true;
-- The source is a join.
BEGIN;
MERGE INTO mrg_t t USING mrg_s s JOIN (VALUES (1), (2)) v (n) ON s.id = v.n LEFT JOIN (VALUES (9)) d (id) ON CASE WHEN true THEN d.id = v.n END ON t.id = s.id AND CASE WHEN v.n > 0 THEN false END WHEN MATCHED THEN DELETE;
MERGE INTO mrg_t t USING mrg_s s CROSS JOIN (VALUES (1)) v (n) ON t.id = s.id AND v.n = 2 WHEN MATCHED THEN DELETE;
MERGE INTO mrg_t t USING mrg_s a NATURAL JOIN mrg_s s ON t.id = s.id WHEN MATCHED THEN DO NOTHING;
MERGE INTO mrg_t t USING mrg_s a JOIN mrg_s s USING (id) ON t.id = s.id WHEN NOT MATCHED THEN DO NOTHING;
ROLLBACK;
DROP MATERIALIZED VIEW mrg_m;
DROP VIEW mrg_v;
DROP TABLE mrg_t, mrg_s, mrg_d, mrg_child, mrg_c, mrg_i;
DROP ROLE mrg_role;
