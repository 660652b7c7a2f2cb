-- DO and the statements of PL/pgSQL.
DO $$ BEGIN RAISE NOTICE 'hello %, %', 'world', 1 + 1; END $$;
DO LANGUAGE plpgsql 'BEGIN RAISE WARNING ''quoted %% %'', NULL::int; END';
CREATE TABLE do_t (id int PRIMARY KEY, name text NOT NULL, n numeric(6,2), at timestamptz);
-- Variables.
DO $$
<<blk>>
DECLARE
  a int := 5;
  b CONSTANT text DEFAULT 'b' || a;
  c do_t.name%TYPE = 'c';
  d a%TYPE;
  r do_t%ROWTYPE;
  x record;
  arr int[] := '{1,2,3}';
  short varchar(3);
  e ALIAS FOR a;
BEGIN
  d := a * 2;
  e := e + 1;
  RAISE NOTICE '% % % % %', a, b, c, d, r;
  r.id := 7; r.name := 'seven'; r.n := 1.005;
  RAISE NOTICE '% %', r, r.n;
  SELECT 1 AS one, 'two'::text AS two INTO x;
  RAISE NOTICE '% % %', x, x.one, x.two;
  x.two := 'changed';
  RAISE NOTICE '%', x;
  arr[2] := 20; arr[5] := 50;
  RAISE NOTICE '% %', arr, arr[2];
  DECLARE
    a text := 'inner';
  BEGIN
    RAISE NOTICE '% %', a, blk.a;
    blk.a := 100;
  END;
  RAISE NOTICE '%', a;
  a := '42';
  d := 3.7;
  RAISE NOTICE '% %', a, d;
  short := 'abcd';
EXCEPTION WHEN string_data_right_truncation THEN
  RAISE NOTICE '% %', SQLSTATE, SQLERRM;
END $$;
-- Control.
DO $$
DECLARE i int; s text := ''; r record; t text; n int := 0;
BEGIN
  FOR i IN 1..3 LOOP s := s || i; END LOOP;
  FOR i IN REVERSE 10..1 BY 4 LOOP s := s || ',' || i; END LOOP;
  FOR r IN SELECT g, g * g AS sq FROM generate_series(1, 3) g LOOP s := s || ' ' || r.g || '=' || r.sq; END LOOP;
  FOR n, t IN VALUES (1, 'x'), (2, 'y') LOOP s := s || t || n; END LOOP;
  FOR r IN EXECUTE 'SELECT $1 + g AS v FROM generate_series(1, 2) g' USING 10 LOOP s := s || ';' || r.v; END LOOP;
  FOREACH i IN ARRAY ARRAY[7, 8] LOOP s := s || '/' || i; END LOOP;
  RAISE NOTICE '% found %', s, FOUND;
  n := 0;
  <<big>>
  LOOP
    n := n + 1;
    CONTINUE WHEN n = 2;
    FOR i IN 1..10 LOOP
      EXIT big WHEN n = 4;
      CONTINUE big WHEN i = 2;
    END LOOP;
  END LOOP big;
  WHILE n < 10 LOOP n := n + 1; IF n = 8 THEN EXIT; ELSIF n = 7 THEN NULL; ELSE s := 'w'; END IF; END LOOP;
  RAISE NOTICE 'n %', n;
  CASE n WHEN 1, 2 THEN s := 'few'; WHEN 8 THEN s := 'eight'; ELSE s := 'many'; END CASE;
  CASE WHEN n > 100 THEN s := s || '!'; ELSE s := s || '?'; END CASE;
  RAISE NOTICE '%', s;
  FOR i IN 5..1 LOOP s := 'never'; END LOOP;
  RAISE NOTICE 'found %', FOUND;
