-- Types that have an order and no hash, and the other way round.
WITH RECURSIVE t(n) AS (VALUES (1::money) UNION SELECT n + 1::money FROM t WHERE n < 3::money) SELECT sum(n) FROM t;
WITH RECURSIVE t(n) AS (VALUES (1::money) UNION ALL SELECT n + 1::money FROM t WHERE n < 3::money) SELECT sum(n) FROM t;
WITH RECURSIVE t(n) AS (VALUES ('01'::varbit) UNION SELECT n || B'1' FROM t WHERE length(n) < 3) SELECT n FROM t;
CREATE TABLE keys(id int, v int, unhashed bit(4), unsorted xid);
INSERT INTO keys VALUES (1, 1, B'0000', '1'), (2, 2, B'0001', '1'), (3, 4, B'0000', '2');
SELECT count(*) FROM keys GROUP BY ROLLUP (unhashed, unsorted);
SELECT array_agg(v ORDER BY v) FROM keys GROUP BY GROUPING SETS ((id, unsorted), (id));
SELECT array_agg(v ORDER BY v) FROM keys GROUP BY unsorted;
SELECT count(*) FROM keys GROUP BY unhashed, unsorted;
SELECT unhashed, count(*) FROM keys GROUP BY GROUPING SETS ((unhashed), ()) ORDER BY 1;
SELECT unsorted, count(*), sum(v) FROM keys GROUP BY GROUPING SETS ((unsorted), ()) ORDER BY 2, 3;
SELECT count(*) FROM (SELECT unsorted FROM keys GROUP BY unsorted) s;
DROP TABLE keys;
-- The last of a series may be the largest number there is.
SELECT (i / (10::numeric ^ 131071))::numeric(1,0)
  FROM generate_series(6 * (10::numeric ^ 131071), 9 * (10::numeric ^ 131071), 10::numeric ^ 131071) AS a(i);
-- No row of a materialized view is locked.
CREATE MATERIALIZED VIEW keys_mv AS SELECT 1 AS a;
SELECT * FROM keys_mv FOR SHARE;
SELECT * FROM keys_mv;
DROP MATERIALIZED VIEW keys_mv;
