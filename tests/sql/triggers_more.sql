-- Constraint triggers: put off, and brought about.
CREATE TABLE tgm_t (id int PRIMARY KEY, v int);
CREATE TABLE tgm_log (n int GENERATED ALWAYS AS IDENTITY, line text);
CREATE FUNCTION tgm_sum() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% % of % sees %', TG_NAME, TG_OP, NEW, (SELECT sum(v) FROM tgm_t);
  IF (SELECT sum(v) FROM tgm_t) > 100 THEN RAISE EXCEPTION 'too much: %', NEW.v USING ERRCODE = 'check_violation'; END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER sums AFTER INSERT OR UPDATE OF v ON tgm_t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.v <> 0) EXECUTE FUNCTION tgm_sum();
CREATE CONSTRAINT TRIGGER now AFTER DELETE ON tgm_t FROM tgm_log FOR EACH ROW EXECUTE FUNCTION tgm_sum('a');
CREATE CONSTRAINT TRIGGER maybe AFTER DELETE ON tgm_t DEFERRABLE FOR EACH ROW EXECUTE PROCEDURE tgm_sum();
INSERT INTO tgm_t VALUES (1, 10), (2, 20), (3, 0);
INSERT INTO tgm_t VALUES (4, 100);
SELECT * FROM tgm_t ORDER BY id;
BEGIN;
INSERT INTO tgm_t VALUES (4, 100);
UPDATE tgm_t SET v = 1 WHERE id = 4;
COMMIT;
BEGIN;
INSERT INTO tgm_t VALUES (5, 100);
SELECT count(*) FROM tgm_t;
COMMIT;
SELECT count(*) FROM tgm_t;
BEGIN;
SAVEPOINT a;
INSERT INTO tgm_t VALUES (5, 100);
ROLLBACK TO a;
INSERT INTO tgm_t VALUES (6, 6);
SET CONSTRAINTS sums IMMEDIATE;
INSERT INTO tgm_t VALUES (7, 7);
DELETE FROM tgm_t WHERE id = 7;
SET CONSTRAINTS maybe DEFERRED;
DELETE FROM tgm_t WHERE id = 6;
ROLLBACK;
BEGIN;
SET CONSTRAINTS now DEFERRED;
ROLLBACK;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
DELETE FROM tgm_t WHERE id = 2;
ALTER TABLE tgm_t ADD COLUMN w int;
ROLLBACK;
BEGIN;
INSERT INTO tgm_t VALUES (8, 200);
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
-- What they write puts more off.
CREATE FUNCTION tgm_chain() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO tgm_log (line) VALUES (NEW.line || '+');
  NOTIFY tgm_chain;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER chain AFTER INSERT ON tgm_log INITIALLY DEFERRED FOR EACH ROW WHEN (length(NEW.line) < 4) EXECUTE FUNCTION tgm_chain();
INSERT INTO tgm_log (line) VALUES ('a');
SELECT line FROM tgm_log ORDER BY n;
DO $$ BEGIN INSERT INTO tgm_log (line) VALUES ('bb'); RAISE NOTICE '%', (SELECT count(*) FROM tgm_log); END $$;
SELECT line FROM tgm_log ORDER BY n;
\d tgm_t
SELECT conname, contype, condeferrable, condeferred, conkey FROM pg_constraint WHERE conrelid = 'tgm_t'::regclass ORDER BY 1;
SELECT tgname, tgdeferrable, tginitdeferred, tgconstrrelid::regclass, tgconstraint <> 0 FROM pg_trigger WHERE tgrelid = 'tgm_t'::regclass AND NOT tgisinternal ORDER BY 1;
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'tgm_t'::regclass AND NOT tgisinternal ORDER BY tgname;
CREATE OR REPLACE CONSTRAINT TRIGGER now AFTER DELETE ON tgm_t FOR EACH ROW EXECUTE FUNCTION tgm_sum();
CREATE OR REPLACE TRIGGER now AFTER DELETE ON tgm_t FOR EACH ROW EXECUTE FUNCTION tgm_sum();
CREATE CONSTRAINT TRIGGER bad BEFORE DELETE ON tgm_t FOR EACH ROW EXECUTE FUNCTION tgm_sum();
CREATE CONSTRAINT TRIGGER bad AFTER DELETE ON tgm_t NOT DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tgm_sum();
DROP TABLE tgm_t, tgm_log;
-- Tables of the rows that a statement has changed.
CREATE TABLE tgm_t (id int PRIMARY KEY, v int, note text);
CREATE TABLE tgm_c (id int PRIMARY KEY, t int REFERENCES tgm_t ON DELETE CASCADE);
CREATE FUNCTION tgm_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% %: %', TG_NAME, TG_OP, (SELECT string_agg(n.id || '/' || coalesce(n.v, 0), ', ' ORDER BY n.id) FROM new_rows n);
  RETURN NULL;
