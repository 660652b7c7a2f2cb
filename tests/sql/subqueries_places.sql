-- Subqueries that depend on a row, in every place that an expression may stand in.
CREATE TABLE pl_a (k int PRIMARY KEY, g int, v text);
CREATE TABLE pl_b (k int PRIMARY KEY, a int, n int);
INSERT INTO pl_a SELECT i, i % 7, 'a' || i FROM generate_series(1, 40) AS i;
INSERT INTO pl_b SELECT i, (i * 37) % 40 + 1, i % 11 FROM generate_series(1, 40) AS i;
CREATE INDEX pl_b_a ON pl_b (a);
CREATE SEQUENCE pl_s;
-- Conditions of joins: of every kind, hashed and looped.
SELECT count(*), sum(a.k) FROM pl_a a JOIN pl_b b ON a.k = b.a AND (SELECT c.g FROM pl_a c WHERE c.k = b.k) > a.g;
SELECT count(*), count(b.k) FROM pl_a a LEFT JOIN pl_b b ON a.k = b.a AND (SELECT c.g FROM pl_a c WHERE c.k = b.k) > a.g;
SELECT count(*), count(a.k) FROM pl_a a RIGHT JOIN pl_b b ON a.k = b.a AND (SELECT c.g FROM pl_a c WHERE c.k = b.k) > a.g;
SELECT count(*), count(a.k), count(b.k) FROM pl_a a FULL JOIN pl_b b ON a.k = b.a AND a.k > 9;
SELECT count(*) FROM pl_a a JOIN pl_b b ON a.k < 9 AND b.k < 9 AND (SELECT c.g FROM pl_a c WHERE c.k = a.k * b.k) = 3;
SELECT a.k, b.k FROM pl_a a LEFT JOIN pl_b b ON b.k < 5 AND (SELECT c.k FROM pl_a c WHERE c.k = a.k + b.k) = 7 WHERE a.k < 8 ORDER BY a.k, b.k;
SELECT count(*) FROM pl_a a JOIN pl_b b ON b.n < 3 AND (SELECT c.n FROM pl_b c WHERE c.k = a.k) = b.k WHERE a.k < 15;
SELECT count(*) FROM pl_a a JOIN pl_b b ON a.k < 9 AND a.k = (SELECT c.n FROM pl_b c WHERE c.k = b.k) + 1 WHERE b.k < 15;
SELECT count(*) FROM pl_a a WHERE EXISTS (SELECT 1 FROM pl_b b WHERE b.a = a.k AND (SELECT c.g FROM pl_a c WHERE c.k = b.k) = a.g);
SELECT count(*) FROM pl_a a, LATERAL (SELECT b.n FROM pl_b b WHERE b.k = (SELECT c.a FROM pl_b c WHERE c.k = a.k)) AS x WHERE x.n > 3;
-- Arguments of aggregates, their order, filters, and grouping.
SELECT sum((SELECT b.n FROM pl_b b WHERE b.k = a.k)), max((SELECT b.a FROM pl_b b WHERE b.k = a.k)) FROM pl_a a;
SELECT count(DISTINCT (SELECT b.n FROM pl_b b WHERE b.k = a.k)), count(*) FROM pl_a a;
SELECT string_agg(a.v, ',' ORDER BY (SELECT b.a FROM pl_b b WHERE b.k = a.k), a.k) FROM pl_a a WHERE a.k <= 12;
SELECT array_agg(DISTINCT (SELECT b.n FROM pl_b b WHERE b.k = a.k)) FROM pl_a a;
SELECT count(*) FILTER (WHERE (SELECT b.n FROM pl_b b WHERE b.k = a.k) > 5), sum(a.k), sum((SELECT b.n FROM pl_b b WHERE b.k = a.k)) FROM pl_a a;
SELECT (SELECT b.n FROM pl_b b WHERE b.k = a.k) AS n, count(*), sum(a.k) FROM pl_a a GROUP BY 1 ORDER BY 1;
SELECT a.g, count(*), sum((SELECT b.n FROM pl_b b WHERE b.k = a.k)) FROM pl_a a GROUP BY a.g HAVING sum((SELECT b.n FROM pl_b b WHERE b.k = a.k)) > 20 ORDER BY a.g;
-- Sort keys, DISTINCT ON, LIMIT, OFFSET.
SELECT a.k FROM pl_a a ORDER BY (SELECT b.a FROM pl_b b WHERE b.k = a.k) DESC, a.k LIMIT 10;
SELECT a.k FROM pl_a a WHERE a.k < 30 ORDER BY (SELECT b.n FROM pl_b b WHERE b.k = a.k), (SELECT b.a FROM pl_b b WHERE b.k = a.k) DESC;
SELECT count(*) FROM (SELECT DISTINCT ON ((SELECT b.n FROM pl_b b WHERE b.k = a.k)) a.k, a.g FROM pl_a a) AS t;
SELECT a.k, (SELECT b.k FROM pl_b b ORDER BY b.k LIMIT 1 OFFSET (SELECT c.n FROM pl_b c WHERE c.k = a.k)) FROM pl_a a WHERE a.k < 15 ORDER BY a.k;
SELECT a.k, ARRAY(SELECT b.k FROM pl_b b ORDER BY b.k DESC LIMIT (SELECT c.n FROM pl_b c WHERE c.k = a.k)) FROM pl_a a WHERE a.k < 8 ORDER BY a.k;
-- VALUES, functions in FROM and in the select list.
SELECT a.k, (SELECT sum(x) FROM (VALUES ((SELECT b.n FROM pl_b b WHERE b.k = a.k)), ((SELECT b.a FROM pl_b b WHERE b.k = a.k))) AS t (x)) FROM pl_a a WHERE a.k < 10 ORDER BY a.k;
SELECT count(*), sum(s) FROM pl_a a, generate_series(1, (SELECT b.n FROM pl_b b WHERE b.k = a.k)) AS s;
SELECT a.k, generate_series(1, (SELECT b.n FROM pl_b b WHERE b.k = a.k)) FROM pl_a a WHERE a.k < 5 ORDER BY 1, 2;
-- Beside volatile functions, which are called once for a row.
SELECT count(*) FROM pl_a a WHERE nextval('pl_s') > 0 AND (SELECT b.n FROM pl_b b WHERE b.k = a.k) >= 0 AND nextval('pl_s') > 0;
SELECT nextval('pl_s');
SELECT count(*), max(x), count(DISTINCT x) FROM (SELECT nextval('pl_s') AS x, (SELECT b.n FROM pl_b b WHERE b.k = a.k) AS n, nextval('pl_s') AS y FROM pl_a a) AS t;
SELECT nextval('pl_s');
SELECT count(nextval('pl_s')), sum((SELECT b.n FROM pl_b b WHERE b.k = a.k)), count(nextval('pl_s')) FROM pl_a a;
SELECT nextval('pl_s');
SELECT count(*) FROM pl_a a WHERE (nextval('pl_s') % 2)::int IN (SELECT b.n % 2 FROM pl_b b WHERE b.a = a.k) OR nextval('pl_s') > 0;
SELECT nextval('pl_s') > 200;
-- What is written.
UPDATE pl_a SET g = nextval('pl_s') * 0 + (SELECT b.n FROM pl_b b WHERE b.k = pl_a.k) WHERE (SELECT b.n FROM pl_b b WHERE b.k = pl_a.k) > 8 RETURNING k, g - (SELECT b.n FROM pl_b b WHERE b.k = pl_a.k) AS zero, (SELECT count(*) FROM pl_b b WHERE b.a = pl_a.k);
UPDATE pl_a SET v = v || (SELECT b.n FROM pl_b b WHERE b.k = pl_a.k) WHERE k <= 30;
SELECT count(*), min(v), max(v) FROM pl_a;
INSERT INTO pl_a SELECT k + 1000, g, v FROM pl_a WHERE k < 20 ORDER BY k RETURNING k, (SELECT b.n FROM pl_b b WHERE b.k = pl_a.k - 1000);
INSERT INTO pl_a VALUES (1, (SELECT max(n) FROM pl_b), 'new'), (5000, (SELECT min(a) FROM pl_b), 'new') ON CONFLICT (k) DO UPDATE SET g = (SELECT b.n FROM pl_b b WHERE b.k = pl_a.k), v = excluded.v || (SELECT b.a FROM pl_b b WHERE b.k = pl_a.k) WHERE (SELECT b.n FROM pl_b b WHERE b.k = pl_a.k) < 9 RETURNING k, g, v, (SELECT count(*) FROM pl_b b WHERE b.n = pl_a.g);
DELETE FROM pl_a WHERE (SELECT b.n FROM pl_b b WHERE b.k = pl_a.k) = 4 AND k > 30 RETURNING k, (SELECT b.a FROM pl_b b WHERE b.k = pl_a.k);
SELECT count(*), sum(g), min(v), max(v) FROM pl_a;
SELECT k FROM pl_a a WHERE (SELECT b.n FROM pl_b b WHERE b.k = a.k) = 1 AND k < 30 ORDER BY k FOR UPDATE;
SELECT count(*) FROM pg_class c WHERE (SELECT count(*) FROM pl_b b WHERE b.k <= length(c.relname)) = 4 AND c.relname LIKE 'pl\_%';
DROP TABLE pl_a, pl_b;
DROP SEQUENCE pl_s;

-- What is volatile is asked once for each outer row.
CREATE SEQUENCE asked;
CREATE TABLE asked_of (id int PRIMARY KEY);
INSERT INTO asked_of SELECT generate_series(1, 5);
SELECT count(*) FROM generate_series(1, 10) AS g (k) WHERE nextval('asked') IN (SELECT id FROM asked_of);
SELECT count(*) FROM generate_series(1, 10) AS g (k) WHERE k + 0 * nextval('asked') IN (SELECT id FROM asked_of);
SELECT last_value FROM asked;
DROP TABLE asked_of;
DROP SEQUENCE asked;
