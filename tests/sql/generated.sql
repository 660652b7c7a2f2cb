-- Generated columns: what makes them, who may write them, what follows from them.

CREATE TABLE gen (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a * 2) STORED, c text DEFAULT 'x');
INSERT INTO gen VALUES (1);
INSERT INTO gen VALUES (2, DEFAULT, 'y') RETURNING *;
INSERT INTO gen (a, b) VALUES (3, DEFAULT), (4, DEFAULT) RETURNING b;
INSERT INTO gen (a, b) VALUES (5, 10);
INSERT INTO gen (a, b) VALUES (5, DEFAULT), (6, 12);
INSERT INTO gen VALUES (5, NULL);
INSERT INTO gen (a, b) OVERRIDING SYSTEM VALUE VALUES (5, 10);
INSERT INTO gen (a, b) OVERRIDING USER VALUE VALUES (5, 10);
INSERT INTO gen (a, b) SELECT 5, 10;
INSERT INTO gen (a, c) SELECT i, 'n' || i FROM generate_series(10, 12) i RETURNING a, b, c;
INSERT INTO gen DEFAULT VALUES;
SELECT * FROM gen ORDER BY a;

-- UPDATE.
UPDATE gen SET a = 20 WHERE a = 2 RETURNING *;
UPDATE gen SET b = 5 WHERE a = 1;
UPDATE gen SET b = DEFAULT WHERE a = 1 RETURNING *;
UPDATE gen SET (a, b) = (21, DEFAULT) WHERE a = 20 RETURNING *;
UPDATE gen SET (a, b) = (SELECT 1, 2) WHERE a = 21;
UPDATE gen SET a = a + 100 WHERE a > 4 RETURNING a, b;
UPDATE gen SET c = 'z' WHERE b = 2 RETURNING *;
UPDATE gen SET a = g.a + 1000 FROM gen g WHERE gen.a = g.a AND g.b = 8 RETURNING gen.a, gen.b, g.b;
SELECT * FROM gen ORDER BY a;

-- ON CONFLICT.
INSERT INTO gen VALUES (1, DEFAULT, 'new') ON CONFLICT (a) DO UPDATE SET a = gen.a + 6, c = excluded.c || excluded.b RETURNING *;
INSERT INTO gen VALUES (7, DEFAULT, 'new') ON CONFLICT (a) DO UPDATE SET b = 3;
INSERT INTO gen VALUES (7) ON CONFLICT (a) DO UPDATE SET b = DEFAULT RETURNING *;
INSERT INTO gen VALUES (7) ON CONFLICT (a) DO UPDATE SET c = 'w' WHERE gen.b = excluded.b RETURNING *;

-- Constraints and indexes over them.
CREATE TABLE gen_checks (a int, b int GENERATED ALWAYS AS (a + 1) STORED NOT NULL CHECK (b < 50), UNIQUE (b));
INSERT INTO gen_checks VALUES (NULL);
INSERT INTO gen_checks VALUES (49);
INSERT INTO gen_checks VALUES (48), (47);
INSERT INTO gen_checks VALUES (48);
UPDATE gen_checks SET a = 48 WHERE a = 47;
UPDATE gen_checks SET a = a + 1;
UPDATE gen_checks SET a = NULL;
UPDATE gen_checks SET a = 3 WHERE b = 49 RETURNING *;
INSERT INTO gen_checks VALUES (3) ON CONFLICT (b) DO UPDATE SET a = 5 RETURNING *;
SELECT * FROM gen_checks WHERE b = 6;
CREATE INDEX gen_c_b ON gen (b);
SELECT a FROM gen WHERE b = 14;
CREATE INDEX gen_c_expr ON gen ((b + 1));
CREATE TABLE gen_parent (p int PRIMARY KEY);
INSERT INTO gen_parent VALUES (2), (4);
CREATE TABLE gen_child (a int, b int GENERATED ALWAYS AS (a * 2) STORED REFERENCES gen_parent);
INSERT INTO gen_child VALUES (1), (2);
INSERT INTO gen_child VALUES (3);
UPDATE gen_child SET a = 7 WHERE a = 1;
DELETE FROM gen_parent WHERE p = 4;
CREATE TABLE gen_x (a int, b int GENERATED ALWAYS AS (a * 2) STORED, FOREIGN KEY (b) REFERENCES gen_parent ON UPDATE CASCADE);
CREATE TABLE gen_x (a int, b int GENERATED ALWAYS AS (a * 2) STORED, FOREIGN KEY (b) REFERENCES gen_parent ON UPDATE SET NULL);
CREATE TABLE gen_x (a int, b int GENERATED ALWAYS AS (a * 2) STORED, FOREIGN KEY (b) REFERENCES gen_parent ON UPDATE SET DEFAULT);
CREATE TABLE gen_x (a int, b int GENERATED ALWAYS AS (a * 2) STORED, FOREIGN KEY (b) REFERENCES gen_parent ON DELETE SET NULL);
CREATE TABLE gen_x (a int, b int GENERATED ALWAYS AS (a * 2) STORED, FOREIGN KEY (b) REFERENCES gen_parent ON DELETE SET DEFAULT);
CREATE TABLE gen_x (a int, b int GENERATED ALWAYS AS (a * 2) STORED REFERENCES gen_parent ON DELETE CASCADE);
INSERT INTO gen_x VALUES (1);
DELETE FROM gen_parent WHERE p = 2;
DROP TABLE gen_child;
DELETE FROM gen_parent WHERE p = 2;
SELECT * FROM gen_x;
-- Actions on what it is made of.
CREATE TABLE gen_act (p int REFERENCES gen_parent ON UPDATE CASCADE ON DELETE SET NULL, q int GENERATED ALWAYS AS (coalesce(p, -1) * 10) STORED CHECK (q < 100));
INSERT INTO gen_act VALUES (4);
UPDATE gen_parent SET p = 5 WHERE p = 4;
SELECT * FROM gen_act;
UPDATE gen_parent SET p = 50 WHERE p = 5;
DELETE FROM gen_parent WHERE p = 5;
SELECT * FROM gen_act;

