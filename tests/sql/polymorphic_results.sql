-- Functions with several results of polymorphic types.
CREATE FUNCTION dup(f1 anyelement, OUT f2 anyelement, OUT f3 anyarray) AS 'SELECT $1, ARRAY[$1,$1]' LANGUAGE sql;
SELECT dup(22);
SELECT dup('xyz'::text);
SELECT * FROM dup('xyz'::text);
SELECT (dup(1.5)).f3;
DROP FUNCTION dup(anyelement);

CREATE FUNCTION dup(INOUT f2 anyelement, OUT f3 anyarray) AS 'SELECT $1, ARRAY[$1,$1]' LANGUAGE sql;
SELECT dup(22);
DROP FUNCTION dup(anyelement);

CREATE FUNCTION dup(f1 anycompatible, f2 anycompatiblearray, f3 OUT anycompatible, f4 OUT anycompatiblearray)
  AS 'SELECT $1, $2' LANGUAGE sql;
SELECT dup(22, ARRAY[44]);
SELECT dup(4.5, ARRAY[44]);
SELECT *, pg_typeof(f3), pg_typeof(f4) FROM dup(22, ARRAY[44::bigint]);
DROP FUNCTION dup(anycompatible, anycompatiblearray);

CREATE FUNCTION pairs(a anyelement, b anyarray, c anycompatible, d anycompatible, OUT x anyarray, OUT y anycompatiblearray)
AS $$ BEGIN x := a || b; y := ARRAY[c, d]; END $$ LANGUAGE plpgsql;
SELECT x, pg_typeof(x), y, pg_typeof(y) FROM pairs(11, ARRAY[1, 2], 42, 34.5);
SELECT x, pg_typeof(x), y, pg_typeof(y) FROM pairs(11, '{1,2}', 1, '3');
DROP FUNCTION pairs(anyelement, anyarray, anycompatible, anycompatible);

CREATE FUNCTION bounds(i anyelement, r anyrange) RETURNS TABLE(l anyelement, u anyelement, w text)
  AS $$ SELECT lower($2), upper($2), 'w' $$ LANGUAGE sql;
SELECT * FROM bounds(1, int4range(1, 5));
DROP FUNCTION bounds(anyelement, anyrange);

CREATE FUNCTION numbered(a anyarray) RETURNS TABLE(i int, e anyelement) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..cardinality(a) LOOP e := a[i]; RETURN NEXT; END LOOP;
  RETURN QUERY SELECT 9, a[1];
END $$;
SELECT * FROM numbered(ARRAY['a', 'b']);
DROP FUNCTION numbered(anyarray);

CREATE FUNCTION two(a anyelement, OUT b anyelement, OUT c anyarray) LANGUAGE sql VOLATILE AS $$ SELECT 1; SELECT a, ARRAY[a] $$;
SELECT * FROM two(1.5);
SELECT (two('x'::text)).c;
DROP FUNCTION two(anyelement);
