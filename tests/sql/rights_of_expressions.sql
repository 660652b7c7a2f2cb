-- The right to call a function is asked for wherever an expression that calls it is computed, and what it reads, too.
CREATE ROLE bound_caller;
CREATE SCHEMA bound AUTHORIZATION bound_caller;
GRANT USAGE ON SCHEMA bound TO PUBLIC;
CREATE FUNCTION bound.closed(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT $1 + 1';
CREATE FUNCTION bound.closed_fixed(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1';
REVOKE ALL ON FUNCTION bound.closed(int), bound.closed_fixed(int) FROM PUBLIC;
CREATE TABLE bound.secret (a int);
INSERT INTO bound.secret VALUES (1), (2);
-- CREATE TABLE AS: the relation before the function.
SET ROLE bound_caller;
CREATE TABLE bound.made AS SELECT bound.closed(a) FROM bound.secret;
CREATE TABLE bound.made AS SELECT bound.closed(1);
SELECT bound.closed(a) FROM bound.secret;
CREATE MATERIALIZED VIEW bound.stored AS SELECT bound.closed(a) FROM bound.secret;
CREATE MATERIALIZED VIEW bound.stored AS SELECT bound.closed(1);
RESET ROLE;
-- REFRESH MATERIALIZED VIEW asks for what its owner may call now.
GRANT EXECUTE ON FUNCTION bound.closed(int) TO bound_caller;
GRANT SELECT ON bound.secret TO bound_caller;
SET ROLE bound_caller;
CREATE MATERIALIZED VIEW bound.stored AS SELECT bound.closed(a) AS a FROM bound.secret;
CREATE MATERIALIZED VIEW bound.stored_call AS SELECT bound.closed(1) AS a;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION bound.closed(int) FROM bound_caller;
SET ROLE bound_caller;
REFRESH MATERIALIZED VIEW bound.stored;
REFRESH MATERIALIZED VIEW bound.stored_call;
RESET ROLE;
REVOKE SELECT ON bound.secret FROM bound_caller;
SET ROLE bound_caller;
REFRESH MATERIALIZED VIEW bound.stored;
RESET ROLE;
-- What rows are checked with.
CREATE DOMAIN bound.checked AS int CHECK (bound.closed(VALUE) > 0);
CREATE TABLE bound.of_domain (a bound.checked);
CREATE TABLE bound.of_check (a int CHECK (bound.closed(a) > 0));
CREATE TABLE bound.of_default (a int DEFAULT bound.closed(1), b int);
CREATE TABLE bound.of_generated (a int, b int GENERATED ALWAYS AS (bound.closed_fixed(a)) STORED);
CREATE TABLE bound.of_index (a int);
CREATE INDEX ON bound.of_index (bound.closed_fixed(a));
CREATE TABLE bound.of_predicate (a int);
CREATE INDEX ON bound.of_predicate (a) WHERE bound.closed_fixed(a) > 0;
CREATE TABLE bound.of_trigger (a int);
CREATE FUNCTION bound.note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE TRIGGER asked BEFORE INSERT ON bound.of_trigger FOR EACH ROW WHEN (bound.closed(new.a) > 0) EXECUTE FUNCTION bound.note();
GRANT INSERT, SELECT, UPDATE ON ALL TABLES IN SCHEMA bound TO bound_caller;
SET ROLE bound_caller;
INSERT INTO bound.of_domain VALUES (1);
SELECT 1::bound.checked;
INSERT INTO bound.of_check VALUES (1);
INSERT INTO bound.of_default VALUES (DEFAULT, 1);
INSERT INTO bound.of_default VALUES (1, 1);
INSERT INTO bound.of_generated VALUES (1);
INSERT INTO bound.of_index VALUES (1);
INSERT INTO bound.of_predicate VALUES (1);
INSERT INTO bound.of_trigger VALUES (1);
UPDATE bound.of_domain SET a = 2;
SELECT a FROM bound.of_index WHERE bound.closed_fixed(a) = 1;
INSERT INTO bound.of_index VALUES (1) ON CONFLICT DO NOTHING;
-- What a table's rows are computed with by DDL.
CREATE TABLE bound.own (a int);
INSERT INTO bound.own VALUES (1);
ALTER TABLE bound.own ADD COLUMN b int DEFAULT bound.closed(1);
ALTER TABLE bound.own ADD COLUMN c bound.checked DEFAULT 1;
ALTER TABLE bound.own ADD COLUMN d int GENERATED ALWAYS AS (bound.closed_fixed(a)) STORED;
ALTER TABLE bound.own ADD CHECK (bound.closed(a) > 0);
ALTER TABLE bound.own ALTER COLUMN a TYPE bigint USING bound.closed(a);
ALTER TABLE bound.own ALTER COLUMN a TYPE bound.checked;
CREATE INDEX ON bound.own (bound.closed_fixed(a));
CREATE INDEX ON bound.own (a) WHERE bound.closed_fixed(a) > 0;
ALTER TABLE bound.own ALTER COLUMN a SET DEFAULT bound.closed(1);
CREATE DOMAIN bound.own_checked AS int CHECK (bound.closed(VALUE) > 0);
CREATE DOMAIN bound.own_plain AS int;
CREATE TABLE bound.of_plain (a bound.own_plain);
INSERT INTO bound.of_plain VALUES (1);
ALTER DOMAIN bound.own_plain ADD CHECK (bound.closed(VALUE) > 0);
SELECT * FROM bound.own;
PREPARE taking(int) AS SELECT $1;
EXECUTE taking(bound.closed(1));
EXPLAIN (COSTS OFF) SELECT bound.closed(1);
RESET ROLE;
-- What functions read is asked for as well, after the right to call them.
CREATE FUNCTION bound.reads(int) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT $1 <= max(a) FROM bound.secret';
SET ROLE bound_caller;
SELECT bound.reads(1);
RESET ROLE;
GRANT SELECT ON bound.secret TO bound_caller;
REVOKE EXECUTE ON FUNCTION bound.reads(int) FROM PUBLIC;
SET ROLE bound_caller;
SELECT bound.reads(1);
RESET ROLE;
REVOKE SELECT ON bound.secret FROM bound_caller;
SET ROLE bound_caller;
SELECT bound.reads(1);
SELECT bound.reads(1), a FROM bound.secret;
-- Assignments of PL/pgSQL to a domain.
DO $$ DECLARE v bound.checked; BEGIN v := 1; RAISE NOTICE '%', v; END $$;
DO $$ DECLARE v bound.checked := 2; BEGIN RAISE NOTICE '%', v; END $$;
RESET ROLE;
DO $$ DECLARE v bound.checked; BEGIN v := 1; RAISE NOTICE '%', v; END $$;
-- Triggers of TRUNCATE.
CREATE TABLE bound.emptied (a int);
CREATE FUNCTION bound.tell() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''emptied''; RETURN NULL; END';
CREATE TRIGGER told AFTER TRUNCATE ON bound.emptied WHEN (bound.closed(1) > 0) EXECUTE FUNCTION bound.tell();
GRANT TRUNCATE ON bound.emptied TO bound_caller;
TRUNCATE bound.emptied;
SET ROLE bound_caller;
TRUNCATE bound.emptied;
RESET ROLE;
-- COPY.
SET ROLE bound_caller;
COPY bound.of_default (b) FROM STDIN;
COPY bound.of_default (a, b) FROM STDIN;
1	2
\.
RESET ROLE;
SELECT * FROM bound.of_default ORDER BY a, b;
-- A view reads as its owner, whoever reads it.
CREATE VIEW bound.others AS SELECT a FROM bound.secret;
SELECT * FROM bound.others;
ALTER VIEW bound.others OWNER TO bound_caller;
SELECT * FROM bound.others;
INSERT INTO bound.others VALUES (3);
ALTER VIEW bound.others SET (security_invoker = true);
SELECT * FROM bound.others;
SET client_min_messages = warning;
DROP SCHEMA bound CASCADE;
DROP ROLE bound_caller;
