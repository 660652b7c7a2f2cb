-- Domains: CREATE, ALTER and DROP DOMAIN, every way in which a value comes into one, and what PostgreSQL says of them.
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE DOMAIN posint AS int;
CREATE DOMAIN zip varchar(5) NOT NULL DEFAULT 'none' CONSTRAINT zip_form CHECK (value ~ '^[a-z0-9]+$') CHECK (length(VALUE) > 1);
CREATE DOMAIN even posint CONSTRAINT even_even CHECK (VALUE % 2 = 0) CONSTRAINT even_big CHECK (VALUE < 1000);
CREATE DOMAIN plain AS numeric(6,2) DEFAULT 1.5;
CREATE DOMAIN sorted AS text COLLATE "C" DEFAULT 'x';
CREATE DOMAIN ordered AS int DEFAULT (1 + 2) * 3 NOT NULL CHECK (VALUE > 0);
CREATE TABLE dom_o (a ordered, b int);
INSERT INTO dom_o (b) VALUES (1);
SELECT a FROM dom_o;
DROP TABLE dom_o;
DROP DOMAIN ordered;
CREATE DOMAIN bad AS int DEFAULT true;
CREATE DOMAIN bad AS int DEFAULT 'abc';
CREATE DOMAIN bad AS int CHECK (x > 0);
CREATE DOMAIN bad AS int CHECK (VALUE);
CREATE DOMAIN bad AS int CHECK (VALUE > (SELECT 1));
CREATE DOMAIN bad AS int CHECK (count(VALUE) > 1);
CREATE DOMAIN bad AS int COLLATE "C";
CREATE DOMAIN bad AS nosuch;
CREATE DOMAIN bad AS record;
CREATE DOMAIN bad AS int UNIQUE;
CREATE DOMAIN bad AS int PRIMARY KEY;
CREATE DOMAIN bad AS int REFERENCES t;
CREATE DOMAIN bad AS int NULL NOT NULL;
CREATE DOMAIN bad AS int DEFAULT 1 DEFAULT 2;
CREATE DOMAIN bad AS int CONSTRAINT c CHECK (VALUE > 0) CONSTRAINT c CHECK (VALUE > 1);
SELECT 1::posint, '7'::posint, 2.6::posint, CAST(NULL AS posint);
SELECT 0::posint;
SELECT '-1'::posint;
SELECT 'x'::posint;
SELECT true::posint;
SELECT NULL::zip;
SELECT 'toolong'::zip, 'ab'::zip;
SELECT 'A!'::zip;
SELECT 'a'::zip;
SELECT 4::even, 4::even + 1, 4::even::posint, 4::posint::even;
SELECT (-4)::even;
SELECT 5::even;
SELECT 5::posint::even;
SELECT 2000::even;
SELECT 12345.678::plain;
SELECT 1.239::plain;
SELECT pg_typeof(1::posint), pg_typeof(1::posint + 1), pg_typeof('{1}'::posint[]), pg_typeof(4::even);
SELECT '{1,2,NULL}'::posint[];
SELECT '{1,-2}'::posint[];
SELECT ARRAY[1, 0]::posint[];
SELECT ARRAY[1, 2]::posint[], (ARRAY[1, 2]::posint[])[2];
SELECT 'posint'::regtype, 'posint[]'::regtype, '_posint'::regtype;
SELECT CASE WHEN true THEN 1::posint ELSE 0 END AS c, coalesce(NULL, 1::posint) AS d, greatest(1::posint, 2) AS e;
CREATE TABLE dom_a (id int PRIMARY KEY, p posint, z zip, e even DEFAULT 10, n plain, ps posint[]);
INSERT INTO dom_a (id, p) VALUES (1, 5);
INSERT INTO dom_a (id, p, z) VALUES (2, 0, 'ab');
INSERT INTO dom_a (id, p, z) VALUES (2, 1, NULL);
INSERT INTO dom_a (id, p, z) VALUES (2, NULL, 'ab');
INSERT INTO dom_a (id, p, z) VALUES (3, 3, 'toolong');
INSERT INTO dom_a (id, p, z) VALUES (3, 3, 'a');
INSERT INTO dom_a (id, p, z) VALUES (3, true, 'ab');
INSERT INTO dom_a (id, p, z, e) VALUES (3, 3, 'ab', 3);
INSERT INTO dom_a (id, p, z, n) VALUES (3, 3, 'ab', 12345);
INSERT INTO dom_a (id, ps) VALUES (3, '{1,0}');
INSERT INTO dom_a (id, ps) VALUES (3, ARRAY[3, 4]);
INSERT INTO dom_a SELECT 4, 0;
INSERT INTO dom_a SELECT 4, x FROM (VALUES (8), (-9)) v (x);
INSERT INTO dom_a SELECT 4, p, z, e FROM dom_a WHERE id = 1;
INSERT INTO dom_a (id, p) VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET p = -1;
INSERT INTO dom_a (id, p) VALUES (1, 6) ON CONFLICT (id) DO UPDATE SET p = excluded.p;
SELECT * FROM dom_a ORDER BY id;
UPDATE dom_a SET p = p - 100;
UPDATE dom_a SET p = p, z = NULL;
UPDATE dom_a SET (p, e) = (1, 3);
UPDATE dom_a SET (p, e) = (SELECT 1, -2);
UPDATE dom_a SET p = DEFAULT, z = DEFAULT, e = DEFAULT, n = DEFAULT WHERE id = 1;
UPDATE dom_a SET p = p + 1 WHERE id = 4 RETURNING p, pg_typeof(p), pg_typeof(p + 1), pg_typeof(ps);
SELECT * FROM dom_a ORDER BY id;
SELECT id FROM dom_a WHERE p = 5 OR e > 9 ORDER BY p, id;
SELECT z || '!' AS shout, p * 2 AS twice, length(z), max(p) OVER () FROM dom_a ORDER BY id;
SELECT p, count(*) FROM dom_a GROUP BY p ORDER BY p;
\set VERBOSITY verbose
SELECT 0::posint;
SELECT NULL::zip;
INSERT INTO dom_a (id, e) VALUES (9, 7);
\set VERBOSITY default
COPY dom_a (id, p, z) FROM stdin;
10	1	cd
11	0	ef
\.
COPY dom_a (id, p, z) FROM stdin;
12	1	\N
\.
COPY dom_a (id, p) FROM stdin;
13	77
\.
COPY (SELECT id, p, z FROM dom_a ORDER BY id) TO stdout;
PREPARE dom_p (posint, zip) AS SELECT $1, $2;
EXECUTE dom_p (1, 'ab');
EXECUTE dom_p (0, 'ab');
EXECUTE dom_p (1, NULL);
DEALLOCATE dom_p;
PREPARE dom_i AS INSERT INTO dom_a (id, p, z) VALUES ($1, $2, $3);
EXECUTE dom_i (14, 1, 'gh');
EXECUTE dom_i (15, -1, 'gh');
EXECUTE dom_i (15, 1, 'a');
DEALLOCATE dom_i;
SELECT to_jsonb(d) -> 'p' AS p, (d).z FROM dom_a d WHERE id = 1;
-- Tables that change.
CREATE TABLE dom_b (id int);
INSERT INTO dom_b VALUES (1), (-2);
ALTER TABLE dom_b ADD COLUMN z zip;
ALTER TABLE dom_b ADD COLUMN p posint;
ALTER TABLE dom_b ADD COLUMN q posint DEFAULT 0;
ALTER TABLE dom_b ADD COLUMN q posint DEFAULT 3;
ALTER TABLE dom_b ADD COLUMN r zip DEFAULT NULL;
ALTER TABLE dom_b ALTER COLUMN id TYPE posint;
ALTER TABLE dom_b ALTER COLUMN id TYPE posint USING abs(id);
ALTER TABLE dom_b ALTER COLUMN id TYPE zip;
ALTER TABLE dom_b ALTER COLUMN z TYPE text;
ALTER TABLE dom_b ALTER COLUMN q SET DEFAULT NULL;
ALTER TABLE dom_b ALTER COLUMN q SET DEFAULT true;
INSERT INTO dom_b DEFAULT VALUES;
SELECT * FROM dom_b ORDER BY id;
\d dom_b
ALTER TABLE dom_b ADD CONSTRAINT small CHECK (id < 100 AND p IS NULL OR q BETWEEN 1 AND 5);
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'dom_b'::regclass;
CREATE TABLE dom_g (a posint, b posint GENERATED ALWAYS AS (a - 5) STORED);
INSERT INTO dom_g VALUES (6);
INSERT INTO dom_g VALUES (5);
DROP TABLE dom_g;
CREATE TABLE dom_serial (a posint GENERATED ALWAYS AS IDENTITY);
CREATE TABLE dom_c AS SELECT p, z, 1::posint AS one, p + 1 AS sum FROM dom_a;
\d dom_c
CREATE VIEW dom_v AS SELECT p, 2::even AS two, ps FROM dom_a;
\d dom_v
SELECT * FROM dom_v ORDER BY p LIMIT 2;
CREATE VIEW dom_w AS SELECT z || 'x' AS s, ps[1] AS first FROM dom_a WHERE p > 1 AND e BETWEEN 2 AND 4;
SELECT pg_get_viewdef('dom_w'::regclass);
DROP VIEW dom_w;
CREATE TABLE dom_arr (e sorted[]);
\d dom_arr
DROP TABLE dom_arr;
-- Keys.
CREATE TABLE dom_key (id posint PRIMARY KEY);
CREATE TABLE dom_ref (id posint REFERENCES dom_key ON UPDATE CASCADE ON DELETE SET NULL, e even REFERENCES dom_key ON UPDATE CASCADE);
CREATE TABLE dom_refnn (z even NOT NULL REFERENCES dom_key ON DELETE SET NULL);
INSERT INTO dom_key VALUES (2), (4), (6);
INSERT INTO dom_ref VALUES (2, 4);
UPDATE dom_key SET id = 8 WHERE id = 4;
\set VERBOSITY terse
UPDATE dom_key SET id = 9 WHERE id = 8;
DELETE FROM dom_key WHERE id = 2;
SELECT * FROM dom_ref;
CREATE DOMAIN full_even AS even NOT NULL;
ALTER TABLE dom_ref ADD COLUMN f full_even DEFAULT 6 REFERENCES dom_key ON DELETE SET NULL;
DELETE FROM dom_key WHERE id = 6;
\set VERBOSITY default
SELECT * FROM dom_key ORDER BY id;
DROP TABLE dom_ref, dom_refnn, dom_key;
DROP DOMAIN full_even;
-- ALTER DOMAIN.
ALTER DOMAIN nosuch SET NOT NULL;
ALTER DOMAIN posint SET NOT NULL;
ALTER DOMAIN even ADD CONSTRAINT ten CHECK (VALUE > 10);
ALTER DOMAIN even ADD CHECK (VALUE > 0);
ALTER DOMAIN even ADD CONSTRAINT even_check CHECK (VALUE > 0);
ALTER DOMAIN even ADD CONSTRAINT ten CHECK (VALUE > 10) NOT VALID;
INSERT INTO dom_a (id, e) VALUES (20, 8);
ALTER DOMAIN even VALIDATE CONSTRAINT ten;
ALTER DOMAIN even VALIDATE CONSTRAINT nosuch;
UPDATE dom_a SET e = 12;
ALTER DOMAIN even VALIDATE CONSTRAINT ten;
ALTER DOMAIN even RENAME CONSTRAINT ten TO eleven;
ALTER DOMAIN even RENAME CONSTRAINT ten TO twelve;
ALTER DOMAIN even RENAME CONSTRAINT eleven TO even_even;
ALTER DOMAIN even DROP CONSTRAINT eleven;
ALTER DOMAIN even DROP CONSTRAINT eleven;
ALTER DOMAIN even DROP CONSTRAINT IF EXISTS eleven;
ALTER DOMAIN even SET DEFAULT 44;
ALTER DOMAIN even SET DEFAULT 'x';
CREATE TABLE dom_d (e even, x int);
INSERT INTO dom_d (x) VALUES (1);
ALTER DOMAIN even DROP DEFAULT;
INSERT INTO dom_d (x) VALUES (2);
SELECT * FROM dom_d ORDER BY x;
ALTER DOMAIN zip DROP NOT NULL;
SELECT NULL::zip;
ALTER DOMAIN posint ADD CHECK (VALUE < 50);
ALTER DOMAIN plain SET NOT NULL;
ALTER TABLE dom_a DROP COLUMN ps;
ALTER TABLE dom_a DROP COLUMN ps CASCADE;
ALTER DOMAIN posint ADD CHECK (VALUE < 50);
UPDATE dom_a SET n = 1;
ALTER DOMAIN plain SET NOT NULL;
ALTER DOMAIN plain RENAME TO cash;
ALTER DOMAIN cash OWNER TO nosuchrole;
\dD
SELECT typname, typtype, typcategory, typlen, typnotnull, typbasetype::regtype, typtypmod, typdefault, typelem::regtype, typinput, typoutput, typreceive, typsend, typcollation FROM pg_type WHERE typname IN ('posint', 'zip', 'even', 'cash', '_even') ORDER BY typname;
SELECT conname, contype, convalidated, conrelid, contypid::regtype, pg_get_constraintdef(oid) FROM pg_constraint WHERE contypid <> 0 AND connamespace = 'public'::regnamespace ORDER BY conname;
SELECT domain_schema, domain_name, data_type, character_maximum_length, numeric_precision, numeric_scale, domain_default, udt_name FROM information_schema.domains WHERE domain_schema = 'public' ORDER BY domain_name;
SELECT constraint_name, domain_name, is_deferrable FROM information_schema.domain_constraints WHERE domain_schema = 'public' ORDER BY 1;
SELECT column_name, data_type, domain_schema, domain_name, udt_name, is_nullable, character_maximum_length FROM information_schema.columns WHERE table_name = 'dom_a' ORDER BY ordinal_position;
SELECT check_clause FROM information_schema.check_constraints WHERE constraint_name = 'even_even';
SELECT attname, atttypid::regtype, atttypmod, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'dom_a'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum;
COMMENT ON DOMAIN even IS 'no odd ones';
COMMENT ON CONSTRAINT even_even ON DOMAIN even IS 'this';
COMMENT ON CONSTRAINT nosuch ON DOMAIN even IS 'this';
SELECT obj_description('even'::regtype, 'pg_type');
SELECT obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conname = 'even_even';
CREATE SCHEMA dom_s;
ALTER DOMAIN even SET SCHEMA dom_s;
SELECT 7::dom_s.even;
SELECT typnamespace::regnamespace FROM pg_type WHERE typname = 'even';
ALTER DOMAIN dom_s.even SET SCHEMA public;
DROP SCHEMA dom_s;
-- Domains over enums and arrays.
CREATE TYPE dom_mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN good_mood AS dom_mood DEFAULT 'ok' CHECK (VALUE > 'sad');
CREATE DOMAIN pair AS int[] CHECK (array_length(VALUE, 1) = 2);
CREATE DOMAIN pospair AS posint[] CHECK (array_length(VALUE, 1) = 2);
SELECT 'happy'::good_mood, '{1,2}'::pair, ('{1,2}'::pair)[2], '{3,4}'::pospair;
SELECT 'sad'::good_mood;
SELECT '{1}'::pair;
SELECT '{0,4}'::pospair;
CREATE TABLE dom_m (m good_mood, a pair, b pospair);
INSERT INTO dom_m VALUES (DEFAULT, '{5,6}', '{7,8}');
INSERT INTO dom_m VALUES ('sad');
INSERT INTO dom_m VALUES ('ok', '{1,2,3}');
INSERT INTO dom_m VALUES ('ok', '{1,2}', '{1,-2}');
SELECT * FROM dom_m WHERE m::text = 'ok' AND a @> '{5}';
ALTER TYPE dom_mood RENAME VALUE 'sad' TO 'blue';
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contypid = 'good_mood'::regtype;
SELECT 'blue'::good_mood;
-- DROP.
DROP DOMAIN dom_mood;
DROP TYPE dom_mood;
DROP DOMAIN even;
DROP DOMAIN nosuch;
DROP DOMAIN IF EXISTS nosuch;
DROP TYPE dom_mood CASCADE;
\d dom_m
DROP DOMAIN posint;
DROP DOMAIN posint CASCADE;
\d dom_a
DROP DOMAIN zip, cash, sorted, pair CASCADE;
DROP TABLE dom_a, dom_b, dom_c, dom_d, dom_m;
