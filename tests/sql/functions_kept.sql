-- Functions in what a table keeps: defaults, checks, generated columns. And operands that are computed once.
CREATE SEQUENCE fk_s;
CREATE FUNCTION fk_id(prefix text DEFAULT 'id') RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN prefix || '-' || nextval('fk_s'); END $$;
CREATE FUNCTION fk_even(n int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN n % 2 = 0; END $$;
CREATE FUNCTION fk_small(n int) RETURNS bool LANGUAGE sql AS 'SELECT n < 100';
CREATE FUNCTION fk_twice(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN n * 2; END $$;
CREATE FUNCTION fk_thrice(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT n * 3';
CREATE FUNCTION fk_now() RETURNS int LANGUAGE sql AS 'SELECT 7';
CREATE TABLE fk_t (
  id text DEFAULT fk_id('t') PRIMARY KEY,
  n int DEFAULT fk_now() + 1 CHECK (fk_even(n)),
  twice int GENERATED ALWAYS AS (fk_twice(n)) STORED,
  thrice int GENERATED ALWAYS AS (fk_thrice(n) + 1) STORED,
  CONSTRAINT fk_smaller CHECK (fk_small(n) AND n >= 0));
INSERT INTO fk_t DEFAULT VALUES RETURNING *;
INSERT INTO fk_t (n) VALUES (2), (4) RETURNING *;
INSERT INTO fk_t (n) SELECT g * 2 FROM generate_series(10, 12) g RETURNING id, n, twice;
INSERT INTO fk_t (n) VALUES (3);
INSERT INTO fk_t (n) VALUES (200);
INSERT INTO fk_t (id, n) VALUES ('t-1', 6) ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING *;
INSERT INTO fk_t (id, n) VALUES ('t-1', 6) ON CONFLICT (id) DO UPDATE SET n = 7;
UPDATE fk_t SET n = n + 10 WHERE id = 't-1' RETURNING *;
UPDATE fk_t SET n = 5 WHERE id = 't-1';
UPDATE fk_t SET n = DEFAULT, id = DEFAULT WHERE id = 't-2' RETURNING n, twice, thrice;
MERGE INTO fk_t USING (VALUES ('t-3', 8), ('new', 12)) v (id, n) ON v.id = fk_t.id WHEN MATCHED THEN UPDATE SET n = v.n WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.n);
MERGE INTO fk_t USING (VALUES ('t-3', 9)) v (id, n) ON v.id = fk_t.id WHEN MATCHED THEN UPDATE SET n = v.n;
SELECT id, n, twice, thrice FROM fk_t WHERE id IN ('t-3', 'new') ORDER BY 1;
PREPARE fk_p (int) AS INSERT INTO fk_t (n) VALUES ($1) RETURNING n, twice;
EXECUTE fk_p(14);
EXECUTE fk_p(15);
-- What is kept is the function, whatever it is called and does.
SELECT column_name, column_default, generation_expression FROM information_schema.columns WHERE table_name = 'fk_t' ORDER BY 1;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'fk_t'::regclass ORDER BY 1;
SELECT conname, pg_get_constraintdef(oid, true) FROM pg_constraint WHERE conrelid = 'fk_t'::regclass ORDER BY 1;
ALTER FUNCTION fk_now RENAME TO fk_then;
CREATE OR REPLACE FUNCTION fk_then() RETURNS int LANGUAGE sql AS 'SELECT 19';
SELECT column_default FROM information_schema.columns WHERE table_name = 'fk_t' AND column_name = 'n';
INSERT INTO fk_t DEFAULT VALUES RETURNING n, twice;
SELECT d.deptype, CASE d.classid WHEN 'pg_attrdef'::regclass THEN 'default' ELSE 'constraint' END AS what, p.proname FROM pg_depend d JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid WHERE p.proname LIKE 'fk\_%' AND d.classid <> 'pg_proc'::regclass ORDER BY 2, 3;
DROP FUNCTION fk_then();
DROP FUNCTION fk_even;
DROP FUNCTION fk_twice;
DROP FUNCTION fk_id;
BEGIN;
DROP FUNCTION fk_even, fk_then, fk_twice CASCADE;
INSERT INTO fk_t (n) VALUES (1) RETURNING n, thrice;
ROLLBACK;
-- Rows that are there already, domains, parameters.
CREATE TABLE fk_u (n int);
INSERT INTO fk_u VALUES (1), (120);
ALTER TABLE fk_u ADD CHECK (fk_small(n));
DELETE FROM fk_u WHERE n > 1;
ALTER TABLE fk_u ADD CHECK (fk_small(n));
ALTER TABLE fk_u ADD COLUMN t int DEFAULT fk_thrice(4), ADD COLUMN g int GENERATED ALWAYS AS (fk_thrice(n)) STORED;
ALTER TABLE fk_u ALTER COLUMN t SET DEFAULT fk_twice(3);
INSERT INTO fk_u (n) VALUES (2);
SELECT * FROM fk_u ORDER BY n;
ALTER TABLE fk_u ADD COLUMN r int DEFAULT NULLIF(floor(random() * 0)::int + 1, 2), ADD CHECK (CASE floor(random() * 0) WHEN 0 THEN n > 0 END);
SELECT n, r FROM fk_u ORDER BY n;
CREATE DOMAIN fk_d AS int DEFAULT fk_twice(8) CHECK (fk_small(VALUE));
SELECT typdefault, pg_get_constraintdef(c.oid), pg_get_constraintdef(c.oid, true), check_clause FROM pg_type t JOIN pg_constraint c ON contypid = t.oid JOIN information_schema.check_constraints ON conname = constraint_name WHERE typname = 'fk_d';
CREATE TABLE fk_v (d fk_d, e int);
INSERT INTO fk_v (e) VALUES (1) RETURNING d;
INSERT INTO fk_v VALUES (101, 1);
CREATE FUNCTION fk_arg(n int DEFAULT fk_thrice(5)) RETURNS int LANGUAGE sql AS 'SELECT n';
SELECT fk_arg(), pg_get_function_arguments('fk_arg'::regproc);
DROP FUNCTION fk_thrice;
DROP FUNCTION fk_small;
CREATE TABLE fk_w (n int, g int GENERATED ALWAYS AS (fk_then()) STORED);
DROP TABLE fk_w;
CREATE TABLE fk_w (n int, g text GENERATED ALWAYS AS (fk_id()) STORED);
CREATE TABLE fk_w (n int CHECK ((SELECT fk_small(n))));
CREATE TABLE fk_w (n int DEFAULT (SELECT fk_then()));
CREATE TABLE fk_w (n int DEFAULT nosuch(1));
COPY fk_t (n) FROM stdin;
30
32
\.
COPY fk_t (n) FROM stdin;
31
\.
-- A function that the role may not run.
CREATE ROLE fk_role;
GRANT SELECT, INSERT ON fk_t TO fk_role;
GRANT USAGE ON fk_s TO fk_role;
REVOKE EXECUTE ON FUNCTION fk_even FROM public;
SET ROLE fk_role;
INSERT INTO fk_t (n) VALUES (40);
RESET ROLE;
GRANT EXECUTE ON FUNCTION fk_even TO public;
-- The same call in several places is one.
CREATE FUNCTION fk_next() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('fk_s'); END $$;
SELECT setval('fk_s', 1000);
SELECT g, fk_next() FROM generate_series(1, 3) g ORDER BY fk_next() DESC;
SELECT DISTINCT fk_twice(g % 2), fk_next() > 0 FROM generate_series(1, 4) g ORDER BY fk_twice(g % 2), fk_next() > 0;
SELECT DISTINCT ON (fk_twice(g % 2)) fk_twice(g % 2), g FROM generate_series(1, 4) g ORDER BY fk_twice(g % 2), g;
SELECT fk_twice(g % 3), count(*) FROM generate_series(1, 7) g GROUP BY fk_twice(g % 3) ORDER BY fk_twice(g % 3) DESC;
SELECT fk_twice(g % 3) + 1, count(*) FROM generate_series(1, 7) g GROUP BY g % 3 HAVING fk_twice(g % 3) > 0 ORDER BY 1;
SELECT fk_twice(g), count(*) FROM generate_series(1, 7) g GROUP BY g % 3;
SELECT fk_next() AS r, count(*) FROM generate_series(1, 2) g GROUP BY r ORDER BY r;
SELECT currval('fk_s');
SELECT NULLIF(fk_next(), 0) AS one, CASE fk_next() WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END, COALESCE(fk_next(), 1), GREATEST(fk_next(), 1);
SELECT fk_next() BETWEEN 0 AND 9999, fk_next() IN (1, 2, 3);
SELECT currval('fk_s');
SELECT count(*) FROM (SELECT CASE floor(random() * 3) WHEN 0 THEN 'a' WHEN 1 THEN 'b' WHEN 2 THEN 'c' ELSE 'never' END AS x FROM generate_series(1, 300)) s WHERE x = 'never';
SELECT CASE nextval('fk_s') WHEN 1 THEN 1 WHEN 2 THEN 2 END, NULLIF(nextval('fk_s'), 5) - currval('fk_s');
SELECT currval('fk_s');
-- A function with the name of an aggregate, whose arguments are others.
CREATE FUNCTION max(a int, b int) RETURNS int LANGUAGE sql AS 'SELECT greatest(a, b)';
CREATE FUNCTION sum(a text, b text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN a || b; END $$;
SELECT max(1, 2), sum('a', 'b'), max(max(g, 3)), sum(g) FROM generate_series(1, 4) g GROUP BY g ORDER BY 3, 4;
DROP FUNCTION max(int, int), sum(text, text);
DROP TABLE fk_t, fk_u, fk_v;
DROP DOMAIN fk_d;
DROP FUNCTION fk_id, fk_even, fk_small, fk_twice, fk_arg, fk_thrice, fk_then, fk_next;
DROP SEQUENCE fk_s;
DROP ROLE fk_role;
