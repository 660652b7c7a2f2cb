-- Correlated aggregates in WHERE: as subqueries or as joins with groups they say the same.
CREATE TABLE o (id int PRIMARY KEY, k int, k8 bigint, x numeric, t text);
CREATE TABLE i (id int PRIMARY KEY, k int, y int, z numeric, f float8, t text);
INSERT INTO o SELECT g, CASE WHEN g % 7 <> 0 THEN g % 20 END, g % 20, g % 13 - 3, CASE g % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' END FROM generate_series(1, 200) g;
INSERT INTO i SELECT g, CASE WHEN g % 11 <> 0 THEN g % 17 END, CASE WHEN g % 17 <> 3 THEN g % 29 END, g % 5 + 0.5, g / 4.0, chr(97 + g % 4) FROM generate_series(1, 500) g;
ANALYZE o;
ANALYZE i;
-- What no group is there for is NULL: never true, whatever compares.
SELECT count(*), sum(id) FROM o WHERE x < (SELECT avg(y) FROM i WHERE i.k = o.k);
SELECT count(*), sum(id) FROM o WHERE x <> (SELECT min(y) FROM i WHERE i.k = o.k);
SELECT count(*), sum(id) FROM o WHERE (SELECT 0.1 * sum(z) FROM i WHERE o.k = i.k AND i.id > 20) > x;
SELECT count(*), sum(id) FROM o WHERE x = (SELECT max(z) - 1.5 FROM i WHERE i.k = o.k AND y > 3);
-- A group of NULLs only is there, and gives NULL.
SELECT id FROM o WHERE k = 3 AND x < (SELECT max(y) FROM i WHERE i.k = o.k) ORDER BY id;
-- Several columns, an expression, several subqueries.
SELECT count(*), sum(id) FROM o WHERE x < (SELECT sum(y) FROM i WHERE i.k = o.k AND i.t = o.t);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT sum(y) FROM i WHERE i.k + 1 = o.k - 1);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT avg(y) FROM i WHERE i.k = o.k) AND x >= (SELECT min(z) FROM i WHERE i.k = o.k) AND id < (SELECT sum(id) FROM i WHERE i.t = o.t);
-- count of nothing is 0, and what makes a value of NULL is no NULL: these stay as they are.
SELECT count(*), sum(id) FROM o WHERE 0 = (SELECT count(*) FROM i WHERE i.k = o.k);
SELECT count(*), sum(id) FROM o WHERE x > (SELECT coalesce(max(y), -100) FROM i WHERE i.k = o.k);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT max(y) + count(*) FROM i WHERE i.k = o.k);
SELECT count(*), sum(id) FROM o WHERE (x < (SELECT max(y) FROM i WHERE i.k = o.k)) IS NOT TRUE;
SELECT count(*), sum(id) FROM o WHERE NOT (x < (SELECT max(y) FROM i WHERE i.k = o.k));
SELECT count(*), sum(id) FROM o WHERE x < 0 OR x < (SELECT min(y) FROM i WHERE i.k = o.k);
-- So do other conditions than equality, other types, groups, limits, and what looks further out.
SELECT count(*), sum(id) FROM o WHERE x < (SELECT avg(y) FROM i WHERE i.k < o.k);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT avg(y) FROM i WHERE i.k = o.k8);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT sum(f) FROM i WHERE i.k = o.k);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT sum(y) FROM i WHERE i.k = o.k LIMIT 1);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT sum(y) FROM i WHERE i.k = o.k OFFSET 1);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT sum(y) FROM i WHERE i.k = o.k GROUP BY i.k);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT sum(y) FROM i WHERE i.k = o.k HAVING count(*) > 28);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT sum(y) FROM i WHERE i.k = o.k AND o.x > i.z);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT sum(y + o.id) FROM i WHERE i.k = o.k);
-- A division that fails for a group that nobody asks about fails nowhere.
SELECT count(*), sum(id) FROM o WHERE k > 3 AND x < (SELECT 100 / (max(k) - 1) FROM i WHERE i.k = o.k);
SELECT count(*), sum(id) FROM o WHERE x < (SELECT 100 / (max(k) - 1) FROM i WHERE i.k = o.k);
-- Within others: EXISTS, IN, views, WITH, outer joins, changes, locks.
SELECT count(*), sum(id) FROM o WHERE k IN (SELECT k FROM i a WHERE y > (SELECT avg(y) FROM i b WHERE b.t = a.t));
SELECT count(*), sum(id) FROM o WHERE NOT EXISTS (SELECT 1 FROM i a WHERE a.k = o.k AND y > (SELECT 1.9 * avg(y) FROM i b WHERE b.t = a.t));
CREATE VIEW v AS SELECT * FROM o WHERE x < (SELECT avg(y) FROM i WHERE i.k = o.k);
SELECT count(*), sum(v.id) FROM v LEFT JOIN i ON i.id = v.id AND i.y < (SELECT max(z) * 3 FROM i j WHERE j.k = i.k);
WITH w AS (SELECT k, y FROM i) SELECT count(*), sum(id) FROM o WHERE x < (SELECT avg(y) FROM w WHERE w.k = o.k);
SELECT a.k, count(*) FROM o a JOIN o b ON a.id = b.id + 1 WHERE a.x > (SELECT min(z) FROM i WHERE i.k = b.k) AND b.x < (SELECT avg(y) FROM i WHERE i.k = a.k) GROUP BY a.k ORDER BY a.k LIMIT 5;
SELECT id FROM o WHERE x < (SELECT avg(y) FROM i WHERE i.k = o.k) ORDER BY id DESC LIMIT 3;
SELECT id FROM o WHERE x < (SELECT avg(y) FROM i WHERE i.k = o.k) ORDER BY id DESC LIMIT 3 FOR UPDATE;
UPDATE o SET x = x + 100 WHERE x > (SELECT avg(y) - 4 FROM i WHERE i.k = o.k);
SELECT count(*), sum(x) FROM o;
DELETE FROM o WHERE x < (SELECT avg(y) FROM i WHERE i.k = o.k);
SELECT count(*), sum(x) FROM o;
-- Outer values come again: the subquery says the same each time, also of NULLs and of equal numbers.
SELECT sum((SELECT count(*) FROM i WHERE i.k IS NOT DISTINCT FROM o.k)), sum((SELECT sum(y) FROM i WHERE i.z = o.x)), count(DISTINCT (SELECT i.id + o.id FROM i WHERE i.id = 3)) FROM o;
SELECT count(*) FROM (VALUES (1.0), (1.00), (NULL), (1.000)) q(n) WHERE (SELECT q.n::text) = '1.00';
SELECT count(DISTINCT (SELECT random() FROM i WHERE i.id = 1 + o.k * 0)) > 1 FROM o WHERE k = 5 OR k = 6;
UPDATE o SET x = (SELECT sum(p.x) FROM o p WHERE p.k = o.k);
SELECT count(*), sum(x) FROM o;
DROP VIEW v;
DROP TABLE o, i;
-- Groups within what joins: the keys look at rows of the query around it, or at its own.
CREATE TABLE ro (id int PRIMARY KEY, k int, x int);
CREATE TABLE ri (id int PRIMARY KEY, k int, y int, z int);
INSERT INTO ro SELECT g, g % 40, g % 9 FROM generate_series(1, 120) g;
INSERT INTO ri SELECT g, g % 60, g % 31, g % 4 FROM generate_series(1, 600) g;
ANALYZE ro;
ANALYZE ri;
SELECT count(*), sum(id) FROM ro WHERE EXISTS (SELECT 1 FROM ri WHERE ri.k = ro.k AND ri.y > (SELECT avg(y) FROM ri r WHERE r.k = ro.k));
SELECT count(*), sum(id) FROM ro WHERE NOT EXISTS (SELECT 1 FROM ri WHERE ri.k = ro.k AND ri.y > (SELECT 1.9 * avg(y) FROM ri r WHERE r.k = ro.k));
SELECT count(*), sum(id) FROM ro WHERE id IN (SELECT y FROM ri WHERE y > (SELECT avg(y) FROM ri r WHERE r.k = ro.k));
SELECT count(*), sum(id) FROM ro WHERE EXISTS (SELECT 1 FROM ri WHERE ri.k = ro.k AND ri.y + ro.x > (SELECT avg(y) FROM ri r WHERE r.k = ri.k));
SELECT count(*), sum(id) FROM ro WHERE EXISTS (SELECT 1 FROM ri WHERE ri.k = ro.k AND ro.x > (SELECT avg(y) FROM ri r WHERE r.k = ri.k));
SELECT count(*), sum(id) FROM ro WHERE EXISTS (SELECT 1 FROM ri WHERE ri.k = ro.k AND ri.y > (SELECT avg(y) FROM ri r WHERE r.k = ri.k AND r.z = ro.x));
SELECT count(*), sum(id) FROM ro WHERE EXISTS (SELECT 1 FROM ri WHERE ri.k = ro.k AND ri.y > (SELECT avg(y) FROM ri r WHERE r.k = ri.k));
SELECT count(*), sum(id) FROM ro WHERE id IN (SELECT y FROM ri WHERE y > (SELECT avg(y) FROM ri r WHERE r.k = ri.k) AND ri.k = ro.k);
SELECT count(*), sum(id) FROM ro, LATERAL (SELECT y FROM ri WHERE ri.k = ro.k AND y > (SELECT avg(y) FROM ri r WHERE r.k = ro.k)) l;
SELECT count(*), sum(ro.id) FROM ro LEFT JOIN LATERAL (SELECT y FROM ri WHERE ri.k = ro.k AND y > (SELECT avg(y) FROM ri r WHERE r.k = ro.k)) l ON true;
SELECT sum((SELECT count(*) FROM ri WHERE ri.k = ro.k AND y > (SELECT avg(y) FROM ri r WHERE r.k = ro.k))) FROM ro;
-- Rows and groups that nobody asks about fail nowhere: a division by zero, a text that is no number.
CREATE TABLE oo (k int, x int);
CREATE TABLE tt (k int, y int, z int, v text);
INSERT INTO oo SELECT g, g % 3 FROM generate_series(1, 100) g;
INSERT INTO tt SELECT g, g, g % 5 + 1, (g % 5)::text FROM generate_series(1, 100) g;
INSERT INTO tt VALUES (101, 0, 0, 'none');
ANALYZE oo;
ANALYZE tt;
CREATE INDEX ON tt (k);
SELECT count(*), sum(k) FROM oo WHERE 5 < (SELECT 10 / min(y) FROM tt t WHERE t.k = oo.k);
SELECT count(*), sum(k) FROM oo WHERE x < (SELECT 10 / min(y) FROM tt t WHERE t.k = oo.k);
SELECT count(*), sum(k) FROM oo WHERE x < (SELECT avg(y) FROM tt t WHERE t.k = oo.k AND 10 / t.z > 2);
SELECT count(*), sum(k) FROM oo WHERE x < (SELECT avg(y) FROM tt t WHERE t.k = oo.k AND t.v::int > 2);
SELECT count(*), sum(k) FROM oo WHERE x < (SELECT avg(y) FROM tt t WHERE t.k = oo.k AND 10 / t.z = oo.x);
SELECT count(*), sum(oo.k) FROM oo WHERE x < (SELECT avg(t.y) FROM tt t JOIN tt u ON t.k = u.k AND 10 / u.z > 2 WHERE t.k = oo.k);
SELECT count(*), sum(k) FROM oo WHERE 10 / (x + 1) < (SELECT avg(y) FROM tt t WHERE t.k = oo.k AND z IN (1, 2) AND v <> 'none');
DROP TABLE ro, ri, oo, tt;
