-- Triggers: rows before and after they are written, statements, conditions, and what the catalog shows.
CREATE TABLE tg_log (n int GENERATED ALWAYS AS IDENTITY, line text);
CREATE TABLE tg_t (id int PRIMARY KEY, v int, note varchar(8), twice int GENERATED ALWAYS AS (v * 2) STORED);
CREATE FUNCTION tg_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO tg_log (line) VALUES (concat_ws(' ', TG_NAME, TG_WHEN, TG_LEVEL, TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_NARGS, TG_ARGV[0], OLD.v, NEW.v));
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION tg_tell_all() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO tg_log (line) VALUES (concat_ws(' ', TG_NAME, TG_WHEN, TG_LEVEL, TG_OP));
  RETURN NULL;
END $$;
CREATE FUNCTION tg_double() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v + 100; RETURN NEW; END $$;
CREATE FUNCTION tg_skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER b_tell BEFORE INSERT OR UPDATE OR DELETE ON tg_t FOR EACH ROW EXECUTE FUNCTION tg_tell('one', 2, three);
CREATE TRIGGER a_double BEFORE INSERT OR UPDATE OF v ON tg_t FOR EACH ROW WHEN (NEW.v < 50) EXECUTE FUNCTION tg_double();
CREATE TRIGGER c_skip BEFORE INSERT ON tg_t FOR EACH ROW WHEN (NEW.id < 0) EXECUTE FUNCTION tg_skip();
CREATE TRIGGER z_after AFTER INSERT OR UPDATE OR DELETE ON tg_t FOR EACH ROW EXECUTE PROCEDURE tg_tell();
CREATE TRIGGER s_before BEFORE INSERT OR UPDATE OR DELETE ON tg_t EXECUTE FUNCTION tg_tell_all();
CREATE TRIGGER s_after AFTER INSERT OR UPDATE OR DELETE ON tg_t FOR EACH STATEMENT EXECUTE FUNCTION tg_tell_all();
INSERT INTO tg_t VALUES (1, 1, 'a'), (2, 60, 'b'), (-3, 3, 'c') RETURNING *;
SELECT line FROM tg_log ORDER BY n;
TRUNCATE tg_log;
UPDATE tg_t SET note = 'x' WHERE id = 1 RETURNING *;
UPDATE tg_t SET v = 7 WHERE id = 1 RETURNING id, v, twice;
UPDATE tg_t SET v = 70 WHERE id = 2 RETURNING id, v, twice;
DELETE FROM tg_t WHERE id = 2 RETURNING *;
UPDATE tg_t SET v = 1 WHERE false;
SELECT line FROM tg_log ORDER BY n;
TRUNCATE tg_log;
INSERT INTO tg_t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET v = excluded.v + 1 RETURNING *;
MERGE INTO tg_t USING (VALUES (1, 9), (4, 9)) s (id, v) ON tg_t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v);
SELECT line FROM tg_log ORDER BY n;
-- What the catalog shows.
SELECT tgname, tgtype, tgenabled, tgnargs, tgattr FROM pg_trigger WHERE tgrelid = 'tg_t'::regclass ORDER BY 1;
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'tg_t'::regclass ORDER BY tgname;
SELECT trigger_name, event_manipulation, action_order, action_condition, action_orientation, action_timing FROM information_schema.triggers WHERE event_object_table = 'tg_t' ORDER BY 1, 2;
ALTER TABLE tg_t RENAME COLUMN v TO w;
SELECT pg_get_triggerdef(oid, true) FROM pg_trigger WHERE tgname = 'a_double';
ALTER TABLE tg_t RENAME COLUMN w TO v;
ALTER TABLE tg_t ALTER COLUMN v TYPE bigint;
DROP FUNCTION tg_double();
ALTER TABLE tg_t DROP COLUMN v;
-- On and off.
ALTER TABLE tg_t DISABLE TRIGGER ALL;
TRUNCATE tg_log;
UPDATE tg_t SET v = 1;
SELECT count(*) FROM tg_log;
ALTER TABLE tg_t ENABLE TRIGGER z_after;
UPDATE tg_t SET v = 2 WHERE id = 1;
SELECT line FROM tg_log ORDER BY n;
ALTER TABLE tg_t ENABLE TRIGGER nobody;
ALTER TRIGGER z_after ON tg_t RENAME TO y_after;
DROP TRIGGER z_after ON tg_t;
DROP TRIGGER IF EXISTS z_after ON tg_t;
-- Refused.
CREATE TRIGGER bad BEFORE INSERT ON tg_t FOR EACH ROW WHEN (OLD.v > 1) EXECUTE FUNCTION tg_tell();
CREATE TRIGGER bad BEFORE UPDATE ON tg_t FOR EACH ROW WHEN (NEW.twice > 1) EXECUTE FUNCTION tg_tell();
CREATE TRIGGER bad BEFORE UPDATE ON tg_t WHEN (NEW.v > 1) EXECUTE FUNCTION tg_tell();
CREATE TRIGGER bad INSTEAD OF UPDATE ON tg_t FOR EACH ROW EXECUTE FUNCTION tg_tell();
CREATE TRIGGER y_after AFTER UPDATE ON tg_t FOR EACH ROW EXECUTE FUNCTION tg_tell();
CREATE FUNCTION tg_none() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE TABLE tg_u (a int);
CREATE TRIGGER t BEFORE INSERT ON tg_u FOR EACH ROW EXECUTE FUNCTION tg_none();
INSERT INTO tg_u VALUES (1);
-- Actions of foreign keys.
CREATE TABLE tg_p (id int PRIMARY KEY);
CREATE TABLE tg_c (id int PRIMARY KEY, p int REFERENCES tg_p ON DELETE SET NULL, v int);
INSERT INTO tg_p VALUES (1);
INSERT INTO tg_c VALUES (1, 1, 0), (2, 1, 0);
CREATE TRIGGER before BEFORE UPDATE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_double();
CREATE TRIGGER later AFTER UPDATE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_tell();
TRUNCATE tg_log;
DELETE FROM tg_p;
SELECT * FROM tg_c ORDER BY id;
SELECT line FROM tg_log ORDER BY n;
DROP TABLE tg_c, tg_p;
-- Statements' triggers of tables that actions change: once, even without rows.
CREATE TABLE tg_p (id int PRIMARY KEY, up int REFERENCES tg_p ON DELETE CASCADE);
CREATE TABLE tg_c (id int PRIMARY KEY, p int REFERENCES tg_p ON DELETE CASCADE ON UPDATE CASCADE, v int);
CREATE TRIGGER p_b BEFORE DELETE ON tg_p EXECUTE FUNCTION tg_tell_all();
CREATE TRIGGER p_a AFTER DELETE ON tg_p EXECUTE FUNCTION tg_tell_all();
CREATE TRIGGER c_b BEFORE DELETE OR UPDATE ON tg_c EXECUTE FUNCTION tg_tell_all();
CREATE TRIGGER c_a AFTER DELETE OR UPDATE ON tg_c EXECUTE FUNCTION tg_tell_all();
CREATE TRIGGER c_of_v AFTER UPDATE OF v ON tg_c EXECUTE FUNCTION tg_tell_all();
CREATE TRIGGER c_of_p AFTER UPDATE OF p ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_tell();
CREATE TRIGGER c_row AFTER DELETE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_tell();
INSERT INTO tg_p VALUES (1, NULL), (2, 1), (3, 2), (4, NULL), (5, NULL);
INSERT INTO tg_c VALUES (1, 3, 30), (2, 2, 20), (3, 4, 40), (4, 4, 41), (5, 5, 50);
TRUNCATE tg_log;
DELETE FROM tg_p WHERE id = 1;
SELECT line FROM tg_log ORDER BY n;
TRUNCATE tg_log;
UPDATE tg_p SET id = id + 10;
SELECT line FROM tg_log ORDER BY n;
SELECT * FROM tg_c ORDER BY id;
CREATE TRIGGER keeps BEFORE DELETE ON tg_c FOR EACH ROW WHEN (OLD.v = 41) EXECUTE FUNCTION tg_skip();
DELETE FROM tg_p WHERE id = 14;
SELECT * FROM tg_c ORDER BY id;
DROP TABLE tg_c, tg_p;
-- Rows that bodies write.
CREATE TABLE tg_n (id int PRIMARY KEY, v int DEFAULT 7, depth int, CHECK (v < 1000));
CREATE FUNCTION tg_next() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.id < 4 THEN INSERT INTO tg_n (id) VALUES (NEW.id + 1); END IF;
  NEW.depth := pg_trigger_depth();
  RETURN NEW;
