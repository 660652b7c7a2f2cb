-- Cursors in PL/pgSQL.
CREATE TABLE pc_t (id int PRIMARY KEY, v text);
INSERT INTO pc_t SELECT g, 'v' || g FROM generate_series(1, 6) g;
DO $$
DECLARE
  c CURSOR FOR SELECT * FROM pc_t ORDER BY id;
  r record; n int; t text;
BEGIN
  OPEN c;
  RAISE NOTICE 'open: % %', c, (SELECT count(*) FROM pg_cursors);
  FETCH c INTO r; RAISE NOTICE '% %', r.id, FOUND;
  FETCH NEXT FROM c INTO n, t; RAISE NOTICE '% %', n, t;
  FETCH LAST FROM c INTO r; RAISE NOTICE '%', r;
  FETCH PRIOR FROM c INTO r; RAISE NOTICE '%', r;
  FETCH ABSOLUTE 2 FROM c INTO r; RAISE NOTICE '%', r;
  FETCH RELATIVE -1 FROM c INTO r; RAISE NOTICE '%', r;
  FETCH FIRST FROM c INTO r; RAISE NOTICE '%', r;
  FETCH BACKWARD FROM c INTO r; RAISE NOTICE '% %', r, FOUND;
  MOVE FORWARD 2 FROM c; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE 'moved % %', n, FOUND;
  FETCH FORWARD FROM c INTO r; RAISE NOTICE '%', r;
  MOVE ALL FROM c; RAISE NOTICE '%', FOUND;
  FETCH c INTO r; RAISE NOTICE '% %', r, FOUND;
  MOVE c; RAISE NOTICE '%', FOUND;
  CLOSE c;
  RAISE NOTICE 'closed: % %', c, (SELECT count(*) FROM pg_cursors);
  OPEN c; FETCH c INTO n; RAISE NOTICE '%', n; CLOSE c;
END $$;
-- Arguments.
DO $$
DECLARE
  c CURSOR (low int, high int) FOR SELECT id FROM pc_t WHERE id BETWEEN low AND high ORDER BY id;
  k NO SCROLL CURSOR IS SELECT v FROM pc_t ORDER BY id;
  n int; low int := 77;
BEGIN
  OPEN c(2, 4); FETCH c INTO n; RAISE NOTICE '%', n; CLOSE c;
  OPEN c(high := 6, low := 5); FETCH c INTO n; RAISE NOTICE '% %', n, low; CLOSE c;
  FOR r IN c(1, 3) LOOP RAISE NOTICE 'row %', r.id; END LOOP;
  RAISE NOTICE '%', FOUND;
  FOR r IN c(high := 0, low := 3) LOOP RAISE NOTICE 'row %', r.id; END LOOP;
  RAISE NOTICE '%', FOUND;
  <<outer>> FOR r IN k LOOP
    FOR s IN c(5, 6) LOOP
      CONTINUE outer WHEN r.v = 'v1';
      RAISE NOTICE '% %', r.v, s.id;
      EXIT outer WHEN s.id = 6;
    END LOOP;
  END LOOP;
  RAISE NOTICE '%', (SELECT count(*) FROM pg_cursors);
END $$;
-- refcursor variables.
CREATE FUNCTION pc_open(name refcursor, low int) RETURNS refcursor LANGUAGE plpgsql AS $$
BEGIN
  OPEN name FOR SELECT * FROM pc_t WHERE id >= low ORDER BY id;
  RETURN name;
END $$;
CREATE FUNCTION pc_anon() RETURNS refcursor LANGUAGE plpgsql AS $$
DECLARE c refcursor;
BEGIN
  OPEN c SCROLL FOR EXECUTE 'SELECT id FROM pc_t WHERE id <> $1 ORDER BY id DESC' USING 5;
  RETURN c;
END $$;
CREATE FUNCTION pc_sum(c refcursor) RETURNS int LANGUAGE plpgsql AS $$
DECLARE s int := 0; n int;
BEGIN
  LOOP FETCH c INTO n; EXIT WHEN NOT FOUND; s := s + n; END LOOP;
  CLOSE c;
  RETURN s;
END $$;
BEGIN;
SELECT pc_open('mine', 4), pg_typeof(pc_open('other', 5));
FETCH 2 FROM mine;
INSERT INTO pc_t VALUES (7, 'v7');
FETCH ALL FROM mine;
FETCH ALL FROM other;
SELECT pc_open('mine', 1);
ROLLBACK;
BEGIN;
SELECT pc_sum(pc_open('third', 2)), pc_sum(pc_anon());
SELECT count(*) FROM pg_cursors;
DECLARE d CURSOR FOR SELECT id FROM pc_t;
SELECT pc_sum('d');
FETCH d;
ROLLBACK;
SELECT pc_open('gone', 1);
FETCH gone;
-- WHERE CURRENT OF.
DO $$
DECLARE
  c CURSOR FOR SELECT * FROM pc_t WHERE id > 2 ORDER BY id FOR UPDATE;
  u refcursor; r record;
BEGIN
  FOR r IN c LOOP
    IF r.id = 4 THEN DELETE FROM pc_t WHERE CURRENT OF c;
    ELSE UPDATE pc_t SET v = upper(v) WHERE CURRENT OF c; END IF;
  END LOOP;
  OPEN u FOR SELECT * FROM pc_t WHERE id = 1;
  FETCH u INTO r;
  UPDATE pc_t SET v = 'first' WHERE CURRENT OF u;
  CLOSE u;
