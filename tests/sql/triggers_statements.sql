-- Triggers of statements whose WITH does the same to the table, what BEFORE triggers see of generated columns, and DDL on a table in use.
CREATE TABLE several (a int PRIMARY KEY, b int);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% % %', tg_name, tg_when, tg_op;
    RETURN NULL;
END $$;
CREATE FUNCTION tell_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% new %', tg_name, (SELECT string_agg(n::text, ',' ORDER BY n.a) FROM n);
    RETURN NULL;
END $$;
CREATE FUNCTION tell_old() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% old %', tg_name, (SELECT string_agg(o::text, ',' ORDER BY o.a) FROM o);
    RETURN NULL;
END $$;
CREATE TRIGGER before_all BEFORE INSERT OR UPDATE OR DELETE ON several FOR EACH STATEMENT EXECUTE FUNCTION tell();
CREATE TRIGGER after_all AFTER INSERT OR UPDATE OR DELETE ON several FOR EACH STATEMENT EXECUTE FUNCTION tell();
CREATE TRIGGER after_new AFTER INSERT ON several REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION tell_new();
CREATE TRIGGER after_old AFTER DELETE ON several REFERENCING OLD TABLE AS o FOR EACH STATEMENT EXECUTE FUNCTION tell_old();
INSERT INTO several VALUES (1, 1), (2, 2);
WITH w AS (INSERT INTO several VALUES (43, 1)) INSERT INTO several VALUES (44, 1);
WITH w AS (INSERT INTO several VALUES (45, 1) RETURNING a), x AS (INSERT INTO several VALUES (46, 1) RETURNING a)
INSERT INTO several SELECT a + 10, a FROM w UNION ALL SELECT a + 10, a FROM x;
WITH w AS (DELETE FROM several WHERE a = 43) DELETE FROM several WHERE a = 44;
WITH w AS (INSERT INTO several VALUES (47, 1)) DELETE FROM several WHERE a = 45;
WITH w AS (UPDATE several SET b = 0 WHERE a = 1) UPDATE several SET b = 0 WHERE a = 2;
INSERT INTO several VALUES (1, 5), (60, 6) ON CONFLICT (a) DO UPDATE SET b = excluded.b;
-- Each time anew.
INSERT INTO several VALUES (70, 1);
INSERT INTO several VALUES (71, 1);
PREPARE again AS INSERT INTO several VALUES ($1, 1);
EXECUTE again (72);
EXECUTE again (73);
DROP TABLE several;
-- Generated columns are computed of what BEFORE triggers make: these see nothing there.
CREATE TABLE made (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a * 2) STORED, c int);
CREATE FUNCTION show_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% % % old % new %', tg_name, tg_when, tg_op, old, new;
    RETURN new;
END $$;
CREATE TRIGGER at_first BEFORE INSERT OR UPDATE ON made FOR EACH ROW EXECUTE FUNCTION show_row();
CREATE TRIGGER at_last AFTER INSERT OR UPDATE ON made FOR EACH ROW EXECUTE FUNCTION show_row();
INSERT INTO made VALUES (1, DEFAULT, 1);
UPDATE made SET a = 11;
UPDATE made SET c = 12;
INSERT INTO made VALUES (11, DEFAULT, 1) ON CONFLICT (a) DO UPDATE SET a = made.a + 1;
MERGE INTO made USING (VALUES (12)) v(a) ON made.a = v.a WHEN MATCHED THEN UPDATE SET c = 13;
TABLE made;
CREATE TABLE whose (a int PRIMARY KEY);
INSERT INTO whose VALUES (1);
CREATE TABLE part (a int REFERENCES whose ON UPDATE CASCADE ON DELETE SET NULL, b int GENERATED ALWAYS AS (a * 2) STORED);
INSERT INTO part VALUES (1);
CREATE TRIGGER at_first BEFORE UPDATE ON part FOR EACH ROW EXECUTE FUNCTION show_row();
UPDATE whose SET a = 5;
DELETE FROM whose;
TABLE part;
DROP TABLE part, whose, made;
-- No index is made on a table that is in use.
CREATE TABLE busy (a int PRIMARY KEY, b int);
INSERT INTO busy VALUES (1, 1);
CREATE FUNCTION make_index() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    CREATE INDEX busy_b ON busy (b);
    RETURN old;
END $$;
CREATE TRIGGER before_delete BEFORE DELETE ON busy FOR EACH ROW EXECUTE FUNCTION make_index();
DELETE FROM busy;
TABLE busy;
BEGIN;
DECLARE open_one CURSOR FOR TABLE busy;
FETCH open_one;
CREATE INDEX busy_b ON busy (b);
ROLLBACK;
DROP TABLE busy;
DROP FUNCTION tell, tell_new, tell_old, show_row, make_index;
-- READ ONLY of a part of a transaction ends with it.
BEGIN;
SAVEPOINT x;
SET TRANSACTION READ ONLY;
RELEASE SAVEPOINT x;
SHOW transaction_read_only;
COMMIT;
BEGIN;
SAVEPOINT x;
SAVEPOINT y;
SET TRANSACTION READ ONLY;
RELEASE SAVEPOINT y;
SHOW transaction_read_only;
SET LOCAL transaction_read_only = on;
SAVEPOINT z;
SHOW transaction_read_only;
RELEASE SAVEPOINT x;
SHOW transaction_read_only;
CREATE TABLE written (a int);
ROLLBACK;
BEGIN;
SET TRANSACTION READ ONLY;
SAVEPOINT x;
RELEASE SAVEPOINT x;
SHOW transaction_read_only;
COMMIT;