END $$;
CREATE TRIGGER next BEFORE INSERT ON tg_n FOR EACH ROW EXECUTE FUNCTION tg_next();
INSERT INTO tg_n VALUES (1);
SELECT *, pg_trigger_depth() FROM tg_n ORDER BY id;
DROP TRIGGER next ON tg_n;
CREATE FUNCTION tg_others() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE tg_n SET v = v + 1 WHERE id <> OLD.id; RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END; END $$;
CREATE TRIGGER others BEFORE UPDATE OR DELETE ON tg_n FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION tg_others();
UPDATE tg_n SET v = 0 WHERE id < 3;
DELETE FROM tg_n WHERE id IN (2, 3);
UPDATE tg_n SET v = 0 WHERE id = 4;
DELETE FROM tg_n WHERE id = 4;
SELECT * FROM tg_n ORDER BY id;
DROP TRIGGER others ON tg_n;
CREATE FUNCTION tg_itself() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE tg_n SET v = -1 WHERE id = OLD.id; RETURN OLD; END $$;
CREATE TRIGGER itself BEFORE DELETE ON tg_n FOR EACH ROW EXECUTE FUNCTION tg_itself();
DELETE FROM tg_n WHERE id = 1;
DROP TRIGGER itself ON tg_n;
CREATE TRIGGER itself AFTER UPDATE ON tg_n FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION tg_itself();
UPDATE tg_n SET v = 5 WHERE id = 2;
SELECT * FROM tg_n ORDER BY id;
CREATE OR REPLACE FUNCTION tg_itself() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE tg_n SET v = v + 1 WHERE id = OLD.id; RETURN OLD; END $$;
\set VERBOSITY sqlstate
UPDATE tg_n SET v = 5 WHERE id = 2;
\set VERBOSITY default
DROP TRIGGER itself ON tg_n;
-- What they make of rows is judged; what they see of each other.
CREATE FUNCTION tg_big() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% of % sees % of % rows', TG_NAME, TG_OP, (SELECT sum(v) FROM tg_n), (SELECT count(*) FROM tg_n);
  IF TG_WHEN = 'BEFORE' AND NEW.v = 13 THEN NEW.v := 1300; END IF;
  IF NEW.v = 17 THEN RAISE EXCEPTION 'no % here', NEW.v USING ERRCODE = '22000', HINT = 'Another one.'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER big BEFORE INSERT OR UPDATE ON tg_n FOR EACH ROW EXECUTE FUNCTION tg_big();
