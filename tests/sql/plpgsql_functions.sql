-- Functions and procedures of LANGUAGE plpgsql.
CREATE TABLE pf_t (id int PRIMARY KEY, v int, note text);
INSERT INTO pf_t SELECT g, g * 10, 'n' || g FROM generate_series(1, 5) g;
CREATE FUNCTION pf_add(a int, b int DEFAULT 5) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN a + b; END $$;
SELECT pf_add(1, 2), pf_add(1), pf_add(b => 1, a => 3);
SELECT id, pf_add(id, v) FROM pf_t WHERE pf_add(id, 0) > 2 ORDER BY pf_add(v) DESC;
SELECT sum(pf_add(id)), max(pf_add(v, id)) FROM pf_t;
CREATE FUNCTION pf_fact(n bigint) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
  IF n <= 1 THEN RETURN 1; END IF;
  RETURN n * pf_fact(n - 1);
END $$;
SELECT pf_fact(1), pf_fact(8);
-- Changes, and who sees them.
CREATE FUNCTION pf_bump(which int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
  UPDATE pf_t SET v = v + 1 WHERE id = which RETURNING v INTO n;
  RETURN n;
END $$;
SELECT pf_bump(1), pf_bump(1), (SELECT v FROM pf_t WHERE id = 1);
SELECT v FROM pf_t WHERE id = 1;
CREATE FUNCTION pf_log(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO pf_t (id, note) SELECT max(id) + 1, t FROM pf_t; END $$;
SELECT pf_log('one');
SELECT pf_log(note) FROM pf_t WHERE id < 3 ORDER BY id;
SELECT count(*), max(id) FROM pf_t;
INSERT INTO pf_t VALUES (100, pf_bump(2), 'with') RETURNING pf_add(id, v), note;
UPDATE pf_t SET note = note || pf_add(id) WHERE pf_add(id) = 7 RETURNING note;
CREATE FUNCTION pf_count() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ DECLARE n bigint; BEGIN SELECT count(*) INTO n FROM pf_t; RETURN n; END $$;
CREATE FUNCTION pf_countv() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM pf_t); END $$;
INSERT INTO pf_t SELECT 200 + g, pf_count(), pf_countv()::text FROM generate_series(1, 3) g;
SELECT id, v, note FROM pf_t WHERE id > 200 ORDER BY id;
CREATE FUNCTION pf_wrong() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN DELETE FROM pf_t; RETURN 1; END $$;
SELECT pf_wrong();
-- What is given: rows, sets, OUT parameters.
CREATE FUNCTION pf_row(which int) RETURNS pf_t LANGUAGE plpgsql AS $$ DECLARE r pf_t; BEGIN SELECT * INTO r FROM pf_t WHERE id = which; RETURN r; END $$;
SELECT pf_row(3), (pf_row(3)).note;
SELECT * FROM pf_row(4);
CREATE FUNCTION pf_two(a int, OUT b int, OUT c text) LANGUAGE plpgsql AS $$ BEGIN b := a * 2; c := 'c' || a; END $$;
SELECT pf_two(4), (pf_two(5)).c;
SELECT * FROM pf_two(6) x;
CREATE FUNCTION pf_set(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP RETURN NEXT i * i; END LOOP; END $$;
SELECT * FROM pf_set(3);
SELECT s, pf_add(s) FROM pf_set(3) s WHERE s > 1;
SELECT pf_set(2);
SELECT t.id, s FROM pf_t t, pf_set(t.id) s WHERE t.id <= 2 ORDER BY 1, 2;
CREATE FUNCTION pf_table(low int) RETURNS TABLE (k int, what text) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT t.id, t.note FROM pf_t t WHERE t.id >= low AND t.id <= 3 ORDER BY t.id;
  k := -1; what := 'last';
  RETURN NEXT;
  RETURN QUERY EXECUTE 'SELECT $1, $2' USING -2, 'dynamic'::text;
END $$;
SELECT * FROM pf_table(2);
SELECT what FROM pf_table(3) WHERE k < 0;
CREATE FUNCTION pf_rows() RETURNS SETOF pf_t LANGUAGE plpgsql AS $$ DECLARE r pf_t; BEGIN FOR r IN SELECT * FROM pf_t WHERE id < 3 ORDER BY id LOOP r.note := r.note || '!'; RETURN NEXT r; END LOOP; RETURN; END $$;
SELECT id, note FROM pf_rows();
CREATE FUNCTION pf_badset() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 1, 2; END $$;
SELECT * FROM pf_badset();
-- Names, types, NULL, strictness.
CREATE FUNCTION pf_strict(a int, b text) RETURNS text STRICT LANGUAGE plpgsql AS $$ BEGIN RETURN $1 || pf_strict.b || b; END $$;
SELECT pf_strict(1, 'x'), pf_strict(NULL, 'x') IS NULL;
CREATE FUNCTION pf_any(a anyelement, b anyelement) RETURNS anyelement LANGUAGE plpgsql AS $$ BEGIN IF a > b THEN RETURN a; END IF; RETURN b; END $$;
SELECT pf_any(1, 2), pf_any('b'::text, 'a'::text);
CREATE FUNCTION pf_void() RETURNS void LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
SELECT pf_void();
CREATE FUNCTION pf_none() RETURNS int LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
SELECT pf_none();
CREATE FUNCTION pf_cast() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 'abc'; END $$;
SELECT pf_cast();
CREATE FUNCTION pf_array(VARIADIC a int[]) RETURNS int LANGUAGE plpgsql AS $$ DECLARE s int := 0; x int; BEGIN FOREACH x IN ARRAY a LOOP s := s + x; END LOOP; RETURN s; END $$;
SELECT pf_array(1, 2, 3);
-- Errors in them, caught or not.
CREATE FUNCTION pf_div(a int, b int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN a / b;
END $$;
SELECT pf_div(1, 0);
CREATE FUNCTION pf_outer(a int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r int;
BEGIN
  r := pf_div(a, 0);
  RETURN r;
END $$;
SELECT pf_outer(1);
CREATE FUNCTION pf_safe(a int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO pf_t VALUES (300 + a, 0, 'try');
  BEGIN
    INSERT INTO pf_t VALUES (400 + a, 0, 'gone');
    PERFORM pf_div(1, a);
    RETURN 'fine';
  EXCEPTION WHEN division_by_zero THEN
    RETURN 'caught ' || SQLERRM;
  END;
END $$;
SELECT g, pf_safe(g) FROM generate_series(0, 1) g;
SELECT id, note FROM pf_t WHERE id >= 300 ORDER BY id;
CREATE FUNCTION pf_forever(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN pf_forever(n + 1); END $$;
DO $$ BEGIN PERFORM pf_forever(1); EXCEPTION WHEN statement_too_complex THEN RAISE NOTICE '%', SQLERRM; END $$;
CREATE FUNCTION pf_syntax() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETRN 1; END $$;
CREATE FUNCTION pf_ddl() RETURNS void LANGUAGE plpgsql AS $$ BEGIN ALTER TABLE pf_t ADD COLUMN z int; END $$;
SELECT pf_ddl() FROM pf_t;
SELECT pf_ddl();
-- Rights and settings.
CREATE FUNCTION pf_path() RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog AS $$ BEGIN RETURN current_setting('search_path'); END $$;
SELECT pf_path(), current_setting('search_path');
-- Procedures.
CREATE PROCEDURE pf_proc(a int, INOUT b int) LANGUAGE plpgsql AS $$ BEGIN b := a + b; RAISE NOTICE 'in %', b; END $$;
CALL pf_proc(1, 2);
DO $$ DECLARE x int := 5; BEGIN CALL pf_proc(10, x); RAISE NOTICE 'out %', x; CALL pf_proc(1, 2); END $$;
CREATE PROCEDURE pf_steps() LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..4 LOOP INSERT INTO pf_t VALUES (500 + i, i); IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF; END LOOP; END $$;
CALL pf_steps();
SELECT id FROM pf_t WHERE id > 500 ORDER BY id;
BEGIN;
CALL pf_steps();
ROLLBACK;
CALL pf_add(1, 2);
SELECT pf_proc(1, 2);
CALL pf_missing(1);
-- Who is no superuser calls them, too, unless he may not.
CREATE ROLE pf_low;
GRANT SELECT ON pf_t TO pf_low;
SET ROLE pf_low;
CALL pf_proc(1, 2);
DO $$ DECLARE x int := 5; BEGIN CALL pf_proc(10, x); RAISE NOTICE 'out %', x; END $$;
DO $$ BEGIN PERFORM id FROM pf_t; UPDATE pf_t SET id = 1; END $$;
RESET ROLE;
REVOKE EXECUTE ON PROCEDURE pf_proc FROM PUBLIC;
SET ROLE pf_low;
CALL pf_proc(1, 2);
DO $$ DECLARE x int := 5; BEGIN CALL pf_proc(10, x); END $$;
RESET ROLE;
GRANT EXECUTE ON PROCEDURE pf_proc TO pf_low;
SET ROLE pf_low;
CALL pf_proc(1, 2);
RESET ROLE;
DROP OWNED BY pf_low;
DROP ROLE pf_low;
-- A subquery that refers to no enclosing row calls its function once.
CREATE FUNCTION pf_told(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'told %', n; RETURN QUERY SELECT generate_series(1, n); END $$;
SELECT (SELECT x FROM pf_told(1) x);
SELECT g, (SELECT x FROM pf_told(1) x) FROM generate_series(1, 3) g;
SELECT g FROM generate_series(1, 4) g WHERE g = ANY (ARRAY(SELECT s FROM pf_told(2) s));
SELECT g FROM generate_series(1, 4) g WHERE g NOT IN (SELECT s FROM pf_told(2) s);
SELECT g, EXISTS (SELECT FROM pf_told(0)) FROM generate_series(1, 2) g;
SELECT g FROM generate_series(1, 5) g ORDER BY g LIMIT (SELECT max(s) FROM pf_told(2) s);
SELECT (SELECT x FROM pf_told(2) x);
DROP FUNCTION pf_told;
DROP PROCEDURE pf_proc, pf_steps;
DROP FUNCTION pf_add, pf_fact, pf_bump, pf_log, pf_count, pf_countv, pf_wrong, pf_row, pf_two, pf_set, pf_table, pf_rows, pf_badset, pf_strict, pf_any, pf_void, pf_none, pf_cast, pf_array, pf_div, pf_outer, pf_safe, pf_forever, pf_ddl, pf_path;
DROP TABLE pf_t;
-- Roles are not set in a function with SECURITY DEFINER.
CREATE ROLE pf_other;
CREATE FUNCTION pf_sets() RETURNS text LANGUAGE plpgsql AS $$ BEGIN SET LOCAL ROLE pf_other; RETURN current_user; END $$;
CREATE FUNCTION pf_definer() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN pf_sets(); END $$;
CREATE FUNCTION pf_resets() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RESET ROLE; RETURN current_user; END $$;
SELECT pf_definer();
SELECT pf_resets();
BEGIN;
SELECT pf_sets();
ROLLBACK;
DO $$ DECLARE r record; BEGIN SELECT 1 AS a, 2 AS b INTO r WHERE false; RAISE NOTICE '% %', r, r IS NULL; END $$;
DROP FUNCTION pf_sets, pf_definer, pf_resets;
DROP ROLE pf_other;
-- Functions that are not volatile run queries alone: what else there is would move the view of the statement that calls them.
CREATE TABLE pf_n (a int);
INSERT INTO pf_n VALUES (1);
CREATE PROCEDURE pf_nothing() LANGUAGE sql AS '';
CREATE FUNCTION pf_stable(i int, what text) RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN EXECUTE what; RETURN i; END $$;
CREATE FUNCTION pf_creates(i int) RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN CREATE TEMP TABLE IF NOT EXISTS pf_zz (a int); RETURN i; END $$;
CREATE FUNCTION pf_calls(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN CALL pf_nothing(); RETURN i; END $$;
CREATE FUNCTION pf_calls_sql() RETURNS int STABLE LANGUAGE sql AS 'CALL pf_nothing(); SELECT 1';
INSERT INTO pf_n SELECT pf_creates(a) FROM pf_n;
INSERT INTO pf_n SELECT pf_calls(a) FROM pf_n;
INSERT INTO pf_n SELECT pf_calls_sql() FROM pf_n;
INSERT INTO pf_n SELECT pf_stable(a, 'TRUNCATE pf_n') FROM pf_n;
SELECT pf_stable(1, 'SET work_mem = 100');
SELECT pf_stable(1, 'LOCK TABLE pf_n');
SELECT pf_stable(1, 'DO $x$ BEGIN END $x$');
SELECT pf_stable(1, 'GRANT SELECT ON pf_n TO PUBLIC');
SELECT pf_stable(1, 'EXPLAIN SELECT 1');
SELECT pf_stable(1, 'SELECT a FROM pf_n');
SELECT * FROM pf_n;
DROP FUNCTION pf_stable, pf_creates, pf_calls, pf_calls_sql;
DROP PROCEDURE pf_nothing;
DROP TABLE pf_n;