END $$;
SELECT * FROM pc_t ORDER BY id;
-- Loops go on behind COMMIT.
CREATE PROCEDURE pc_commits() LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT id FROM pc_t ORDER BY id;
BEGIN
  FOR r IN c LOOP
    UPDATE pc_t SET v = 'c' || r.id WHERE id = r.id;
    COMMIT;
  END LOOP;
  RAISE NOTICE '%', (SELECT count(*) FROM pg_cursors);
END $$;
CALL pc_commits();
SELECT * FROM pc_t ORDER BY id;
-- Errors.
DO $$ DECLARE c CURSOR (a int) FOR SELECT a; BEGIN OPEN c(a => 1); END $$;
DO $$ DECLARE c refcursor; BEGIN FETCH c INTO c; END $$;
DO $$ DECLARE c refcursor := 'nosuch'; r record; BEGIN FETCH c INTO r; END $$;
DO $$ DECLARE c refcursor := 'nosuch'; BEGIN CLOSE c; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; OPEN c; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1/0; r record; BEGIN OPEN c; FETCH c INTO r; END $$;
DO $$ DECLARE c NO SCROLL CURSOR FOR SELECT id FROM pc_t; r record; BEGIN OPEN c; FETCH c INTO r; FETCH PRIOR FROM c INTO r; END $$;
DO $$ DECLARE c refcursor; r record; BEGIN OPEN c FOR SELECT nosuch FROM pc_t; END $$;
DO $$
DECLARE c CURSOR FOR SELECT id FROM pc_t ORDER BY id; n int;
BEGIN
  OPEN c;
  BEGIN
    FETCH c INTO n;
    RAISE EXCEPTION 'inner';
  EXCEPTION WHEN raise_exception THEN RAISE NOTICE 'caught at %', n;
  END;
  FETCH c INTO n; RAISE NOTICE '%', n;
END $$;
-- Functions that cursors, EXPLAIN ANALYZE and CREATE TABLE AS call.
CREATE FUNCTION pc_say(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'said %', n; RETURN n * 10; END $$;
BEGIN;
DECLARE s CURSOR FOR SELECT g, pc_say(g) FROM generate_series(1, 5) g;
FETCH 2 FROM s;
FETCH s;
MOVE s;
FETCH ALL FROM s;
COMMIT;
CREATE FUNCTION pc_ten(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN n * 10; END $$;
BEGIN;
DECLARE s SCROLL CURSOR FOR SELECT pc_ten(g), (SELECT count(*) FROM pc_t) FROM generate_series(1, 4) g;
FETCH 1 FROM s;
INSERT INTO pc_t VALUES (50, 'fifty');
FETCH ALL FROM s;
FETCH BACKWARD 2 FROM s;
MOVE ABSOLUTE 1 FROM s;
FETCH RELATIVE 0 FROM s;
COMMIT;
DO $$ DECLARE c CURSOR FOR SELECT pc_say(g) AS x FROM generate_series(1, 2) g; BEGIN FOR r IN c LOOP RAISE NOTICE 'row %', r.x; END LOOP; END $$;
CREATE TABLE pc_made AS SELECT g, pc_say(g) AS said FROM generate_series(1, 2) g;
CREATE TABLE IF NOT EXISTS pc_made AS SELECT pc_say(9) AS said;
SELECT pc_say(g) AS x INTO pc_into FROM generate_series(3, 3) g;
CREATE TEMP TABLE pc_temp (a, b) AS SELECT pc_say(4), 'x'::text WITH NO DATA;
SELECT * FROM pc_made, pc_into ORDER BY 1;
SELECT count(*) FROM pc_temp;
INSERT INTO pc_made SELECT 7, pc_say(7);
DO $$ DECLARE t text; BEGIN EXECUTE 'EXPLAIN ANALYZE SELECT pc_say(1)' INTO t; END $$;
DROP TABLE pc_made, pc_into, pc_temp;
DROP FUNCTION pc_say, pc_ten;
DROP FUNCTION pc_open, pc_anon, pc_sum;
DROP PROCEDURE pc_commits;
DROP TABLE pc_t;
-- What a cursor has left is taken with its own rights and its own view, whatever comes between.
CREATE TABLE pc_r (a int);
GRANT SELECT ON pc_r TO PUBLIC;
CREATE PROCEDURE pc_definer() LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO pc_r VALUES (1); END $$;
CREATE FUNCTION pc_definer_fn() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO pc_r VALUES (2); RETURN (SELECT count(*) FROM pc_r); END $$;
CREATE FUNCTION pc_who() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN current_user; END $$;
CREATE FUNCTION pc_opens() RETURNS refcursor STABLE LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'stable'; BEGIN OPEN c FOR SELECT pc_who(); RETURN c; END $$;
CREATE ROLE pc_role;
SET ROLE pc_role;
BEGIN;
DECLARE c CURSOR FOR SELECT pc_who(), (SELECT count(*) FROM pc_r);
CALL pc_definer();
FETCH c;
COMMIT;
BEGIN;
SELECT pc_opens(), pc_definer_fn();
FETCH stable;
DECLARE c CURSOR FOR SELECT pc_who(), (SELECT count(*) FROM pc_r);
DO $$ BEGIN CALL pc_definer(); END $$;
FETCH c;
COMMIT;
RESET ROLE;
SELECT count(*) FROM pc_r;
DROP FUNCTION pc_who, pc_opens, pc_definer_fn;
DROP PROCEDURE pc_definer;
DROP TABLE pc_r;
DROP ROLE pc_role;