CREATE TRIGGER big_after AFTER INSERT OR UPDATE ON tg_n FOR EACH ROW EXECUTE FUNCTION tg_big();
TRUNCATE tg_n;
INSERT INTO tg_n VALUES (1, 1), (2, 2);
UPDATE tg_n SET v = v + 10;
UPDATE tg_n SET v = 13 WHERE id = 1;
INSERT INTO tg_n VALUES (3, 17);
DO $$ BEGIN INSERT INTO tg_n VALUES (4, 4); INSERT INTO tg_n VALUES (5, 17); EXCEPTION WHEN data_exception THEN RAISE NOTICE 'caught %', SQLERRM; END $$;
COPY tg_n (id, v) FROM stdin;
6	6
7	7
\.
COPY tg_n (id, v) FROM stdin;
8	17
\.
WITH w AS (INSERT INTO tg_n VALUES (9, 9) RETURNING *) SELECT w.*, (SELECT count(*) FROM tg_n) FROM w;
CREATE VIEW tg_v AS SELECT id, v FROM tg_n WHERE v < 100 WITH CHECK OPTION;
INSERT INTO tg_v VALUES (10, 10) RETURNING *;
UPDATE tg_v SET v = 13 WHERE id = 10;
DROP VIEW tg_v;
BEGIN;
SAVEPOINT a;
UPDATE tg_n SET v = 17 WHERE id = 1;
ROLLBACK TO a;
PREPARE up AS UPDATE tg_n SET v = $1 WHERE id = 1 RETURNING v;
EXECUTE up (2);
EXECUTE up (3);
COMMIT;
DEALLOCATE up;
DROP TABLE tg_n;
DROP FUNCTION tg_next, tg_others, tg_itself, tg_big;
-- TRUNCATE.
CREATE TABLE tg_a (id int PRIMARY KEY);
CREATE TABLE tg_b (a int REFERENCES tg_a);
CREATE FUNCTION tg_truncates() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
  EXECUTE format('SELECT count(*) FROM %I', TG_TABLE_NAME) INTO n;
  RAISE NOTICE '% % % % % of % rows: % %', TG_NAME, TG_WHEN, TG_LEVEL, TG_OP, TG_RELID = TG_TABLE_NAME::regclass, n, NEW, OLD;
  IF TG_NARGS > 0 THEN RAISE EXCEPTION '%', TG_ARGV[0]; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER b BEFORE TRUNCATE ON tg_a EXECUTE FUNCTION tg_truncates();
