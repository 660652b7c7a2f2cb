-- Forms of queries that are met less often: FETCH ... WITH TIES, ORDER BY ... USING, names of joins, LIKE ANY, VALUES in expressions,
-- LATERAL where it may not look, and what WITH RECURSIVE may not say.
\set VERBOSITY verbose
\pset null '-'
CREATE TABLE medal (id int PRIMARY KEY, team varchar(10), points int, day date);
INSERT INTO medal VALUES (1, 'red', 30, '2024-01-01'), (2, 'blue', 20, '2024-01-02'), (3, 'green', 20, NULL),
    (4, 'red', 20, '2024-01-04'), (5, 'blue', 10, '2024-01-05'), (6, NULL, NULL, '2024-01-06');
CREATE TABLE team (team text, points bigint, since smallint);
INSERT INTO team VALUES ('red', 30, 7), ('blue', 20, 8), ('grey', 1, 9);

-- WITH TIES
SELECT id, points FROM medal ORDER BY points DESC NULLS LAST FETCH FIRST 2 ROWS WITH TIES;
SELECT points FROM medal ORDER BY points FETCH FIRST ROW WITH TIES;
SELECT points FROM medal ORDER BY points DESC FETCH NEXT 1 ROW WITH TIES;
SELECT points FROM medal ORDER BY points DESC NULLS LAST OFFSET 2 FETCH FIRST 1 ROW WITH TIES;
SELECT points FROM medal ORDER BY points OFFSET 3 ROWS FETCH FIRST 2 ROWS WITH TIES;
SELECT team FROM medal ORDER BY points DESC NULLS LAST, team FETCH FIRST 3 ROWS WITH TIES;
SELECT count(*) FROM (SELECT 1 FROM medal ORDER BY points % 20 FETCH FIRST 1 ROW WITH TIES) t;
SELECT count(*) FROM (SELECT 1 FROM medal ORDER BY 1 FETCH FIRST 1 ROW WITH TIES) t;
SELECT points FROM medal ORDER BY points FETCH FIRST 0 ROWS WITH TIES;
SELECT count(*) FROM (SELECT g % 3 FROM generate_series(1, 1500) g ORDER BY g % 3 FETCH FIRST 2 ROWS WITH TIES) t;
SELECT DISTINCT points FROM medal ORDER BY points FETCH FIRST 2 ROWS WITH TIES;
SELECT * FROM (SELECT points, count(*) FROM medal GROUP BY points ORDER BY count(*) FETCH FIRST 1 ROW WITH TIES) t ORDER BY points;
SELECT points FROM medal UNION ALL SELECT points FROM team ORDER BY points DESC NULLS LAST FETCH FIRST 3 ROWS WITH TIES;
SELECT m.id, (SELECT count(*) FROM (SELECT 1 FROM medal n ORDER BY n.points = m.points FETCH FIRST 1 ROW WITH TIES) t) FROM medal m ORDER BY 1;
PREPARE best(int) AS SELECT points FROM medal ORDER BY points DESC NULLS LAST FETCH FIRST ($1) ROWS WITH TIES;
EXECUTE best(2);
EXECUTE best(NULL);
DEALLOCATE best;
SELECT points FROM medal FETCH FIRST 2 ROWS WITH TIES;
SELECT points FROM medal ORDER BY points FETCH FIRST (NULL) ROWS WITH TIES;
SELECT points FROM medal ORDER BY points FETCH FIRST 1 ROW WITH TIES FOR UPDATE SKIP LOCKED;
SELECT points FROM medal ORDER BY points FETCH FIRST 1 ROW WITH TIES FOR UPDATE;
CREATE VIEW best AS SELECT team, points FROM medal ORDER BY points DESC FETCH FIRST 2 ROWS WITH TIES;
SELECT pg_get_viewdef('best'::regclass, true);
DROP VIEW best;

-- ORDER BY ... USING
SELECT id, points FROM medal ORDER BY points USING >, id USING <;
SELECT id, points FROM medal ORDER BY points USING < NULLS FIRST, id USING OPERATOR(pg_catalog.>);
SELECT team FROM team ORDER BY team USING ~>~;
SELECT string_agg(team, ',' ORDER BY team USING >) FROM team;
SELECT row_number() OVER (ORDER BY points USING >), points FROM team ORDER BY 1;
SELECT id FROM medal ORDER BY points USING =;

-- Joins and their names
SELECT j.*, m.id FROM medal m JOIN team t USING (team, points) AS j ORDER BY 1;
SELECT j, j.team, m.points FROM medal m LEFT JOIN team t USING (team) AS j ORDER BY m.id;
SELECT * FROM medal m JOIN team t USING (team, points) AS j WHERE j.points > 20;
SELECT j.day FROM medal m JOIN team t USING (team) AS j;
SELECT 1 FROM medal m JOIN team t USING (team) AS m;
SELECT pg_typeof(points) FROM medal JOIN team USING (points) LIMIT 1;
SELECT pg_typeof(points) FROM medal LEFT JOIN team USING (points) LIMIT 1;
SELECT pg_typeof(points), points FROM medal RIGHT JOIN team USING (points) ORDER BY 2 LIMIT 1;
SELECT medal.points FROM medal LEFT JOIN team USING (points) GROUP BY points;
SELECT * FROM team x JOIN (team x CROSS JOIN medal y) j ON x.since = j.id;
SELECT * FROM team x JOIN (team x JOIN medal y ON x.since = y.id) j(a, b, c) ON x.points = j.b;
SELECT * FROM (team CROSS JOIN medal) j(a, b, c, d, e, f, g, h);
SELECT * FROM medal a RIGHT JOIN LATERAL (SELECT a.points) s ON true;
SELECT * FROM medal a FULL JOIN LATERAL generate_series(1, a.points) s ON true;
SELECT * FROM medal a LEFT JOIN LATERAL (SELECT a.points + 1 AS more) s ON true ORDER BY a.id LIMIT 1;
UPDATE medal SET points = 1 FROM LATERAL (SELECT * FROM team WHERE team.points = medal.points) s;
SELECT 1 FROM medal a, LATERAL (SELECT max(a.id) FROM team) s;
SELECT 1 FROM medal a JOIN LATERAL generate_series(1, count(*)) s ON true;

