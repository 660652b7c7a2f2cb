-- Arrays of records that no type has a name for.
SELECT array_agg(r) FROM (VALUES (1, 'a')) r;
SELECT array_agg(row(a,b)) FROM (VALUES (1,'x'),(2,'y')) v(a,b);
SELECT array_agg((a,b)) FROM (VALUES (1,'x'),(2,null)) v(a,b);
SELECT array_agg((a,b) ORDER BY b DESC) FROM (VALUES (1,'x'),(2,'y')) v(a,b);
SELECT array_agg(DISTINCT (a,b)) FROM (VALUES (1,'x'),(2,'y'),(1,'x')) v(a,b);
SELECT array_agg(row(i, timestamp '2000-01-01' + i * interval '1 day') ORDER BY i)::text FROM generate_series(1,3) i;
SELECT array[row(1,'a'), row(2,'b')], pg_typeof(array[(1,'a')]);
SELECT array[row(1,'a"b'), row(2,'b,c'), row(3, null), null];
SELECT array[row(1,2), row(3,'x')], array[row(1,2), row(3)];
SELECT array(SELECT row(a,b) FROM (VALUES (1,'x'),(2,'y')) v(a,b)), array(SELECT (a,b) FROM (VALUES (1,'x'),(2,'y')) v(a,b) ORDER BY a DESC);
SELECT array_agg(row(a, array[row(a,1)])) FROM generate_series(1,2) a;
SELECT row(array[row(1,2)]), array[array[row(1,2)], array[row(3,4)]];
SELECT NULL::record[], '{}'::record[], array[row(1,'a')]::text, array[row(1,'a')]::text[], array_agg(NULL::record);
SELECT array_agg(row(a)) FILTER (WHERE a > 5) FROM generate_series(1,3) a;
-- Comparison, order, groups.
SELECT array[row(1,2)] = array[row(1,2)], array[row(1,2)] < array[row(1,3)], array[row(1,2)] <> array[row(1,2)];
SELECT row(1,2) = ANY (array[row(1,2), row(3,4)]), array[row(1,2)] @> array[row(1,2)];
SELECT a FROM (VALUES (array[row(1,2)]), (array[row(3,4)]), (array[row(1,1)])) v(a) ORDER BY a DESC;
SELECT a, count(*) FROM (VALUES (array[row(1,2)]), (array[row(1,2)]), (array[row(1,1)])) v(a) GROUP BY a ORDER BY a;
SELECT DISTINCT a FROM (VALUES (array[row(1,2)]), (array[row(1,2)])) v(a);
SELECT max(a) FROM (VALUES (array[row(1,2)]), (array[row(3,4)])) v(a);
-- Functions.
SELECT (array[row(1,'a'), row(2,'b')])[2], (array[row(1,'a'), row(2,'b')])[1:1], cardinality(array[row(1,'a'), row(2,'b')]);
SELECT array_append(array[row(1,'a')], row(2,'b')), array[row(1,'a')] || row(2,'b'), array[row(1,'a')] || array[row(2,'b')];
SELECT array_position(array[row(1,2),row(3,4)], row(3,4)), array_remove(array[row(1,2),row(3,4)], row(3,4));
SELECT array_cat(array[row(1,2)], array[row(3,4)]), array_prepend(row(0,0), array[row(1,1)]), array_fill(row(1,2), array[2]);
SELECT array_replace(array[row(1,2),row(3,4)], row(1,2), row(5,6)), array_to_string(array[row(1,'a'), row(2,'b')], ';');
SELECT to_json(array[row(1,'a'), row(2,'b')]), array_to_json(array[row(1,'a')]);
SELECT to_jsonb(array_agg((a,b))), to_json(array_agg(v)) FROM (VALUES (1,'x'),(2,'y')) v(a,b);
SELECT unnest(array[row(1,'a'), row(2,'b')]);
SELECT * FROM unnest(array[row(1,2),row(3,4)]) x(a int, b int);
SELECT jsonb_agg(x) FROM unnest(array[row(1,2),row(3,4)]) AS x(a int, b int);
SELECT coalesce(array[row(1,2)], array[row(3,4)]), CASE WHEN true THEN array[row(1,2)] END;
WITH RECURSIVE g(id, path) AS (SELECT 1, array[row(1,1)] UNION ALL SELECT id+1, path || row(id+1, id) FROM g WHERE id < 3) SELECT * FROM g;
WITH RECURSIVE graph(f,t) AS (VALUES (1,2),(2,3),(3,1)),
  s(f,t,path,cycle) AS (SELECT f,t,array[row(f,t)],false FROM graph
    UNION ALL SELECT g.f,g.t,path||row(g.f,g.t), row(g.f,g.t) = ANY (path) FROM graph g, s WHERE g.f = s.t AND NOT cycle)
SELECT * FROM s ORDER BY path LIMIT 8;
-- Composite types.
CREATE TYPE spec AS (identifier text, n int);
CREATE FUNCTION takes(s spec[]) RETURNS int LANGUAGE sql AS $$ SELECT cardinality(s) $$;
SELECT takes((SELECT array_agg(r) FROM json_populate_recordset(null::spec, '[{"identifier":"a","n":1}]') r));
SELECT array[row('i',1), row('j','2')]::spec[], takes(array[row('i',1)]::spec[]);
SELECT (array_agg(row('i',a)))::spec[] FROM generate_series(1,2) a;
SELECT takes(array[row('i',1)]);
DROP FUNCTION takes;
DROP TYPE spec;
SELECT oid::regtype, typname, typelem::regtype, typarray, typtype, typcategory FROM pg_type WHERE oid IN (2249, 2287) ORDER BY oid;
SELECT 'record[]'::regtype, to_regtype('_record'), array[row(1)] IS NULL;
-- What has no such columns.
SELECT * FROM unnest(array[row(1,2), row(2,3)]);
SELECT * FROM unnest(array[row(1,2)]) x(a int, b text);
SELECT '{"(1,2)"}'::record[];
SELECT array[row(1,2)] = array[row(1,2,3)];
CREATE TABLE record_arrays AS SELECT array[row(1,2)] a;
CREATE VIEW record_arrays AS SELECT array[row(1,2)] a;
CREATE FUNCTION record_arrays(a record[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION record_arrays() RETURNS record[] LANGUAGE sql AS 'SELECT array[row(1,2)]';