CREATE TRIGGER a AFTER TRUNCATE ON tg_a FOR EACH STATEMENT EXECUTE FUNCTION tg_truncates();
CREATE TRIGGER b BEFORE TRUNCATE OR DELETE ON tg_b EXECUTE FUNCTION tg_truncates();
CREATE TRIGGER r BEFORE TRUNCATE ON tg_b FOR EACH ROW EXECUTE FUNCTION tg_truncates();
INSERT INTO tg_a VALUES (1), (2);
INSERT INTO tg_b VALUES (1);
TRUNCATE tg_a;
TRUNCATE tg_a CASCADE;
SELECT count(*) FROM tg_a;
INSERT INTO tg_a VALUES (3);
CREATE OR REPLACE TRIGGER a AFTER TRUNCATE ON tg_a EXECUTE FUNCTION tg_truncates('not now');
TRUNCATE tg_a, tg_b;
SELECT * FROM tg_a;
SELECT tgname, tgtype, tgnargs, tgargs FROM pg_trigger WHERE tgrelid = 'tg_a'::regclass AND NOT tgisinternal ORDER BY 1;
DROP TABLE tg_a, tg_b;
DROP FUNCTION tg_truncates;
-- What RETURN gives.
CREATE TABLE tg_r (a int, b text);
CREATE FUNCTION tg_row() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r record; t tg_r;
BEGIN
  CASE NEW.a
    WHEN 1 THEN t := NEW; t.b := 'typed'; RETURN t;
    WHEN 2 THEN r := NEW; r.b := 'record'; RETURN r;
    WHEN 3 THEN RETURN ROW(3, 'row'::text);
    WHEN 4 THEN NEW := ROW(40, 'assigned'::text); RETURN NEW;
    WHEN 5 THEN RETURN ROW(5);
    WHEN 6 THEN RETURN ROW('x'::text, 'y'::text);
    WHEN 7 THEN RETURN OLD;
    WHEN 8 THEN SELECT 80, 'selected'::text INTO NEW; RETURN NEW;
    WHEN 9 THEN RETURN 9;
    ELSE NEW.c := 1;
  END CASE;
  RETURN NEW;
