-- What plpgsql.extra_errors and plpgsql.extra_warnings look at.
SET plpgsql.extra_errors TO 'shadowed_variables';
CREATE FUNCTION shadow(f1 int) RETURNS boolean AS $$ DECLARE f1 int; BEGIN RETURN 1; END $$ LANGUAGE plpgsql;
SELECT shadow(1);
DO $$ DECLARE a int; BEGIN DECLARE a int; BEGIN NULL; END; END $$;
RESET plpgsql.extra_errors;
CREATE FUNCTION shadow(f1 int) RETURNS boolean AS $$ DECLARE f1 int; BEGIN RETURN 1; END $$ LANGUAGE plpgsql;
SELECT shadow(1);
DROP FUNCTION shadow(int);

DO $$ DECLARE x int; BEGIN SELECT v FROM generate_series(1, 2) g(v) INTO x; RAISE NOTICE '%', x; END $$;
SET plpgsql.extra_warnings TO 'too_many_rows';
DO $$ DECLARE x int; BEGIN SELECT v FROM generate_series(1, 2) g(v) INTO x; RAISE NOTICE '%', x; END $$;
SET plpgsql.extra_errors TO 'too_many_rows';
DO $$ DECLARE x int; BEGIN SELECT v FROM generate_series(1, 2) g(v) INTO x; END $$;
RESET plpgsql.extra_errors;
SET plpgsql.extra_warnings TO 'strict_multi_assignment';
DO $$ DECLARE x int; y int; BEGIN SELECT 1 INTO x, y; SELECT 1, 2 INTO x, y; SELECT 1, 2, 3 INTO x, y; END $$;
SET plpgsql.extra_errors TO 'strict_multi_assignment';
DO $$ DECLARE x int; y int; BEGIN SELECT 1 INTO x, y; END $$;
DO $$ DECLARE x int; y int; BEGIN SELECT 1, 2 INTO x, y; EXECUTE 'SELECT 1, 2, 3' INTO x, y; END $$;
CREATE TABLE extra(a int, b int);
INSERT INTO extra VALUES (10, 20);
DO $$ DECLARE x int; y int; BEGIN SELECT * FROM extra INTO x, y; RAISE NOTICE 'ok'; SELECT * FROM extra INTO x; END $$;
DO $$ DECLARE t extra; BEGIN SELECT 1, 2 INTO t; RAISE NOTICE 'ok'; SELECT 1, 2, 3 INTO t; END $$;
DO $$ DECLARE t extra; BEGIN SELECT 1 INTO t; END $$;
DO $$ DECLARE t extra; BEGIN SELECT 1 INTO t WHERE false; RAISE NOTICE 'no row'; END $$;
RESET plpgsql.extra_errors;
RESET plpgsql.extra_warnings;
DROP TABLE extra;

-- The fields of a row that is returned are of the types that are declared.
CREATE TYPE extra_row AS (x int, y varchar);
CREATE FUNCTION compos() RETURNS extra_row AS $$ BEGIN RETURN (1, 'hello'::varchar); END $$ LANGUAGE plpgsql;
SELECT compos();
CREATE OR REPLACE FUNCTION compos() RETURNS extra_row AS $$ BEGIN RETURN (1, 'hello'::text); END $$ LANGUAGE plpgsql;
SELECT compos();
CREATE OR REPLACE FUNCTION compos() RETURNS extra_row AS $$ BEGIN RETURN (1, 'hello')::extra_row; END $$ LANGUAGE plpgsql;
SELECT compos();
DROP FUNCTION compos();
DROP TYPE extra_row;
