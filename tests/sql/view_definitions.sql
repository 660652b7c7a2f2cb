-- How a view's query is shown: pg_get_viewdef, pg_views, \d+.
\set VERBOSITY verbose
CREATE TABLE vd_t (id int PRIMARY KEY, a int, b text, c varchar(5), d numeric(8,2), e date, f timestamptz, "Odd name" bool);
CREATE TABLE vd_u (id int, t int, c text);
CREATE VIEW vd_01 AS SELECT * FROM vd_t;
CREATE VIEW vd_02 (x, y) AS SELECT id, a + 1 FROM vd_t WHERE a > 5 AND b = 'x' OR c IS NULL;
CREATE VIEW vd_03 AS SELECT t.id, u.c FROM vd_t t JOIN vd_u AS u ON u.t = t.id WHERE NOT t."Odd name";
CREATE VIEW vd_04 AS SELECT vd_t.id, vd_u.c AS uc FROM vd_t LEFT JOIN vd_u ON vd_u.t = vd_t.id AND vd_u.c = 'q' ORDER BY 1 DESC, uc NULLS FIRST;
CREATE VIEW vd_05 AS SELECT vd_t.id, t FROM vd_t, vd_u;
CREATE VIEW vd_06 AS SELECT b, count(*), sum(a) AS total, count(DISTINCT c) AS different FROM vd_t GROUP BY b HAVING count(*) > 1 ORDER BY count(*) DESC LIMIT 3 OFFSET 1;
CREATE VIEW vd_07 AS SELECT DISTINCT a, CASE WHEN a > 1 THEN 'many' WHEN a = 1 THEN 'one' END AS words FROM vd_t;
CREATE VIEW vd_08 AS SELECT id FROM vd_t UNION ALL SELECT t FROM vd_u ORDER BY id;
CREATE VIEW vd_09 AS (SELECT id FROM vd_t UNION SELECT t FROM vd_u) EXCEPT SELECT 1;
CREATE VIEW vd_10 AS WITH w AS (SELECT id, a FROM vd_t WHERE a BETWEEN 1 AND 10) SELECT w.id, w.a, x.c FROM w JOIN vd_u x ON x.t = w.id;
CREATE RECURSIVE VIEW vd_11 (n) AS VALUES (1) UNION ALL SELECT n + 1 FROM vd_11 WHERE n < 5;
CREATE VIEW vd_12 AS VALUES (1, 'one'), (2, 'two');
CREATE VIEW vd_13 (n, w) AS VALUES (1, 'one'), (2, 'two');
CREATE VIEW vd_14 AS SELECT id, (SELECT max(u.id) FROM vd_u u WHERE u.t = vd_t.id) AS m FROM vd_t WHERE EXISTS (SELECT 1 FROM vd_u WHERE t = vd_t.id) AND id IN (SELECT t FROM vd_u) AND id NOT IN (SELECT id FROM vd_t WHERE a = 3);
CREATE VIEW vd_15 AS SELECT s.n, s.b FROM (SELECT count(*) AS n, b FROM vd_t GROUP BY b) s WHERE s.n > 1;
CREATE VIEW vd_16 AS SELECT 1 AS one, 'text' AS word, NULL AS nothing, true AS yes, 1.5 AS dec, -3 AS neg, '2020-1-2'::date AS day, interval '90 minutes' AS wait, 'abc'::varchar(2) AS short;
CREATE VIEW vd_17 AS SELECT upper(b) AS u, coalesce(c, 'none') AS c, length(c) AS l, a::text AS t, d * 2 AS d2, a / 2.0 AS q, e + 1 AS tomorrow, extract(year FROM e) AS y, b || 'x' AS cat, c LIKE 'a%' AS lk, a IN (1, 2, 3) AS i3 FROM vd_t;
CREATE VIEW vd_18 AS SELECT * FROM vd_t NATURAL JOIN (SELECT id, t FROM vd_u) s;
CREATE VIEW vd_19 AS SELECT id, vd_t.a, x.t FROM vd_t FULL JOIN vd_u x USING (id);
CREATE VIEW vd_20 AS SELECT x AS v_x, y FROM vd_02 AS z WHERE x > 3;
CREATE VIEW vd_21 AS SELECT p, q FROM vd_u AS z (p, q);
CREATE VIEW vd_22 AS SELECT g FROM generate_series(1, 3) g;
CREATE VIEW vd_23 AS SELECT a.id FROM vd_t a CROSS JOIN vd_t b LEFT JOIN (vd_u c JOIN vd_u d ON c.id = d.id) ON c.t = a.id;
CREATE VIEW vd_24 AS SELECT id FROM vd_t WHERE (a > 1 AND a < 5 OR a = 9) AND (b IS NOT NULL OR c = 'x') AND a + 2 * 3 > 7 AND (a - (id - 1)) = 2 AND NOT (a = 1 AND b = 'y') AND a IS DISTINCT FROM 3;
CREATE VIEW vd_25 AS SELECT DISTINCT ON (a) a, id FROM vd_t ORDER BY a, id DESC;
CREATE VIEW vd_26 AS SELECT a % 3 AS k, count(*) FILTER (WHERE id > 2) AS n, array_agg(id ORDER BY id DESC) AS ids FROM vd_t GROUP BY a % 3;
CREATE VIEW vd_27 AS SELECT now() AS n, current_date AS cd, f AT TIME ZONE 'UTC' AS u FROM vd_t WHERE f > now() - interval '1 day';
CREATE VIEW vd_30 AS SELECT a, sum(id) FROM vd_t GROUP BY GROUPING SETS ((a), (), (a, b));
CREATE VIEW vd_31 AS SELECT a, b, sum(id), grouping(a, b) FROM vd_t GROUP BY ROLLUP (a, b), CUBE (id, (b, a));
CREATE VIEW vd_32 AS SELECT a, b FROM vd_t GROUP BY DISTINCT ROLLUP (a, b), (a, b), ROLLUP (a + 1);
CREATE VIEW vd_33 AS SELECT a, b FROM vd_t GROUP BY (a, b);
CREATE VIEW vd_34 AS SELECT a, sum(id) OVER w AS s, rank() OVER (w ROWS UNBOUNDED PRECEDING) FROM vd_t WINDOW w AS (PARTITION BY b ORDER BY a DESC), v AS (ORDER BY lower(b), id NULLS FIRST);
CREATE VIEW vd_35 AS SELECT id FROM vd_t WHERE a BETWEEN SYMMETRIC id AND 5 AND id NOT BETWEEN SYMMETRIC 7 AND a;
CREATE VIEW vd_36 AS SELECT id FROM vd_t WHERE (a, id) < (1, 2) AND (a, id) = (id, a) AND ROW(a, b) IS DISTINCT FROM ROW(1, 'x') AND (a, b) <> (2, 'y');
CREATE VIEW vd_37 AS SELECT (a, id) IN ((1, 2), (3, 4)) AS x, (a, id) NOT IN ((1, 2), (3, 4)) AS y FROM vd_t;
CREATE VIEW vd_38 AS SELECT id FROM vd_t WHERE b LIKE 'x!%' ESCAPE '!' AND b NOT ILIKE 'y' ESCAPE '#';
CREATE VIEW vd_39 AS SELECT id, a FROM vd_t FOR UPDATE;
CREATE VIEW vd_40 AS SELECT x.id FROM vd_t x JOIN vd_u u ON u.t = x.id FOR NO KEY UPDATE OF x SKIP LOCKED FOR SHARE OF u NOWAIT;
CREATE VIEW vd_41 AS SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a DESC), mode() WITHIN GROUP (ORDER BY b), rank(5) WITHIN GROUP (ORDER BY id) FROM vd_t;
CREATE VIEW vd_42 AS SELECT string_agg(b, ',' ORDER BY a DESC) AS s FROM vd_t;
ALTER TABLE vd_t RENAME COLUMN a TO "Alpha";
ALTER TABLE vd_u RENAME TO vd_uu;
\pset format unaligned
SELECT relname, pg_get_viewdef(oid, true) AS pretty FROM pg_class WHERE relname LIKE 'vd\_%' AND relkind = 'v' ORDER BY 1 \gx
SELECT relname, pg_get_viewdef(oid) AS plain FROM pg_class WHERE relname LIKE 'vd\_%' AND relkind = 'v' ORDER BY 1 \gx
\pset format aligned
SELECT viewname, definition = pg_get_viewdef(viewname::regclass) AS same FROM pg_views WHERE viewname IN ('vd_01', 'vd_10');
SELECT pg_get_viewdef('vd_02'), pg_get_viewdef('vd_t'::regclass);
\d+ vd_02
\d vd_03
\dv vd_0*
DROP TABLE vd_t CASCADE;
DROP TABLE vd_uu CASCADE;
DROP VIEW vd_11, vd_12, vd_13, vd_16, vd_22;