END $$;
-- SQL, with its rows and counts.
DO $$
DECLARE c bigint; v int; w text; row do_t;
BEGIN
  INSERT INTO do_t SELECT g, 'n' || g, g FROM generate_series(1, 5) g;
  GET DIAGNOSTICS c = ROW_COUNT;
  RAISE NOTICE 'inserted % found %', c, FOUND;
  UPDATE do_t SET n = n * 10 WHERE id > 100;
  RAISE NOTICE 'found %', FOUND;
  UPDATE do_t SET n = n + 1 WHERE id = 3 RETURNING id, name INTO v, w;
  RAISE NOTICE '% %', v, w;
  SELECT * INTO row FROM do_t WHERE id = 3;
  RAISE NOTICE '%', row;
  SELECT id INTO v FROM do_t WHERE id = 99;
  RAISE NOTICE '% %', v, FOUND;
  SELECT id INTO v FROM do_t ORDER BY id DESC;
  RAISE NOTICE '%', v;
  PERFORM 1 FROM do_t WHERE id = 4;
  RAISE NOTICE 'found %', FOUND;
  EXECUTE 'SELECT count(*), max(name) FROM do_t WHERE id <= $1' INTO c, w USING 4;
  RAISE NOTICE '% %', c, w;
  EXECUTE format('DELETE FROM %I WHERE id = %L', 'do_t', 5);
  DELETE FROM do_t WHERE id = 4;
  INSERT INTO do_t VALUES (row.id + 10, row.name, row.n) RETURNING * INTO row;
  INSERT INTO do_t SELECT 20, 'star', 1;
  RAISE NOTICE '% %', row.id, (SELECT count(*) FROM do_t);
END $$;
SELECT * FROM do_t ORDER BY id;
-- Errors are caught, and what was done in their block is undone.
DO $$
DECLARE st text; ms text; ct text; tb text; cn text; dt text;
BEGIN
  INSERT INTO do_t VALUES (30, 'stays');
  BEGIN
    INSERT INTO do_t VALUES (31, 'goes');
    CREATE TABLE do_gone (a int);
    INSERT INTO do_t VALUES (1, 'twice');
  EXCEPTION WHEN unique_violation THEN
    GET STACKED DIAGNOSTICS st = RETURNED_SQLSTATE, ms = MESSAGE_TEXT, ct = PG_EXCEPTION_CONTEXT, tb = TABLE_NAME, cn = CONSTRAINT_NAME, dt = PG_EXCEPTION_DETAIL;
    RAISE NOTICE '% | % | % | % | % | %', st, ms, ct, tb, cn, dt;
  END;
  BEGIN
    PERFORM 1 / (SELECT count(*) FROM do_t WHERE id = 31);
  EXCEPTION WHEN data_exception OR no_data_found THEN
    RAISE NOTICE 'class % %', SQLSTATE, SQLERRM;
  END;
  BEGIN
    RAISE EXCEPTION 'own %', 1 USING ERRCODE = 'AB123', HINT = 'a hint', DETAIL = 'a detail';
  EXCEPTION WHEN SQLSTATE 'AB123' THEN
    RAISE NOTICE '% %', SQLSTATE, SQLERRM;
  END;
  BEGIN
    BEGIN
      RAISE division_by_zero;
    EXCEPTION WHEN unique_violation THEN
      RAISE NOTICE 'not here';
    END;
  EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'others % %', SQLSTATE, SQLERRM;
    BEGIN
      RAISE;
    EXCEPTION WHEN OTHERS THEN
      RAISE NOTICE 'again %', SQLERRM;
    END;
  END;
  BEGIN
    SELECT id INTO STRICT st FROM do_t WHERE id = 99;
  EXCEPTION WHEN no_data_found THEN
    RAISE NOTICE '%', SQLERRM;
  END;
  BEGIN
    SELECT id INTO STRICT st FROM do_t;
  EXCEPTION WHEN too_many_rows THEN
    RAISE NOTICE '%', SQLERRM;
  END;
  BEGIN
    ASSERT 1 > 2, 'one is not more';
  EXCEPTION WHEN assert_failure THEN
    RAISE NOTICE '%', SQLERRM;
  END;