END $$;
CREATE TRIGGER r BEFORE INSERT ON tg_r FOR EACH ROW EXECUTE FUNCTION tg_row();
INSERT INTO tg_r VALUES (1), (2), (3), (4), (7), (8);
INSERT INTO tg_r VALUES (5);
INSERT INTO tg_r VALUES (6);
INSERT INTO tg_r VALUES (9);
INSERT INTO tg_r VALUES (0);
SELECT * FROM tg_r;
ALTER TABLE tg_r DROP COLUMN b, ADD COLUMN b text DEFAULT 'new', ADD COLUMN d int DEFAULT 4;
CREATE FUNCTION tg_fields() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'old % new %', OLD, NEW; NEW.d = NEW.d + 1; RETURN NEW; END $$;
CREATE OR REPLACE TRIGGER r BEFORE INSERT OR UPDATE ON tg_r FOR EACH ROW EXECUTE FUNCTION tg_fields();
INSERT INTO tg_r (a) VALUES (1) RETURNING *;
UPDATE tg_r SET b = 'u' WHERE a = 1 RETURNING *;
CREATE FUNCTION tg_statement() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', NEW.a; RETURN NULL; END $$;
CREATE TRIGGER s AFTER DELETE ON tg_r EXECUTE FUNCTION tg_statement();
DELETE FROM tg_r WHERE false;
SELECT tg_row();
CREATE FUNCTION tg_wrong(int) RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE FUNCTION tg_wrong() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE TRIGGER bad BEFORE INSERT ON tg_r FOR EACH ROW EXECUTE FUNCTION tg_wrong();
CREATE TRIGGER bad BEFORE INSERT ON tg_r FOR EACH ROW EXECUTE FUNCTION tg_no();
CREATE TRIGGER bad BEFORE INSERT ON tg_no FOR EACH ROW EXECUTE FUNCTION tg_row();
CREATE TRIGGER bad BEFORE UPDATE OF a, a ON tg_r FOR EACH ROW EXECUTE FUNCTION tg_row();
CREATE TRIGGER bad BEFORE UPDATE OF z ON tg_r FOR EACH ROW EXECUTE FUNCTION tg_row();
CREATE TRIGGER bad BEFORE INSERT OR INSERT ON tg_r FOR EACH ROW EXECUTE FUNCTION tg_row();
CREATE TRIGGER bad BEFORE DELETE ON tg_r FOR EACH ROW WHEN (NEW.a = 1) EXECUTE FUNCTION tg_row();
CREATE TRIGGER bad BEFORE INSERT ON tg_r FOR EACH ROW WHEN ((SELECT true)) EXECUTE FUNCTION tg_row();
CREATE TRIGGER bad BEFORE INSERT ON tg_r FOR EACH ROW WHEN (NEW.a) EXECUTE FUNCTION tg_row();
-- Rights.
CREATE ROLE tg_role;
GRANT SELECT, INSERT ON tg_r TO tg_role;
GRANT CREATE ON SCHEMA public TO tg_role;
REVOKE EXECUTE ON FUNCTION tg_fields FROM PUBLIC;
SET ROLE tg_role;
CREATE TRIGGER mine BEFORE INSERT ON tg_r FOR EACH ROW EXECUTE FUNCTION tg_row();
INSERT INTO tg_r (a) VALUES (2) RETURNING *;
DROP TRIGGER r ON tg_r;
ALTER TRIGGER r ON tg_r RENAME TO q;
COMMENT ON TRIGGER r ON tg_r IS 'no';
RESET ROLE;
GRANT TRIGGER ON tg_r TO tg_role;
SET ROLE tg_role;
CREATE TRIGGER mine BEFORE INSERT ON tg_r FOR EACH ROW EXECUTE FUNCTION tg_fields();
CREATE TRIGGER mine BEFORE INSERT ON tg_r FOR EACH ROW WHEN (NEW.a > 100) EXECUTE FUNCTION tg_row();
RESET ROLE;
COMMENT ON TRIGGER mine ON tg_r IS 'of a role';
SELECT obj_description(oid, 'pg_trigger') FROM pg_trigger WHERE tgname = 'mine';
\d tg_r
DROP OWNED BY tg_role;
DROP ROLE tg_role;
-- In temporary tables, and with what they depend on.
CREATE TEMP TABLE tg_tmp (a int);
CREATE TRIGGER t BEFORE INSERT ON tg_tmp FOR EACH ROW EXECUTE FUNCTION tg_skip();
INSERT INTO tg_tmp VALUES (1);
SELECT count(*) FROM tg_tmp;
BEGIN;
DROP TRIGGER t ON tg_tmp;
INSERT INTO tg_tmp VALUES (1);
ROLLBACK;
DROP FUNCTION tg_skip();
DROP FUNCTION tg_skip() CASCADE;
INSERT INTO tg_tmp VALUES (2);
SELECT * FROM tg_tmp;
ALTER TABLE tg_t RENAME TO tg_t2;
SELECT tgname FROM pg_trigger WHERE tgrelid = 'tg_t2'::regclass ORDER BY 1;
ALTER TABLE tg_t2 DISABLE TRIGGER USER;
ALTER TABLE tg_t2 ENABLE ALWAYS TRIGGER b_tell;
ALTER TABLE tg_t2 ENABLE REPLICA TRIGGER y_after;
\d tg_t2
ALTER TABLE tg_t2 DROP COLUMN v CASCADE;
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'tg_t2'::regclass ORDER BY 1;
DROP TABLE tg_t2, tg_u, tg_log, tg_r, tg_tmp;
SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal;
DROP FUNCTION tg_tell, tg_tell_all, tg_double, tg_none, tg_row, tg_fields, tg_statement, tg_wrong;
-- Actions of foreign keys, and BEFORE triggers whose bodies touch the rows that the action is about.
CREATE TABLE tg_p (id int PRIMARY KEY);
CREATE TABLE tg_c (id int PRIMARY KEY, p int REFERENCES tg_p ON DELETE CASCADE ON UPDATE CASCADE, note text);
CREATE FUNCTION tg_soft() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
  UPDATE tg_c SET note = 'gone', p = NULL WHERE id = OLD.id;
  RETURN NULL;
