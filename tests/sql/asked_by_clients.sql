-- What programs ask that people seldom write.

CREATE TABLE asked (id int PRIMARY KEY, v int, s text);
INSERT INTO asked VALUES (1, 1, 'a'), (2, 0, 'b'), (3, 3, 'c');
CREATE SCHEMA asked_too;
CREATE TABLE asked_too.t (id int);
INSERT INTO asked_too.t VALUES (1), (2);

-- pg_dump --inserts reads tables so.
SELECT count(*) FROM ONLY asked;
SELECT count(*) FROM ONLY (asked);
SELECT a.id, t.id FROM ONLY asked AS a JOIN ONLY asked_too.t ON t.id = a.id ORDER BY 1;
SELECT count(*) FROM asked, ONLY asked_too.t;
UPDATE ONLY asked SET v = v WHERE id = 1;
UPDATE asked SET s = s FROM ONLY asked_too.t WHERE t.id = asked.id;
DELETE FROM ONLY asked_too.t WHERE id = 2;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM ONLY asked_too.t;
FETCH ALL FROM c;
ROLLBACK;
SELECT id FROM asked ORDER BY id FETCH FIRST ROW ONLY;

-- Names of types as drivers quote them.
SELECT '"text"'::regtype, 'pg_catalog."int4"'::regtype, '"pg_catalog"."bool"'::regtype, '"char"'::regtype, 'char'::regtype;
SELECT to_regtype('"text"'), to_regtype('"integer"'), to_regtype('"Text"'), to_regtype('"pg_catalog"."varchar"');

-- Rows of all columns, and what gives nothing.
SELECT ROW(a.*) FROM asked AS a ORDER BY id;
SELECT ROW(a.*, 1, a.id) FROM asked AS a ORDER BY id LIMIT 1;
SELECT '[' || pg_sleep(0)::text || ']', pg_sleep(0)::varchar IS NULL;
SELECT getdatabaseencoding();

-- An error behind what is wanted is not heard of; constants that cannot be computed are, wherever they stand.
SELECT 10 / (3 - n) FROM generate_series(1, 5) AS n LIMIT 2;
SELECT EXISTS (SELECT 10 / (3 - n) FROM generate_series(1, 5) AS n);
SELECT CASE WHEN v > 100 THEN 1 / 0 ELSE 2 END FROM asked;
SELECT CASE 1 WHEN 0 THEN 1 / 0 ELSE 2 END;
SELECT coalesce(v, 1 / 0) FROM asked;
SELECT coalesce(1, 1 / 0);
SELECT id FROM asked WHERE false AND 1 / 0 = 1;
SELECT id FROM asked WHERE id = 1 OR 1 / 0 = 1;
EXPLAIN SELECT 1 / 0;
PREPARE never AS SELECT 1 / 0;
EXECUTE never;

-- What new objects of a schema would have is gone with it: pg_dump could not name it.
CREATE ROLE asked_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA asked_too GRANT SELECT ON TABLES TO asked_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA asked_too GRANT USAGE ON SEQUENCES TO asked_role;
SELECT count(*) FROM pg_default_acl;
DROP SCHEMA asked_too CASCADE;
SELECT count(*) FROM pg_default_acl;
DROP ROLE asked_role;

-- By this pg_restore knows what to make first.
CREATE TABLE asked_of (asked_id int CONSTRAINT asked_of_key REFERENCES asked);
SELECT refobjid::regclass, refobjsubid, deptype FROM pg_depend
WHERE classid = 'pg_constraint'::regclass AND objid = (SELECT oid FROM pg_constraint WHERE conname = 'asked_of_key')
ORDER BY refobjid::regclass::text;
DROP TABLE asked_of;
DROP TABLE asked;