END $$;
SELECT id, name FROM do_t WHERE id >= 30;
SELECT to_regclass('do_gone');
-- DDL.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_type WHERE typname = 'do_mood') THEN
    CREATE TYPE do_mood AS ENUM ('sad', 'ok');
  END IF;
  ALTER TABLE do_t ADD COLUMN mood do_mood;
  UPDATE do_t SET mood = 'ok' WHERE id = 1;
  CREATE TABLE do_made AS SELECT id, mood FROM do_t WHERE mood IS NOT NULL;
  EXECUTE 'ALTER TABLE do_made ADD COLUMN k int DEFAULT 3';
  INSERT INTO do_made VALUES (2, 'sad');
EXCEPTION
  WHEN duplicate_object THEN NULL;
END $$;
SELECT * FROM do_made ORDER BY id;
DO $$ BEGIN CREATE TYPE do_mood AS ENUM ('x'); EXCEPTION WHEN duplicate_object THEN RAISE NOTICE 'there: %', SQLERRM; END $$;
DO $$ BEGIN ALTER TABLE do_t ADD COLUMN mood int; EXCEPTION WHEN duplicate_column THEN RAISE NOTICE 'there: %', SQLERRM; END $$;
DO $$ BEGIN FOR i IN 1..3 LOOP EXECUTE 'CREATE TEMP TABLE do_tmp (a int)'; INSERT INTO do_tmp VALUES (i); DROP TABLE do_tmp; END LOOP; END $$;
-- Errors and where they are.
DO $$
BEGIN
  RAISE EXCEPTION 'failed %', 1;
END $$;
DO $$
DECLARE x int := 0;
BEGIN
  x := 1 / x;
END $$;
DO $$
BEGIN
  INSERT INTO do_t VALUES (1, 'twice');
END $$;
DO $$
DECLARE x int := 'nine';
BEGIN
  NULL;