END$$;
CREATE FUNCTION tg_touch() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
  IF TG_OP = 'UPDATE' AND NEW.note = 'touched' THEN RETURN NEW; END IF;
  UPDATE tg_c SET note = 'touched' WHERE id = OLD.id + TG_ARGV[0]::int;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  RETURN NEW;
END$$;
CREATE FUNCTION tg_erase() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
  DELETE FROM tg_c WHERE id = OLD.id + TG_ARGV[0]::int;
  RETURN NEW;
END$$;
CREATE FUNCTION tg_told() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
  RAISE NOTICE '% % % as %', TG_OP, OLD.id, OLD.p, current_user;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  NEW.note := 'told';
  RETURN NEW;
END$$;
INSERT INTO tg_p VALUES (1), (2), (3), (4);
INSERT INTO tg_c VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c'), (4, 2, 'd'), (5, 4, 'e'), (6, 4, 'f');
CREATE TRIGGER s BEFORE DELETE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_soft();
DELETE FROM tg_p WHERE id = 1;
SELECT * FROM tg_c ORDER BY id;
DROP TRIGGER s ON tg_c;
CREATE TRIGGER s BEFORE DELETE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_touch('0');
DELETE FROM tg_p WHERE id = 2;
DROP TRIGGER s ON tg_c;
CREATE TRIGGER s BEFORE DELETE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_touch('1');
DELETE FROM tg_p WHERE id = 2;
DROP TRIGGER s ON tg_c;
CREATE TRIGGER s BEFORE UPDATE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_touch('0');
UPDATE tg_p SET id = 20 WHERE id = 2;
DROP TRIGGER s ON tg_c;
CREATE TRIGGER s BEFORE UPDATE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_touch('-1');
UPDATE tg_p SET id = 20 WHERE id = 2;
DROP TRIGGER s ON tg_c;
CREATE TRIGGER s BEFORE UPDATE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_erase('0');
UPDATE tg_p SET id = 20 WHERE id = 2;
DROP TRIGGER s ON tg_c;
CREATE TRIGGER s BEFORE UPDATE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_erase('1');
UPDATE tg_p SET id = 20 WHERE id = 2;
DROP TRIGGER s ON tg_c;
SELECT * FROM tg_p ORDER BY id;
SELECT * FROM tg_c ORDER BY id;
ALTER TABLE tg_c DROP CONSTRAINT tg_c_p_fkey, ALTER p SET DEFAULT 3,
  ADD FOREIGN KEY (p) REFERENCES tg_p ON DELETE SET DEFAULT ON UPDATE SET NULL;