-- What may not be.
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS (b * 2) STORED);
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS (a * 2) STORED, c int GENERATED ALWAYS AS (b * 3) STORED);
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS (nope * 2) STORED);
CREATE TABLE gen_e (a int, b float8 GENERATED ALWAYS AS (random()) STORED);
CREATE TABLE gen_e (a int, b timestamptz GENERATED ALWAYS AS (now()) STORED);
CREATE TABLE gen_e (a date, b text GENERATED ALWAYS AS (a::text) STORED);
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS (avg(a)) STORED);
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS (row_number() OVER (ORDER BY a)) STORED);
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS ((SELECT a)) STORED);
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS (generate_series(1, a)) STORED);
CREATE TABLE gen_e (a int, b int DEFAULT 5 GENERATED ALWAYS AS (a * 2) STORED);
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS (a * 2) STORED DEFAULT 5);
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS IDENTITY GENERATED ALWAYS AS (a * 2) STORED);
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS (a * 2) STORED GENERATED ALWAYS AS (a * 3) STORED);
CREATE TABLE gen_e (a int, b serial GENERATED ALWAYS AS (a * 2) STORED);
CREATE TABLE gen_e (a int, b int GENERATED BY DEFAULT AS (a * 2) STORED);
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS (a * 2));
CREATE TABLE gen_e (a int, b int GENERATED ALWAYS AS ('x'::text) STORED);
CREATE TABLE gen_e (a int DEFAULT b, b int);

-- ALTER TABLE.
CREATE TABLE gen_alter (a int, t text);
INSERT INTO gen_alter VALUES (1, 'One'), (2, NULL);
ALTER TABLE gen_alter ADD COLUMN d int GENERATED ALWAYS AS (a * 10) STORED;
ALTER TABLE gen_alter ADD COLUMN u text GENERATED ALWAYS AS (upper(t)) STORED NOT NULL;
ALTER TABLE gen_alter ADD COLUMN u text GENERATED ALWAYS AS (upper(t)) STORED;
ALTER TABLE gen_alter ADD COLUMN z int GENERATED ALWAYS AS (d * 2) STORED;
ALTER TABLE gen_alter ADD COLUMN z int GENERATED ALWAYS AS (z * 2) STORED;
SELECT * FROM gen_alter ORDER BY a;
ALTER TABLE gen_alter ALTER COLUMN d SET DEFAULT 5;
ALTER TABLE gen_alter ALTER COLUMN d DROP DEFAULT;
ALTER TABLE gen_alter ALTER COLUMN d ADD GENERATED ALWAYS AS IDENTITY;
ALTER TABLE gen_alter ALTER COLUMN d DROP NOT NULL;
ALTER TABLE gen_alter ALTER COLUMN d SET NOT NULL;
ALTER TABLE gen_alter ALTER COLUMN a SET DATA TYPE bigint;
ALTER TABLE gen_alter ALTER COLUMN d TYPE bigint USING 5;
ALTER TABLE gen_alter RENAME COLUMN a TO base;
INSERT INTO gen_alter (base) VALUES (7) RETURNING *;
\d gen_alter
ALTER TABLE gen_alter DROP COLUMN base;
ALTER TABLE gen_alter DROP COLUMN base CASCADE;
\d gen_alter
ALTER TABLE gen_alter ALTER COLUMN u DROP EXPRESSION;
ALTER TABLE gen_alter ALTER COLUMN u DROP EXPRESSION;
ALTER TABLE gen_alter ALTER COLUMN u DROP EXPRESSION IF EXISTS;
UPDATE gen_alter SET u = 'own' WHERE t IS NULL;
UPDATE gen_alter SET t = 'two' WHERE t IS NOT NULL;
SELECT * FROM gen_alter ORDER BY 1, 2;
\d gen_alter
ALTER TABLE gen_alter DROP COLUMN t;