END $$;
DO $$ BEGIN PERFORM missing FROM do_t; END $$;
DO $$ BEGIN SELECT 1; END $$;
DO $$ DECLARE id int := 1; BEGIN DELETE FROM do_t WHERE id = 1; END $$;
DO $$
#variable_conflict use_column
DECLARE id int := 1; k int; BEGIN SELECT id INTO k FROM do_t WHERE do_t.id = 2; RAISE NOTICE '%', k; END $$;
DO $$
#variable_conflict use_variable
DECLARE id int := 1; k int; BEGIN SELECT id INTO k FROM do_t WHERE do_t.id = 2; RAISE NOTICE '%', k; END $$;
DO $$ BEGIN x := 1; END $$;
DO $$ BEGIN IF 1 THEN NULL; END $$;
DO $$ BEGIN PERFORM 1; SELECT 1 END $$;
DO $$ DECLARE a int; a int; BEGIN END $$;
DO $$ DECLARE a CONSTANT int := 1; BEGIN a := 2; END $$;
DO $$ DECLARE a int NOT NULL := 1; BEGIN a := NULL; END $$;
DO $$ DECLARE a nosuchtype; BEGIN END $$;
DO $$ BEGIN EXIT; END $$;
DO $$ BEGIN RAISE NOTICE '% %', 1; END $$;
DO $$ BEGIN RETURN 1; END $$;
DO $$ DECLARE r record; BEGIN RAISE NOTICE '%', r.a; END $$;
DO $$ DECLARE r record; BEGIN SELECT 1 AS a INTO r; RAISE NOTICE '%', r.b; END $$;
DO $$ BEGIN CASE 1 WHEN 2 THEN NULL; END CASE; END $$;
DO $$ BEGIN EXECUTE NULL; END $$;
DO $$ BEGIN EXECUTE 'SELEC 1'; END $$;
DO $$ BEGIN SAVEPOINT a; END $$;
DO LANGUAGE sql $$ SELECT 1 $$;
DO $$ BEGIN GET STACKED DIAGNOSTICS x = MESSAGE_TEXT; END $$;
DO $$ BEGIN RAISE; END $$;
DO $$ BEGIN ASSERT false; END $$;
DO $$ BEGIN VACUUM do_t; END $$;
-- Transactions.
DO $$ BEGIN INSERT INTO do_t VALUES (40, 'committed'); COMMIT; INSERT INTO do_t VALUES (41, 'gone'); ROLLBACK; INSERT INTO do_t VALUES (42, 'in the end'); END $$;
SELECT id FROM do_t WHERE id >= 40 ORDER BY id;
BEGIN;
DO $$ BEGIN COMMIT; END $$;
ROLLBACK;
DO $$ BEGIN BEGIN COMMIT; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM; END; END $$;
BEGIN;
SAVEPOINT s;
DO $$ BEGIN INSERT INTO do_t VALUES (50, 'block'); BEGIN INSERT INTO do_t VALUES (50, 'again'); EXCEPTION WHEN OTHERS THEN NULL; END; END $$;
SELECT id FROM do_t WHERE id >= 50;
ROLLBACK TO s;
SELECT id FROM do_t WHERE id >= 50;
COMMIT;
-- The transaction ends only where nothing around goes on in it.
CREATE TABLE do_end (a int);
DO $o$ BEGIN BEGIN INSERT INTO do_end VALUES (2); DO $i$ BEGIN COMMIT; END $i$; INSERT INTO do_end VALUES (3); RAISE 'x';
EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM; END; END $o$;
SELECT * FROM do_end;
DO $o$ BEGIN BEGIN INSERT INTO do_end VALUES (2); DO $i$ BEGIN ROLLBACK; END $i$; INSERT INTO do_end VALUES (3);
EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM; END; END $o$;
SELECT * FROM do_end;
DO $o$ BEGIN BEGIN SET application_name = 'kept'; DO $i$ BEGIN COMMIT; END $i$;
EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM; END; END $o$;
SELECT current_setting('application_name') = 'kept';
DO $o$ BEGIN INSERT INTO do_end VALUES (4); EXECUTE 'DO $i$ BEGIN COMMIT; END $i$'; END $o$;
SELECT * FROM do_end;
CREATE PROCEDURE do_ends() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$;
CREATE PROCEDURE do_calls() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO do_end VALUES (5); CALL do_ends(); INSERT INTO do_end VALUES (6); ROLLBACK; END $$;
CREATE FUNCTION do_within(how text) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO do_end VALUES (7);
  IF how = 'do' THEN EXECUTE 'DO $i$ BEGIN COMMIT; END $i$'; ELSIF how = 'call' THEN EXECUTE 'CALL do_ends()'; ELSE CALL do_ends(); END IF;
  RETURN 1;
