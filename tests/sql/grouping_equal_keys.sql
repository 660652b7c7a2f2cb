-- Grouping keys that hold a subquery, and keys that are equal outputs.
SELECT EXISTS (SELECT 1) e, count(*) FROM (VALUES (1)) v(x) GROUP BY ROLLUP ((EXISTS (SELECT 1))) ORDER BY 1;
SELECT (SELECT 1) e, count(*) FROM (VALUES (1)) v(x) GROUP BY ROLLUP ((SELECT 1)) ORDER BY 1;
SELECT (x IN (SELECT 2)) e, count(*) FROM (VALUES (1), (2), (2)) v(x) GROUP BY (x IN (SELECT 2)) ORDER BY 1;
SELECT (x IN (SELECT 2)) e, count(*) FROM (VALUES (1), (2), (2)) v(x) GROUP BY CUBE ((x IN (SELECT 2))) ORDER BY 1;
SELECT x = ANY (SELECT 2) e, count(*) FROM (VALUES (1), (2)) v(x) GROUP BY x = ANY (SELECT 2) HAVING count(*) > 0 ORDER BY x = ANY (SELECT 2);
SELECT ARRAY(SELECT generate_series(1, x)) e, count(*) FROM (VALUES (1), (2), (2)) v(x) GROUP BY ROLLUP (ARRAY(SELECT generate_series(1, x))) ORDER BY 1;
SELECT (SELECT max(w.y) FROM (VALUES (1), (2)) w(y) WHERE w.y <= v.x) m, count(*) FROM (VALUES (1), (2), (3)) v(x)
  GROUP BY GROUPING SETS (((SELECT max(w.y) FROM (VALUES (1), (2)) w(y) WHERE w.y <= v.x)), ()) ORDER BY 1;
SELECT * FROM (SELECT g AS a1, g AS a2 FROM generate_series(1, 3) g GROUP BY a1, ROLLUP (a2)) s ORDER BY 1, 2;
SELECT * FROM (SELECT g AS a1, g AS a2, count(*) FROM generate_series(1, 3) g GROUP BY ROLLUP (a1, a2)) s ORDER BY 1, 2, 3;
SELECT * FROM (SELECT g AS a1, g AS a2, g + 0 AS a3, count(*) FROM generate_series(1, 2) g GROUP BY GROUPING SETS ((a1), (a2), (a3))) s ORDER BY 1, 2, 3, 4;
SELECT * FROM (SELECT g + 1 AS a1, g + 1 AS a2, count(*) FROM generate_series(1, 2) g GROUP BY CUBE (1, 2)) s ORDER BY 1, 2, 3;
SELECT * FROM (SELECT g AS a1, g AS a2 FROM generate_series(1, 3) g GROUP BY g, ROLLUP (g)) s ORDER BY 1, 2;
SELECT * FROM (SELECT g AS a1, g AS a2 FROM generate_series(1, 3) g GROUP BY g, ROLLUP (a2)) s ORDER BY 1, 2;
SELECT * FROM (SELECT g AS a1, g AS a2, count(*) FROM generate_series(1, 3) g GROUP BY a1, a2) s ORDER BY 1, 2, 3;
SELECT * FROM (SELECT g % 2 AS a1, g % 2 AS a2, sum(g) FROM generate_series(1, 3) g GROUP BY a1, ROLLUP (a2) HAVING sum(g) > 1) s ORDER BY 1, 2, 3;