-- Dependencies: views, other objects.
CREATE TABLE gen_dep (a int, b int GENERATED ALWAYS AS (a * 2) STORED, c int);
CREATE VIEW gen_view AS SELECT b FROM gen_dep;
ALTER TABLE gen_dep DROP COLUMN a CASCADE;
SELECT * FROM gen_dep;
CREATE TABLE gen_fn (a text, b text GENERATED ALWAYS AS (lower(a) || '!') STORED, c boolean GENERATED ALWAYS AS (a IS NULL) STORED, d int GENERATED ALWAYS AS (length(a)) STORED);
INSERT INTO gen_fn VALUES ('ABC'), (NULL);
SELECT * FROM gen_fn ORDER BY a;
\d gen_fn
CREATE VIEW gen_up AS SELECT a, b FROM gen_fn;
INSERT INTO gen_up VALUES ('Q', 'w');
INSERT INTO gen_up VALUES ('Q', DEFAULT) RETURNING *;
UPDATE gen_up SET a = 'RR' WHERE b = 'q!' RETURNING *;
UPDATE gen_up SET b = 'x';

-- COPY.
COPY gen_fn TO stdout;
COPY (SELECT * FROM gen_fn ORDER BY a) TO stdout;
COPY gen_fn (a, b) TO stdout;
COPY gen_fn (a, b) FROM stdin;
COPY gen_fn FROM stdin;
Copied
\.
SELECT * FROM gen_fn ORDER BY a;

-- Catalog.
SELECT attname, attgenerated, atthasdef, pg_get_expr(adbin, adrelid) FROM pg_attribute a LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum WHERE attrelid = 'gen'::regclass AND attnum > 0 ORDER BY attnum;
SELECT column_name, column_default, is_identity, is_generated, generation_expression, is_updatable FROM information_schema.columns WHERE table_name = 'gen' ORDER BY ordinal_position;
SELECT column_name, dependent_column FROM information_schema.column_column_usage WHERE table_name = 'gen' ORDER BY 1, 2;
CREATE TABLE gen_as AS SELECT * FROM gen;
SELECT attname, attgenerated FROM pg_attribute WHERE attrelid = 'gen_as'::regclass AND attnum > 0 ORDER BY attnum;

-- Row by row, in one transaction, and taken back.
BEGIN;
INSERT INTO gen VALUES (500);
SAVEPOINT s;
UPDATE gen SET a = 501 WHERE a = 500;
SELECT a, b FROM gen WHERE a > 499 ORDER BY a;
ROLLBACK TO s;
SELECT a, b FROM gen WHERE a > 499 ORDER BY a;
ROLLBACK;
SELECT count(*) FROM gen WHERE b = 1000;
PREPARE g AS UPDATE gen SET a = $1 WHERE a = $2 RETURNING a, b;
EXECUTE g(33, 7);
EXECUTE g(34, 33);
DEALLOCATE g;
ALTER TABLE gen_act ALTER COLUMN q TYPE numeric(10, 2);
INSERT INTO gen_act (q) VALUES (DEFAULT) RETURNING *;
SELECT * FROM gen_act;
DROP TABLE gen, gen_checks, gen_x, gen_act, gen_parent, gen_alter, gen_dep, gen_fn, gen_as CASCADE;
-- Whole rows, by the star, and fields of them.
CREATE TABLE whole_g(a int, b bool GENERATED ALWAYS AS (whole_g.* IS NOT NULL) STORED);
CREATE TABLE whole_g(a int, b int GENERATED ALWAYS AS (num_nulls(whole_g.*)) STORED);
CREATE TABLE whole_g(a int, b int GENERATED ALWAYS AS (num_nulls(public.whole_g.*)) STORED);
CREATE TABLE whole_g(a int, b bool GENERATED ALWAYS AS (ROW(whole_g.*) IS NOT NULL) STORED);
CREATE TABLE whole_g(a int, b int GENERATED ALWAYS AS ((whole_g.*).b + 1) STORED);
CREATE TABLE whole_g(a int, b int GENERATED ALWAYS AS ((whole_g).b + 1) STORED);
CREATE TABLE whole_g(a int, b int GENERATED ALWAYS AS ((whole_g.*).a + (whole_g).a) STORED);
INSERT INTO whole_g VALUES (2);
SELECT * FROM whole_g;
DROP TABLE whole_g;