END $$;
SELECT do_within('do');
SELECT do_within('call');
SELECT do_within('itself');
SELECT * FROM do_end;
CALL do_calls();
DO $o$ BEGIN CALL do_calls(); DO $i$ BEGIN INSERT INTO do_end VALUES (8); COMMIT; END $i$; INSERT INTO do_end VALUES (9); ROLLBACK; END $o$;
DO $o$ BEGIN EXECUTE 'CALL do_calls()'; END $o$;
DO $o$ BEGIN BEGIN CALL do_calls(); EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM; CALL do_calls(); END; END $o$;
SELECT * FROM do_end ORDER BY a;
-- A table that a loop reads is in use until the loop ends, or the transaction does.
DO $$ DECLARE k int; BEGIN FOR k IN SELECT a FROM do_end LOOP DROP TABLE do_end; END LOOP; END $$;
DO $$ DECLARE k int; BEGIN FOR k IN EXECUTE 'SELECT a FROM do_end' LOOP TRUNCATE do_end; END LOOP; END $$;
DO $$ DECLARE k int; BEGIN FOR k IN SELECT a FROM do_end LOOP NULL; END LOOP; TRUNCATE do_end; END $$;
INSERT INTO do_end VALUES (1), (2);
DO $$ DECLARE k int; BEGIN FOR k IN SELECT a FROM do_end ORDER BY a LOOP COMMIT; IF k = 1 THEN ALTER TABLE do_end ADD b int; END IF; RAISE NOTICE '%', k; END LOOP; END $$;
DROP PROCEDURE do_ends, do_calls;
DROP FUNCTION do_within;
DROP TABLE do_end;
-- What is changed in part stays as it was when the change fails, and others that hold the same do not see it.
CREATE DOMAIN do_short AS int[] CHECK (cardinality(VALUE) < 3);
CREATE TYPE do_both AS (n int, list int[]);
DO $$
DECLARE a int[] := '{1,2}'; b int[]; m int[] := '{{1,2},{3,4}}'; e int[]; s do_short := '{1,2}'; r record; t do_both; q do_both; x int;
BEGIN
  b := a; a[1] := 9; a[3] := 3; a[6] := 6; a[-1] := 0;
  RAISE NOTICE '% %', a, b;
  e[5] := 5; e[6] := 6; e[5] := 4; m[2][1] := 30;
  RAISE NOTICE '% %', e, m;
  BEGIN m[3][1] := 0; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% % %', SQLSTATE, SQLERRM, m; END;
  BEGIN a[1] := 'one'; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, a; END;
  BEGIN a[NULL] := 1; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, a; END;
  BEGIN a[2147483647] := 1; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, cardinality(a); END;
  BEGIN s[3] := 3; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, s; END;
  s[2] := 7; t.n := 1; t.list[2] := 2; t.list[3] := 3; q := t; t.list[2] := 0; t.n := 5;
  RAISE NOTICE '% % %', s, t, q;
  BEGIN t.n := 'one'; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, t; END;
  BEGIN t.list[2] := 'one'; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE, t; END;
  SELECT 1 AS i, 'a'::text AS w INTO r;
  r.w := 'b'; r.i := r.i + 1;
  RAISE NOTICE '%', r;
  FOREACH x IN ARRAY b LOOP b[x + 1] := x; END LOOP;
  RAISE NOTICE '%', b;
END $$;
DO $$ DECLARE a int[] := '{}'; BEGIN FOR i IN 1..20000 LOOP a[i] := i; END LOOP; RAISE NOTICE '% %', cardinality(a), a[20000]; END $$;
-- A record's fields, where a row of VALUES names them all.
CREATE TABLE do_fields (n int, list int[]);
DO $$
DECLARE v do_fields; w do_both := ROW(3, '{3}');
BEGIN
  v.n := 1; v.list := '{1}';
  INSERT INTO do_fields VALUES (v.*), (w.*);
  INSERT INTO do_fields SELECT column1 + 1, column2 FROM (VALUES (w.*)) s;
  INSERT INTO do_fields VALUES (9, NULL), (v.*);
END $$;
SELECT * FROM do_fields ORDER BY n;
DO $$ DECLARE v do_fields; BEGIN INSERT INTO do_fields VALUES (0, v.*); END $$;
DO $$ DECLARE v do_fields; BEGIN INSERT INTO do_fields VALUES (v.*), (1); END $$;
SELECT * FROM do_fields f, LATERAL (VALUES (f.*, 1)) s ORDER BY 1;
DROP TABLE do_fields;
-- Bodies in one another without an end, and many that are short, whose time is limited all the same.
CREATE FUNCTION do_deep(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN do_deep(n + 1); END $$;
DO $$ BEGIN PERFORM do_deep(1); EXCEPTION WHEN statement_too_complex THEN RAISE NOTICE '%', SQLSTATE; END $$;
CREATE OR REPLACE FUNCTION do_deep(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN IF n < 25 THEN PERFORM do_deep(n + 1); PERFORM do_deep(n + 1); END IF; RETURN n; END $$;
SET statement_timeout = '100ms';
DO $$ BEGIN PERFORM do_deep(1); EXCEPTION WHEN query_canceled THEN RAISE NOTICE '%', SQLSTATE; END $$;
RESET statement_timeout;
DROP FUNCTION do_deep;
DROP DOMAIN do_short;
DROP TYPE do_both;
DROP TABLE do_t, do_made;
DROP TYPE do_mood;
