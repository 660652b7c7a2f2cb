-- CREATE TABLE (LIKE ...): what is copied of a relation, and what is not.

CREATE TABLE lk_parent (id int PRIMARY KEY);
CREATE TYPE lk_mood AS ENUM ('sad', 'ok');
CREATE TABLE lk_t (
  id int GENERATED ALWAYS AS IDENTITY (START 5 INCREMENT 5 MAXVALUE 1000),
  s serial,
  name varchar(10) NOT NULL DEFAULT 'nobody',
  mood lk_mood DEFAULT 'ok',
  n numeric(6,2) CHECK (n > 0),
  twice numeric GENERATED ALWAYS AS (n * 2) STORED,
  parent int REFERENCES lk_parent,
  PRIMARY KEY (id, name),
  CONSTRAINT lk_long CHECK (length(name) < 9),
  UNIQUE (n) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX lk_own ON lk_t (lower(name), n DESC) WHERE n > 5;
CREATE UNIQUE INDEX lk_u ON lk_t (s) INCLUDE (mood) WITH (fillfactor = 70);
COMMENT ON COLUMN lk_t.n IS 'a number';
COMMENT ON CONSTRAINT lk_long ON lk_t IS 'not too long';
COMMENT ON INDEX lk_own IS 'an index';
COMMENT ON TABLE lk_t IS 'a table';
-- Nothing but columns, their types and NOT NULL.
CREATE TABLE lk_a (LIKE lk_t);
\d lk_a
-- All of it.
CREATE TABLE lk_b (LIKE lk_t INCLUDING ALL);
\d lk_b
SELECT indexdef FROM pg_indexes WHERE tablename = 'lk_b' ORDER BY 1;
SELECT col_description('lk_b'::regclass, 5), obj_description('lk_b'::regclass), obj_description('lk_b_lower_n_idx'::regclass);
SELECT conname, obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conrelid = 'lk_b'::regclass ORDER BY 1;
INSERT INTO lk_b (n) VALUES (7) RETURNING id, name, mood, n, twice;
INSERT INTO lk_b (n) VALUES (8) RETURNING id;
INSERT INTO lk_b (n, name) VALUES (8, 'far too long');
INSERT INTO lk_b (n) VALUES (-1);
SELECT relname FROM pg_class WHERE relname LIKE 'lk\_%seq' ORDER BY 1;
-- One by one; between other columns, and twice over.
CREATE TABLE lk_c (first int, LIKE lk_t INCLUDING DEFAULTS INCLUDING CONSTRAINTS, last text);
\d lk_c
CREATE TABLE lk_d (LIKE lk_t INCLUDING ALL EXCLUDING INDEXES EXCLUDING IDENTITY EXCLUDING DEFAULTS EXCLUDING GENERATED EXCLUDING CONSTRAINTS);
\d lk_d
CREATE TABLE lk_e (LIKE lk_t INCLUDING GENERATED, LIKE lk_parent INCLUDING INDEXES);
CREATE TABLE lk_e (LIKE lk_parent INCLUDING INDEXES, extra int UNIQUE, CHECK (extra > id));
\d lk_e
CREATE TABLE lk_f (x int, LIKE lk_t INCLUDING INDEXES);
SELECT indexdef FROM pg_indexes WHERE tablename = 'lk_f' ORDER BY 1;
-- Views; what cannot be copied from.
CREATE VIEW lk_v AS SELECT id, name || '!' AS loud FROM lk_t;
CREATE TABLE lk_g (LIKE lk_v INCLUDING ALL);
\d lk_g
CREATE SEQUENCE lk_s;
CREATE TABLE lk_h (LIKE lk_s);
CREATE TABLE lk_h (LIKE lk_gone);
CREATE TABLE lk_h (LIKE lk_t INCLUDING EVERYTHING);
CREATE TABLE lk_h (LIKE public.lk_parent);
CREATE TEMP TABLE lk_tmp (LIKE lk_parent INCLUDING ALL) ON COMMIT DROP;
-- Privileges.
CREATE ROLE lk_role;
CREATE SCHEMA lk_schema AUTHORIZATION lk_role;
SET ROLE lk_role;
CREATE TABLE lk_schema.t (LIKE public.lk_t);
RESET ROLE;
-- Those on columns do not do; system relations are asked like others.
CREATE TABLE lk_part (a int, b int);
GRANT SELECT (a, b) ON lk_part TO lk_role;
SET ROLE lk_role;
CREATE TABLE lk_schema.p (LIKE public.lk_part);
CREATE TABLE lk_schema.p (LIKE pg_authid);
CREATE TABLE lk_schema.p (LIKE pg_namespace);
DROP TABLE lk_schema.p;
RESET ROLE;
GRANT SELECT ON lk_part TO lk_role;
ALTER TABLE lk_part DROP COLUMN a;
SET ROLE lk_role;
CREATE TABLE lk_schema.p (LIKE public.lk_part);
RESET ROLE;
DROP TABLE lk_part, lk_schema.p;
GRANT SELECT ON lk_t TO lk_role;
SET ROLE lk_role;
CREATE TABLE lk_schema.t (LIKE public.lk_t);
RESET ROLE;
-- Other words of CREATE TABLE.
CREATE UNLOGGED TABLE lk_u1 (a int) WITH (fillfactor = 50, autovacuum_enabled = false);
SELECT reloptions FROM pg_class WHERE relname = 'lk_u1';
DROP SCHEMA lk_schema CASCADE;
DROP TABLE lk_a, lk_b, lk_c, lk_d, lk_e, lk_f, lk_g, lk_h, lk_u1;
DROP SEQUENCE lk_s;
DROP VIEW lk_v;
DROP TABLE lk_t, lk_parent;
DROP TYPE lk_mood;
DROP ROLE lk_role;
