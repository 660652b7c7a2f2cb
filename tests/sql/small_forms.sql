-- Forms that are easily taken for others.
CREATE TABLE forms (b int, name text);
INSERT INTO forms VALUES (1, NULL), (NULL, 'x');
SELECT b isnull, b notnull, name isnull FROM forms;
SELECT count(*) FROM forms WHERE b ISNULL AND name NOTNULL;
SELECT v.b NOTNULL AS x FROM forms v;
SELECT (1) isnull, 'x' notnull, null isnull, 1 + 1 notnull;
SELECT CASE WHEN b isnull THEN 1 ELSE 2 END FROM forms;
SELECT array[1] isnull, (array[1, NULL])[2] isnull, b + 1 isnull = true FROM forms;
SELECT 1 AS "isnull", 2 AS isnull;
SELECT "isnull" FROM (SELECT 3) s("isnull");
CREATE FUNCTION isnull(int) RETURNS text LANGUAGE sql AS 'SELECT ''called''';
SELECT isnull(1);
DROP FUNCTION isnull;
DO $$ DECLARE x int; BEGIN IF x isnull THEN RAISE NOTICE 'no x'; END IF; x := 1; IF x notnull THEN RAISE NOTICE 'x'; END IF; END $$;
DROP TABLE forms;
-- What computes only some of its parts takes no set.
SELECT coalesce(generate_series(1, 3), 0);
SELECT CASE WHEN generate_series(1, 3) > 1 THEN 1 END;
SELECT CASE generate_series(1, 3) WHEN 1 THEN 2 END;
SELECT CASE WHEN true THEN generate_series(1, 3) END;
SELECT CASE 1 WHEN 1 THEN 2 ELSE generate_series(1, 3) END;
SELECT generate_series(1, 2), coalesce(1, 0), CASE WHEN true THEN 2 END;
SELECT coalesce((SELECT max(g) FROM generate_series(1, 3) g), 0), CASE WHEN 2 = ANY (SELECT generate_series(1, 3)) THEN 1 END;
SELECT greatest(generate_series(1, 3), 2);