END $$;
CREATE FUNCTION tgm_both() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT o.id, o.v AS before, n.v AS after FROM gone o FULL JOIN new_rows n USING (id) ORDER BY 1 LOOP RAISE NOTICE '%: %', TG_NAME, r; END LOOP;
  RETURN NULL;
END $$;
CREATE FUNCTION tgm_old() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% % of %: % rows', TG_NAME, TG_OP, OLD, (SELECT count(*) FROM gone WHERE gone IS NOT NULL);
  RETURN NULL;
END $$;
CREATE TRIGGER i AFTER INSERT ON tgm_t REFERENCING NEW TABLE AS new_rows EXECUTE FUNCTION tgm_new();
CREATE TRIGGER u AFTER UPDATE ON tgm_t REFERENCING NEW TABLE new_rows OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tgm_both();
CREATE TRIGGER u2 AFTER UPDATE ON tgm_t REFERENCING OLD TABLE AS new_rows EXECUTE FUNCTION tgm_new();
CREATE TRIGGER d AFTER DELETE ON tgm_t REFERENCING OLD TABLE AS gone FOR EACH ROW EXECUTE FUNCTION tgm_old();
CREATE TRIGGER c AFTER DELETE ON tgm_c REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tgm_old();
INSERT INTO tgm_t VALUES (1, 10), (2, 20), (3, 30);
INSERT INTO tgm_t SELECT 9, 9, 'no' WHERE false;
UPDATE tgm_t SET v = v + 1 WHERE id < 3;
INSERT INTO tgm_t VALUES (3, 33), (4, 40) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO tgm_c VALUES (1, 1), (2, 1), (3, 2), (4, 3);
MERGE INTO tgm_t USING (VALUES (4, 44), (5, 55)) s (id, v) ON s.id = tgm_t.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v);
COPY tgm_t FROM stdin;
6	60	\N
7	70	x
\.
DELETE FROM tgm_t WHERE id < 3;
ALTER TABLE tgm_t DROP COLUMN v;
ALTER TABLE tgm_t ADD COLUMN v int DEFAULT 5;
UPDATE tgm_t SET v = 6 WHERE id = 4;
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'tgm_t'::regclass AND NOT tgisinternal ORDER BY tgname;
SELECT tgname, tgoldtable, tgnewtable FROM pg_trigger WHERE tgrelid = 'tgm_t'::regclass AND NOT tgisinternal ORDER BY 1;
SELECT action_reference_old_table, action_reference_new_table FROM information_schema.triggers WHERE trigger_name = 'u';
SELECT * FROM new_rows;
CREATE TRIGGER bad BEFORE UPDATE ON tgm_t REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION tgm_new();
CREATE TRIGGER bad AFTER UPDATE OR INSERT ON tgm_t REFERENCING NEW TABLE AS n EXECUTE FUNCTION tgm_new();
CREATE TRIGGER bad AFTER UPDATE OF v ON tgm_t REFERENCING NEW TABLE AS n EXECUTE FUNCTION tgm_new();
CREATE TRIGGER bad AFTER INSERT ON tgm_t REFERENCING OLD TABLE AS n EXECUTE FUNCTION tgm_new();
CREATE TRIGGER bad AFTER DELETE ON tgm_t REFERENCING NEW TABLE AS n EXECUTE FUNCTION tgm_new();
CREATE TRIGGER bad AFTER UPDATE ON tgm_t REFERENCING NEW TABLE AS n OLD TABLE AS n EXECUTE FUNCTION tgm_new();
CREATE TRIGGER bad AFTER UPDATE ON tgm_t REFERENCING NEW ROW AS n EXECUTE FUNCTION tgm_new();
CREATE TRIGGER bad AFTER TRUNCATE ON tgm_t REFERENCING NEW TABLE AS n EXECUTE FUNCTION tgm_new();
-- A function of the name by which rows of transition tables are read is not taken for the built-in one; a trigger's function is no table.
CREATE FUNCTION unnest(tgm_t[]) RETURNS SETOF int LANGUAGE sql AS 'SELECT 666';
INSERT INTO tgm_t VALUES (8, 80);
DROP FUNCTION unnest(tgm_t[]);
SELECT * FROM tgm_new();
SELECT (SELECT f FROM tgm_new() f);
SELECT tgm_new();
DROP TABLE tgm_c, tgm_t;
DROP FUNCTION tgm_sum, tgm_chain, tgm_new, tgm_both, tgm_old;