CREATE ROLE tg_own;
GRANT ALL ON tg_c TO tg_own;
ALTER TABLE tg_c OWNER TO tg_own;
CREATE TRIGGER s BEFORE DELETE OR UPDATE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_told();
DELETE FROM tg_p WHERE id = 2;
UPDATE tg_p SET id = 40 WHERE id = 4;
SELECT * FROM tg_c ORDER BY id;
-- The default is the key that is gone: no triggers twice.
DELETE FROM tg_p WHERE id = 3;
CREATE TRIGGER e BEFORE UPDATE ON tg_c FOR EACH ROW EXECUTE FUNCTION tg_erase('0');
UPDATE tg_p SET id = 30 WHERE id = 3;
SELECT * FROM tg_c ORDER BY id;
DROP TABLE tg_c, tg_p;
DROP ROLE tg_own;
DROP FUNCTION tg_soft, tg_touch, tg_erase, tg_told;
-- Bodies that touch the row that ON CONFLICT or MERGE is about; a clause of MERGE whose values call a function, behind one whose values do not.
CREATE TABLE tg_m (id int PRIMARY KEY, v int);
INSERT INTO tg_m VALUES (1, 0), (2, 0);
CREATE FUNCTION tg_times(i int) RETURNS int LANGUAGE plpgsql AS $$BEGIN RETURN i * 10; END$$;
CREATE FUNCTION tg_seen() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.v := NEW.v + 1; RETURN NEW; END$$;
CREATE FUNCTION tg_gone() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN DELETE FROM tg_m WHERE id = NEW.id; RETURN NEW; END$$;
CREATE FUNCTION tg_first() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
  IF NEW.v < 0 THEN RETURN NEW; END IF;
  INSERT INTO tg_m VALUES (NEW.id, -1);
  RETURN NEW;
END$$;
CREATE TRIGGER s BEFORE UPDATE ON tg_m FOR EACH ROW EXECUTE FUNCTION tg_seen();
MERGE INTO tg_m t USING (VALUES (1, 1, 5), (2, 2, 6)) s(id, k, v) ON t.id = s.id
  WHEN MATCHED AND s.k = 1 THEN UPDATE SET v = 1
  WHEN MATCHED THEN UPDATE SET v = tg_times(s.v) + (SELECT count(*) FROM tg_m);
SELECT * FROM tg_m ORDER BY id;
INSERT INTO tg_m VALUES (1, 7) ON CONFLICT (id) DO UPDATE SET v = tg_times(excluded.v) RETURNING *;
DROP TRIGGER s ON tg_m;
CREATE TRIGGER s BEFORE UPDATE ON tg_m FOR EACH ROW EXECUTE FUNCTION tg_gone();
INSERT INTO tg_m VALUES (1, 7) ON CONFLICT (id) DO UPDATE SET v = 8;
UPDATE tg_m SET v = 9 WHERE id = 1;
MERGE INTO tg_m t USING (VALUES (1)) s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1;
DROP TRIGGER s ON tg_m;
CREATE TRIGGER s BEFORE INSERT ON tg_m FOR EACH ROW EXECUTE FUNCTION tg_first();
INSERT INTO tg_m VALUES (3, 7) ON CONFLICT (id) DO UPDATE SET v = 8;
INSERT INTO tg_m VALUES (3, 7) ON CONFLICT (id) DO NOTHING;
SELECT * FROM tg_m ORDER BY id;
DROP TABLE tg_m;
DROP FUNCTION tg_times, tg_seen, tg_gone, tg_first;
-- A function goes with its triggers and with what they are owed; a savepoint brings both back.
CREATE TABLE tg_d (a int);
CREATE FUNCTION tg_owed() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE 'owed %', NEW.a; RETURN NULL; END$$;
CREATE CONSTRAINT TRIGGER o AFTER INSERT ON tg_d DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tg_owed();
BEGIN;
INSERT INTO tg_d VALUES (1);
SAVEPOINT s;
INSERT INTO tg_d VALUES (2);
DROP FUNCTION tg_owed() CASCADE;
ROLLBACK TO s;
COMMIT;
BEGIN;
INSERT INTO tg_d VALUES (4);
DROP FUNCTION tg_owed() CASCADE;
COMMIT;
SELECT * FROM tg_d;
DROP TABLE tg_d;
