-- Rows compared with the one row of a subquery; SET (a, b) = (subquery); SIMILAR TO; SELECT of nothing.
CREATE TABLE rsq_a (id int PRIMARY KEY, x int, y text);
INSERT INTO rsq_a VALUES (1, 10, 'a'), (2, 20, 'b'), (3, NULL, 'c'), (4, 40, NULL);
SELECT (1, 2) = (SELECT 1, 2), (1, 2) = (SELECT 1, 3), (1, 2) <> (SELECT 1, 3), (1, NULL) = (SELECT 1, 3), (2, NULL) = (SELECT 1, 3);
SELECT (1, 2) < (SELECT 1, 3), (1, 2) < (SELECT 1, 2), (1, 2) <= (SELECT 1, 2), (2, 0) > (SELECT 1, 9), (1, NULL) < (SELECT 2, 1), (1, NULL) >= (SELECT 1, 1);
SELECT (1, 2) = (SELECT 1, 2 WHERE false) AS none, ROW(1) = (SELECT 1) AS one, (1, 'a') = (SELECT 1.0, 'a'::varchar) AS types;
SELECT (x, y) = (SELECT x, y FROM rsq_a b WHERE b.id = a.id) AS own, (id, x) > (SELECT 2, 20) AS later FROM rsq_a a ORDER BY id;
SELECT id FROM rsq_a WHERE (x, y) = (SELECT 20, 'b');
SELECT id FROM rsq_a a WHERE (id, x) = (SELECT max(id), max(x) FROM rsq_a b WHERE b.id <= a.id) ORDER BY id;
SELECT id FROM rsq_a WHERE (id, y) IN (SELECT 1, 'a' UNION SELECT 2, 'c') ORDER BY id;
SELECT (1, 2) = (SELECT 1, 2 UNION ALL SELECT 1, 3);
SELECT (1, 2) = (SELECT 1);
SELECT (1, 2) = (SELECT 1, 2, 3);
SELECT (1, 2) = (SELECT 1, 'x'::text);
SELECT (1, 2) + (SELECT 1, 2);
PREPARE rsq (int, text) AS SELECT id FROM rsq_a WHERE ($1, $2) = (SELECT x, y FROM rsq_a WHERE id = 2);
EXECUTE rsq (20, 'b');
EXECUTE rsq (20, 'c');
DEALLOCATE rsq;
CREATE VIEW rsq_v AS SELECT id FROM rsq_a a WHERE (x, y) = (SELECT x, y FROM rsq_a b WHERE b.id = a.id);
SELECT * FROM rsq_v ORDER BY id;
DROP VIEW rsq_v;
-- One run of the subquery for all of its columns.
CREATE SEQUENCE rsq_s;
UPDATE rsq_a SET (x, y) = (SELECT n, 'n' || n FROM nextval('rsq_s') n) WHERE id IN (1, 2);
SELECT id, y = 'n' || x AS same FROM rsq_a WHERE id < 3 ORDER BY id;
UPDATE rsq_a SET (x, y) = (SELECT b.id * 100, a FROM (VALUES (3, 'three')) b (id, a) WHERE b.id = rsq_a.id);
SELECT * FROM rsq_a ORDER BY id;
UPDATE rsq_a SET (x, y) = (SELECT 1);
UPDATE rsq_a SET (x, y) = (SELECT 1, 2, 3);
UPDATE rsq_a SET (x, y) = (SELECT 'a'::text, 2);
UPDATE rsq_a SET (x, y) = (SELECT 1, 'a' UNION ALL SELECT 2, 'b');
UPDATE rsq_a SET (x) = (SELECT 5), (y) = ROW('r') WHERE id = 4 RETURNING *;
DROP SEQUENCE rsq_s;
DROP TABLE rsq_a;
-- SIMILAR TO.
SELECT 'abc' SIMILAR TO 'abc', 'abc' SIMILAR TO 'a', 'abc' SIMILAR TO '%(b|d)%', 'abc' SIMILAR TO '(b|c)%', 'abc' NOT SIMILAR TO 'a_c';
SELECT 'a.c' SIMILAR TO 'a.c', 'abc' SIMILAR TO 'a.c', 'a%c' SIMILAR TO 'a\%c', 'abc' SIMILAR TO 'a\%c', 'aXc' SIMILAR TO 'a[A-Z]c', 'a]c' SIMILAR TO 'a[]]c';
SELECT 'a%c' SIMILAR TO 'a#%c' ESCAPE '#', 'abc' SIMILAR TO 'a#%c' ESCAPE '#', 'a\c' SIMILAR TO 'a\c' ESCAPE '', 'a\bc' SIMILAR TO 'a\%' ESCAPE '';
SELECT 'aaa' SIMILAR TO 'a{2,3}', 'aaaa' SIMILAR TO 'a{2,3}', 'ab' SIMILAR TO '(a|b)+', 'ab' SIMILAR TO 'a?b*', '12' SIMILAR TO '[[:digit:]]+', 'a^$' SIMILAR TO 'a^$';
SELECT NULL SIMILAR TO 'a' AS a, 'a' SIMILAR TO NULL AS b, 'a' SIMILAR TO 'a' ESCAPE NULL AS c, '' SIMILAR TO '' AS d, E'a\nb' SIMILAR TO 'a_b' AS e;
SELECT 'a' SIMILAR TO 'a' ESCAPE 'ab';
SELECT 'a' SIMILAR TO '(a';
SELECT 1 SIMILAR TO 'a';
CREATE TABLE rsq_b (a text CHECK (a SIMILAR TO '[ab]%'), b text DEFAULT 'x', CHECK (b NOT SIMILAR TO 'y#%' ESCAPE '#'));
INSERT INTO rsq_b VALUES ('abc', 'y');
INSERT INTO rsq_b VALUES ('cba');
INSERT INTO rsq_b VALUES ('a', 'y%');
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'rsq_b'::regclass ORDER BY 1;
CREATE VIEW rsq_v AS SELECT a SIMILAR TO 'a_' AS s, b NOT SIMILAR TO 'x' ESCAPE '!' AS n FROM rsq_b;
SELECT pg_get_viewdef('rsq_v');
SELECT * FROM rsq_v;
DROP VIEW rsq_v;
DROP TABLE rsq_b;
-- SELECT of nothing.
SELECT;
SELECT WHERE false;
SELECT FROM generate_series(1, 3);
SELECT UNION ALL SELECT;
SELECT EXISTS (SELECT), EXISTS (SELECT WHERE false), EXISTS (SELECT LIMIT 0);
SELECT count(*) FROM (SELECT FROM generate_series(1, 3)) s;
SELECT count(*) FROM (SELECT UNION ALL SELECT) s;
WITH n AS (SELECT) SELECT count(*) FROM n;
SELECT (SELECT);
SELECT 1 IN (SELECT);
-- Records whose fields only the value tells.
SELECT (CASE WHEN true THEN ROW(1, NULL) END) IS NULL AS a, (CASE WHEN true THEN ROW(1, NULL) END) IS NOT NULL AS b, coalesce(ROW(1, NULL), ROW(2, 3)) IS NOT NULL AS c,
  (CASE WHEN true THEN ROW(NULL, NULL) END) IS NULL AS d, coalesce(NULL, ROW(NULL::int, NULL::int)) IS NULL AS e, coalesce(ROW(1, 'a'), ROW(2, 3)) IS NOT NULL AS f,
  (CASE WHEN false THEN ROW(1, 2) END) IS NULL AS g, (CASE WHEN false THEN ROW(1, 2) END) IS NOT NULL AS h;
SELECT most_common_vals::text FROM pg_stats WHERE tablename = 'none';
