-- Errors of several kinds, each told as PostgreSQL tells it.
CREATE TABLE told(a int PRIMARY KEY, b text);
-- A part of a statement that names what is out of its reach.
INSERT INTO told VALUES (1, 'x') ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING excluded.b;
MERGE INTO told t USING (SELECT * FROM told WHERE t.a > 1) s ON t.a = s.a WHEN NOT MATCHED THEN INSERT DEFAULT VALUES;
COPY (MERGE INTO told USING told s ON true WHEN MATCHED THEN DELETE) TO STDOUT;
SELECT NULL FROM told GROUP BY GROUPING SETS (()) FOR UPDATE;
-- RENAME and SET SCHEMA are statements of their own.
ALTER TABLE told ADD COLUMN c int, RENAME TO told2;
ALTER TABLE told RENAME TO told2, ADD COLUMN c int;
ALTER TABLE told ADD COLUMN c int, RENAME COLUMN a TO d;
ALTER TABLE told ADD COLUMN c int, SET SCHEMA public;
ALTER TABLE told RENAME b TO c;
-- A condition on a system column is the table's, not a column's.
CREATE TABLE told_check(a bool, CHECK (NOT (a AND tableoid::regclass::text = 'told_check')));
INSERT INTO told_check VALUES (true);
DROP TABLE told_check;
-- An input without any line has no header that matches.
COPY told FROM STDIN (HEADER MATCH);
\.
COPY told FROM STDIN (FORMAT csv, HEADER MATCH);
\.
COPY told FROM STDIN (HEADER);
\.
-- A view's default is a value, also for columns that can have none.
CREATE VIEW told_v AS SELECT a, upper(c) AS u FROM told;
ALTER VIEW told_v ALTER COLUMN u SET DEFAULT 'NOT SET';
INSERT INTO told_v (a) VALUES (4);
DROP VIEW told_v;
CREATE TABLE told_g(a int PRIMARY KEY, b int GENERATED ALWAYS AS (a * 2) STORED);
CREATE VIEW told_gv AS SELECT * FROM told_g;
INSERT INTO told_gv VALUES (5, DEFAULT);
ALTER VIEW told_gv ALTER COLUMN b SET DEFAULT 100;
INSERT INTO told_gv VALUES (8, DEFAULT);
INSERT INTO told_gv VALUES (8, DEFAULT), (9, DEFAULT);
INSERT INTO told_gv (a) VALUES (8);
SELECT * FROM told_gv;
DROP VIEW told_gv;
DROP TABLE told_g;
-- Types without an order.
SELECT array['1'::json] = array['1'::json];
SELECT array[xmlparse(content '<a/>')] = array[xmlparse(content '<a/>')];
SELECT array[xmlparse(content '<a/>')] < array[xmlparse(content '<a/>')];
SELECT array_agg(x ORDER BY x) FROM (SELECT xmlparse(content '<a/>')) s(x);
SELECT xmlparse(content '<a/>') UNION ALL SELECT xmlparse(content '<b/>') ORDER BY 1;
-- What rows are told apart by stays NOT NULL.
CREATE TABLE told_r(id int NOT NULL);
CREATE UNIQUE INDEX told_r_id ON told_r(id);
ALTER TABLE told_r REPLICA IDENTITY USING INDEX told_r_id;
ALTER TABLE told_r ALTER COLUMN id DROP NOT NULL;
DROP TABLE told_r;
-- Whether rows may be read at all comes before which of them.
CREATE ROLE told_role;
ALTER TABLE told ENABLE ROW LEVEL SECURITY;
SET row_security TO off;
SET ROLE told_role;
COPY told TO STDOUT;
RESET ROLE;
RESET row_security;
DROP ROLE told_role;
-- Generated columns: of NULL, and of a row that has them.
CREATE TABLE told_n(a int PRIMARY KEY, b int GENERATED ALWAYS AS (NULL) STORED);
INSERT INTO told_n VALUES (1);
SELECT * FROM told_n;
DROP TABLE told_n;
CREATE TABLE told_n(a int PRIMARY KEY, b int GENERATED ALWAYS AS (num_nulls(told_n)) STORED);
-- What goes together is in nobody's way.
CREATE TABLE told_1(a int, b text);
CREATE TABLE told_2(x int, y text, CHECK ((x, y)::told_1 = (1, '42')::told_1));
DROP TABLE told_1;
DROP TABLE told_1, told_2;
COPY (SELECT 1) FROM STDIN;
SET seq_page_cost TO 'NaN';
SELECT 0.0e+a;
DROP TABLE told;