-- LIKE and arrays
SELECT team FROM team WHERE team LIKE ANY (ARRAY['r%', '%ue']) ORDER BY 1;
SELECT team FROM team WHERE team LIKE ALL (ARRAY['%r%', '%e%']) ORDER BY 1;
SELECT team FROM team WHERE team NOT LIKE ALL (ARRAY['r%', 'b%']);
SELECT team FROM team WHERE team NOT LIKE ANY (ARRAY['%r%', '%e%']) ORDER BY 1;
SELECT team ILIKE SOME ('{R%,x}'), team NOT ILIKE ANY ('{R%,x}') FROM team ORDER BY team;
SELECT team FROM team WHERE 'pre' || team LIKE ANY (SELECT 'pre' || m.team || '%' FROM medal m) ORDER BY 1;
SELECT 'a' LIKE ANY (ARRAY[1]);

-- VALUES, and parentheses
SELECT (VALUES (3)) + 1 AS four, 2 = ANY (VALUES (1), (2)), 3 <> ALL (VALUES (1), (2)), 2 IN (VALUES (2));
SELECT 1, (VALUES ('x')) AS x, CASE WHEN true THEN (VALUES (4)) END AS c;
WITH RECURSIVE n(i) AS (SELECT (VALUES (1)) UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n;
SELECT (((SELECT 1)) UNION SELECT 1) AS one, ((SELECT 2)) + 1 AS three;
SELECT * FROM team t, (VALUES (7), (9)) v(since) WHERE v.since = t.since ORDER BY 1;

-- Rows of a record without a name of their own
SELECT * FROM json_to_record('{"a": 1, "b": "x"}') AS (a int, b text);
SELECT json_to_recordset.b FROM json_to_recordset('[{"a": 1, "b": "x"}]') AS (a int, b text);
SELECT * FROM jsonb_populate_record(NULL::record, '{"x": 776}') AS (x int, y int);
SELECT * FROM json_populate_recordset(row(1, 'd'::text), '[{"a": 2}, {"b": "e"}]') AS t(a int, b text);
SELECT * FROM json_populate_recordset(row(1), '[{"a": 2}]') AS t(a int, b text);
SELECT * FROM json_populate_record(row(1, 2), '{"a": 2}') AS t(a int, b text);
SELECT row(1, 'a b', NULL)::text, CAST(t AS text) FROM team t WHERE since = 7;
SELECT length(r::text) FROM (SELECT team, points FROM team WHERE since = 8) r;

-- DISTINCT and ORDER BY in aggregates, of arguments that are cast
SELECT string_agg(DISTINCT team, ',' ORDER BY team) FROM medal;
SELECT string_agg(DISTINCT team, ',' ORDER BY team DESC) FROM medal;
SELECT string_agg(DISTINCT team, ',' ORDER BY team::text) FROM medal;
SELECT array_agg(DISTINCT points ORDER BY points DESC) FROM medal;

-- What a recursive query may not say
WITH RECURSIVE n AS (SELECT 1 INTERSECT SELECT * FROM n) SELECT * FROM n;
WITH RECURSIVE n AS (SELECT * FROM n) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT i FROM n UNION ALL SELECT 1) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i IN (SELECT i FROM n)) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT (SELECT max(i) FROM n)) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT n.i + 1 FROM medal LEFT JOIN n ON n.i = medal.id) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT n.i + 1 FROM n RIGHT JOIN medal ON n.i = medal.id) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT a.i FROM n a JOIN n b ON a.i = b.i) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL (SELECT i + 1 FROM n EXCEPT SELECT i FROM n)) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL (SELECT 2 EXCEPT SELECT i FROM n)) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL (SELECT 2 INTERSECT ALL SELECT i FROM n)) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT count(*) FROM n) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n FOR UPDATE) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n ORDER BY 1) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1::bigint FROM n WHERE i < 3) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1::bigint UNION ALL SELECT 2 FROM n WHERE i < 2) SELECT * FROM n;
WITH RECURSIVE n(i) AS (WITH RECURSIVE m(j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM m WHERE j < 2) SELECT j FROM m UNION ALL SELECT i + 10 FROM n WHERE i < 12) SELECT * FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT s.i + 1 FROM (SELECT * FROM n) s JOIN team ON true WHERE s.i < 2) SELECT * FROM n;
WITH RECURSIVE n AS (WITH n AS (SELECT 1 AS one) SELECT * FROM n) SELECT * FROM n;

-- The time zone by its other name
SET TIME ZONE 10.5;
SELECT timestamptz '2024-01-01 00:00+00';
RESET TIME ZONE;
DROP TABLE medal, team;
