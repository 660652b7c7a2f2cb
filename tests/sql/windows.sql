-- Window functions: OVER and WINDOW, frames, every function, and what is refused.
\set VERBOSITY verbose
CREATE TABLE win_emp (dep text, no int PRIMARY KEY, salary int, hired date, bonus numeric(8,2), rate float8);
INSERT INTO win_emp VALUES
  ('develop', 7, 4200, '2008-01-01', 10.50, 1.5), ('develop', 8, 6000, '2006-10-01', 0.25, 2.5),
  ('develop', 9, 4500, '2008-01-01', NULL, -1), ('develop', 10, 5200, '2007-08-01', 3.00, 0),
  ('develop', 11, 5200, '2007-08-15', 3.125, 1e10), ('personnel', 2, 3900, '2006-12-23', 7, NULL),
  ('personnel', 5, 3500, '2007-12-10', 1.1, 0.1), ('sales', 1, 5000, '2006-10-01', 2.2, 0.2),
  ('sales', 3, 4800, '2007-08-01', 3.3, 0.3), ('sales', 4, 4800, '2007-08-08', NULL, NULL),
  (NULL, 12, NULL, NULL, 4.4, 0.4), (NULL, 13, 100, '2020-02-29', 5.5, 0.5);
-- The functions of windows.
SELECT no, row_number() OVER (ORDER BY no) FROM win_emp ORDER BY no;
SELECT dep, no, row_number() OVER (PARTITION BY dep ORDER BY salary DESC, no) FROM win_emp ORDER BY dep, no;
SELECT dep, salary, rank() OVER (PARTITION BY dep ORDER BY salary), dense_rank() OVER (PARTITION BY dep ORDER BY salary) FROM win_emp ORDER BY dep, salary, no;
SELECT salary, percent_rank() OVER (ORDER BY salary), cume_dist() OVER (ORDER BY salary) FROM win_emp ORDER BY salary, no;
SELECT no, percent_rank() OVER (PARTITION BY no), cume_dist() OVER (PARTITION BY no) FROM win_emp WHERE no < 3 ORDER BY no;
SELECT no, ntile(1) OVER (ORDER BY no), ntile(3) OVER (ORDER BY no), ntile(5) OVER (ORDER BY no), ntile(100) OVER (ORDER BY no), ntile(NULL) OVER (ORDER BY no) FROM win_emp ORDER BY no;
SELECT no, ntile(no) OVER (ORDER BY no) FROM win_emp ORDER BY no;
SELECT no, lag(no) OVER (ORDER BY no), lead(no) OVER (ORDER BY no) FROM win_emp ORDER BY no;
SELECT no, lag(salary, 2) OVER w, lead(salary, 2) OVER w, lag(salary, 0) OVER w, lag(salary, -1) OVER w, lead(salary, -1) OVER w FROM win_emp WINDOW w AS (ORDER BY no) ORDER BY no;
SELECT no, lag(salary, 1, 0) OVER w, lead(salary, 1, -1) OVER w, lag(salary, no, no) OVER w, lag(salary, NULL, 5) OVER w FROM win_emp WINDOW w AS (ORDER BY no) ORDER BY no;
SELECT no, lag(dep, 1, 'none') OVER w, lag(salary, 1, 0.5) OVER w, pg_typeof(lag(salary, 1, 0.5) OVER w) FROM win_emp WINDOW w AS (ORDER BY no) ORDER BY no;
SELECT no, first_value(no) OVER w, last_value(no) OVER w, nth_value(no, 2) OVER w, nth_value(no, 100) OVER w FROM win_emp WINDOW w AS (PARTITION BY dep ORDER BY no) ORDER BY no;
SELECT no, nth_value(no, CASE WHEN no % 2 = 0 THEN 2 END) OVER (ORDER BY no) FROM win_emp ORDER BY no;
SELECT no, first_value(no) OVER (PARTITION BY dep), last_value(no) OVER (PARTITION BY no > 5 ORDER BY no) FROM win_emp WHERE no IN (2, 7) ORDER BY no;
-- Aggregates.
SELECT dep, no, salary, sum(salary) OVER (PARTITION BY dep), count(*) OVER (PARTITION BY dep), avg(salary) OVER (PARTITION BY dep) FROM win_emp ORDER BY dep, no;
SELECT no, sum(salary) OVER (ORDER BY no), count(salary) OVER (ORDER BY no), min(salary) OVER (ORDER BY no), max(salary) OVER (ORDER BY no) FROM win_emp ORDER BY no;
SELECT salary, sum(salary) OVER (ORDER BY salary), count(*) OVER (ORDER BY salary) FROM win_emp ORDER BY salary, no;
SELECT no, sum(salary) OVER (), count(*) OVER () FROM win_emp ORDER BY no;
SELECT no, count(*) FILTER (WHERE salary > 4500) OVER w, sum(bonus) FILTER (WHERE dep = 'sales') OVER w FROM win_emp WINDOW w AS (ORDER BY no) ORDER BY no;
SELECT no, sum(100 / (no - 5)) FILTER (WHERE no <> 5) OVER (ORDER BY no) FROM win_emp ORDER BY no;
SELECT no, string_agg(dep, ',') OVER (ORDER BY no), array_agg(no) OVER (PARTITION BY dep ORDER BY no) FROM win_emp ORDER BY no;
SELECT no, bool_and(salary > 4000) OVER w, bool_or(salary > 5000) OVER w, every(no > 2) OVER w FROM win_emp WINDOW w AS (ORDER BY no ROWS 2 PRECEDING) ORDER BY no;
SELECT no, stddev(salary) OVER w, variance(salary) OVER w, var_pop(bonus) OVER w, stddev_pop(bonus) OVER w FROM win_emp WINDOW w AS (ORDER BY no ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) ORDER BY no;
SELECT no, sum(rate) OVER w, avg(rate) OVER w FROM win_emp WINDOW w AS (ORDER BY no ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) ORDER BY no;
SELECT no, sum(bonus) OVER w, avg(bonus) OVER w, count(bonus) OVER w FROM win_emp WINDOW w AS (ORDER BY no ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) ORDER BY no;
SELECT i, sum(v) OVER w, avg(v) OVER w FROM (VALUES (1, 1.5), (2, 2.25), (3, 3), (4, NULL), (5, 4.1234), (6, 7)) t(i, v) WINDOW w AS (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) ORDER BY i;
SELECT i, sum(v) OVER w, avg(v) OVER w FROM (VALUES (1, 'NaN'::numeric), (2, 2.25), (3, 3), (4, 'Infinity'), (5, 4.1234), (6, 7)) t(i, v) WINDOW w AS (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) ORDER BY i;
SELECT i, sum(v::float8) OVER w FROM (VALUES (1, 1), (2, 1e30), (3, 2), (4, 3)) t(i, v) WINDOW w AS (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) ORDER BY i;
SELECT i, sum(v::interval) OVER w, avg(v::interval) OVER w FROM (VALUES (1, '1 day'), (2, '2 hours'), (3, '1 mon 3 days'), (4, NULL), (5, '-1 min')) t(i, v) WINDOW w AS (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) ORDER BY i;
SELECT i, max(v) OVER w, min(v) OVER w FROM (VALUES (1, 5), (2, 3), (3, NULL), (4, 9), (5, 1)) t(i, v) WINDOW w AS (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) ORDER BY i;
-- ROWS.
SELECT i, array_agg(i) OVER (ORDER BY i ROWS UNBOUNDED PRECEDING) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS 2 PRECEDING) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS CURRENT ROW) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 3 PRECEDING) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS BETWEEN 3 FOLLOWING AND 1 FOLLOWING) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS BETWEEN 0 PRECEDING AND 0 FOLLOWING) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) FROM generate_series(1, 5) i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING) FROM generate_series(1, 5) i;
SELECT i, count(*) OVER (ORDER BY i ROWS BETWEEN 9223372036854775807 PRECEDING AND 9223372036854775806 FOLLOWING) FROM generate_series(1, 3) i;
SELECT i, sum(i) OVER (ORDER BY i ROWS BETWEEN '1' PRECEDING AND '1' FOLLOWING), sum(i) OVER (ORDER BY i ROWS 1 + 1 PRECEDING), sum(i) OVER (ORDER BY i ROWS 1.4 PRECEDING) FROM generate_series(1, 4) i;
SELECT i, sum(i) OVER (ORDER BY i ROWS (SELECT 1) PRECEDING) FROM generate_series(1, 4) i;
SELECT i, first_value(i) OVER w, last_value(i) OVER w, nth_value(i, 2) OVER w FROM generate_series(1, 5) i WINDOW w AS (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING);
SELECT i, first_value(i) OVER w, last_value(i) OVER w FROM generate_series(1, 5) i WINDOW w AS (ORDER BY i ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING);
-- RANGE.
SELECT salary, array_agg(no) OVER (ORDER BY salary, no RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM win_emp WHERE dep = 'develop' ORDER BY no;
SELECT no, salary, sum(salary) OVER (ORDER BY salary RANGE BETWEEN 300 PRECEDING AND 300 FOLLOWING) FROM win_emp ORDER BY salary, no;
SELECT no, salary, sum(salary) OVER (ORDER BY salary DESC RANGE BETWEEN 300 PRECEDING AND 100 FOLLOWING) FROM win_emp ORDER BY salary, no;
SELECT no, salary, count(*) OVER (ORDER BY salary NULLS FIRST RANGE BETWEEN 1000 PRECEDING AND 100 PRECEDING) FROM win_emp ORDER BY salary, no;
SELECT no, salary, count(*) OVER (ORDER BY salary DESC NULLS LAST RANGE BETWEEN 100 FOLLOWING AND 1000 FOLLOWING) FROM win_emp ORDER BY salary, no;
SELECT no, salary, count(*) OVER (ORDER BY salary RANGE BETWEEN UNBOUNDED PRECEDING AND 10 FOLLOWING), count(*) OVER (ORDER BY salary RANGE BETWEEN 10 PRECEDING AND UNBOUNDED FOLLOWING) FROM win_emp ORDER BY salary, no;
SELECT no, salary, count(*) OVER (ORDER BY salary RANGE BETWEEN CURRENT ROW AND 10 FOLLOWING), count(*) OVER (ORDER BY salary RANGE CURRENT ROW) FROM win_emp ORDER BY salary, no;
SELECT no, hired, count(*) OVER (ORDER BY hired RANGE BETWEEN '1 year' PRECEDING AND '1 month' FOLLOWING) FROM win_emp ORDER BY hired, no;
SELECT no, hired, count(*) OVER (ORDER BY hired DESC RANGE BETWEEN '1 year'::interval PRECEDING AND interval '1 month' FOLLOWING) FROM win_emp ORDER BY hired, no;
SELECT no, count(*) OVER (ORDER BY hired::timestamp RANGE '30 days' PRECEDING), count(*) OVER (ORDER BY hired::timestamptz RANGE BETWEEN '1 mon' PRECEDING AND '1 mon 2 hours' FOLLOWING) FROM win_emp ORDER BY no;
SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN '1 hour' PRECEDING AND '30 minutes' FOLLOWING) FROM (VALUES ('00:10'::time), ('00:40'), ('01:00'), ('12:00'), ('23:50'), (NULL)) t(v) ORDER BY v;
SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN '1 day' PRECEDING AND '1 hour' FOLLOWING) FROM (VALUES ('1 hour'::interval), ('24 hours'), ('1 day'), ('26:30'), ('1 mon')) t(v) ORDER BY v;
SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN 1.5 PRECEDING AND 1 FOLLOWING) FROM (VALUES (1.0), (1.50), (2), (3.25), ('NaN'), ('Infinity'), ('-Infinity'), (NULL)) t(v) ORDER BY v;
SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN 1.5 PRECEDING AND 1 FOLLOWING), count(*) OVER (ORDER BY v DESC RANGE BETWEEN 'Infinity' PRECEDING AND 'Infinity' FOLLOWING) FROM (VALUES (1.0::float8), (1.50), (2), (3.25), ('NaN'), ('Infinity'), ('-Infinity'), (NULL)) t(v) ORDER BY v;
SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN 1.1 PRECEDING AND 1.1 FOLLOWING) FROM (VALUES (1::float4), (2.1), (3.2)) t(v) ORDER BY v;
SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN 9223372036854775807 PRECEDING AND 1 FOLLOWING), count(*) OVER (ORDER BY v RANGE BETWEEN 1::int2 PRECEDING AND 2147483647 FOLLOWING) FROM (VALUES (-2147483648), (0), (2147483647)) t(v) ORDER BY v;
SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN 9223372036854775807 PRECEDING AND 9223372036854775807 FOLLOWING) FROM (VALUES (-9223372036854775808), (0), (9223372036854775807)) t(v) ORDER BY v;
SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN 1 PRECEDING AND 2::int8 FOLLOWING) FROM (VALUES (1::int2), (2), (4)) t(v) ORDER BY v;
SELECT no, first_value(salary) OVER w, last_value(salary) OVER w, nth_value(salary, 2) OVER w FROM win_emp WINDOW w AS (ORDER BY salary RANGE BETWEEN 1000 PRECEDING AND 1000 FOLLOWING) ORDER BY salary, no;
-- GROUPS.
SELECT no, salary, array_agg(salary) OVER (ORDER BY salary GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM win_emp ORDER BY salary, no;
SELECT no, salary, count(*) OVER (ORDER BY salary GROUPS 2 PRECEDING), count(*) OVER (ORDER BY salary GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING), count(*) OVER (ORDER BY salary GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM win_emp ORDER BY salary, no;
SELECT no, salary, count(*) OVER (ORDER BY salary GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), count(*) OVER (ORDER BY salary GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), count(*) OVER (ORDER BY salary GROUPS CURRENT ROW), count(*) OVER (ORDER BY salary GROUPS BETWEEN 0 PRECEDING AND 0 FOLLOWING) FROM win_emp ORDER BY salary, no;
SELECT no, salary, count(*) OVER (ORDER BY salary GROUPS BETWEEN 1 PRECEDING AND 2 PRECEDING), count(*) OVER (ORDER BY salary GROUPS BETWEEN 2 FOLLOWING AND 1 FOLLOWING), count(*) OVER (ORDER BY salary GROUPS BETWEEN 1000 PRECEDING AND 1000 FOLLOWING) FROM win_emp ORDER BY salary, no;
SELECT dep, salary, sum(salary) OVER (PARTITION BY dep ORDER BY salary GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM win_emp ORDER BY dep, salary, no;
-- EXCLUDE.
SELECT i, g, array_agg(i) OVER (ORDER BY g ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE NO OTHERS) FROM (VALUES (1, 1), (2, 2), (3, 3)) t(i, g) ORDER BY i;
SELECT i, array_agg(i) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW), array_agg(i) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP), array_agg(i) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM generate_series(1, 5) i ORDER BY i;
SELECT no, salary, sum(salary) OVER (ORDER BY salary RANGE BETWEEN 300 PRECEDING AND 300 FOLLOWING EXCLUDE CURRENT ROW), sum(salary) OVER (ORDER BY salary RANGE BETWEEN 300 PRECEDING AND 300 FOLLOWING EXCLUDE GROUP), sum(salary) OVER (ORDER BY salary RANGE BETWEEN 300 PRECEDING AND 300 FOLLOWING EXCLUDE TIES) FROM win_emp ORDER BY salary, no;
SELECT no, salary, sum(salary) OVER (ORDER BY salary GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW), sum(salary) OVER (ORDER BY salary GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP), sum(salary) OVER (ORDER BY salary GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM win_emp ORDER BY salary, no;
SELECT i, count(*) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES), count(*) OVER (RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP) FROM generate_series(1, 3) i ORDER BY i;
SELECT i, first_value(i) OVER w, last_value(i) OVER w, nth_value(i, 2) OVER w FROM generate_series(1, 5) i WINDOW w AS (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW);
SELECT i, first_value(i) OVER w, last_value(i) OVER w, nth_value(i, 2) OVER w FROM generate_series(1, 6) i WINDOW w AS (ORDER BY i / 2 ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE TIES) ORDER BY i;
SELECT i, count(*) OVER (w ROWS 1 PRECEDING EXCLUDE CURRENT ROW) FROM generate_series(1, 3) i WINDOW w AS (ORDER BY i), "W" AS (PARTITION BY i) ORDER BY i;
SELECT i, count(*) OVER ("W" ORDER BY i ROWS 1 PRECEDING EXCLUDE CURRENT ROW) FROM generate_series(1, 3) i WINDOW w AS (ORDER BY i), "W" AS (PARTITION BY i % 2) ORDER BY i;
-- WINDOW.
SELECT no, sum(salary) OVER w, rank() OVER w FROM win_emp WINDOW w AS (PARTITION BY dep ORDER BY salary) ORDER BY no;
SELECT no, sum(salary) OVER (w ORDER BY no), sum(salary) OVER w FROM win_emp WINDOW w AS (PARTITION BY dep) ORDER BY no;
SELECT no, sum(salary) OVER (w ROWS 1 PRECEDING), sum(salary) OVER (v) FROM win_emp WINDOW w AS (PARTITION BY dep ORDER BY no), v AS (w) ORDER BY no;
SELECT no, sum(salary) OVER v FROM win_emp WINDOW w AS (PARTITION BY dep), v AS (w ORDER BY no ROWS UNBOUNDED PRECEDING) ORDER BY no;
SELECT count(*) FROM win_emp WINDOW w AS (ORDER BY no);
-- Several windows, expressions, order.
SELECT no, rank() OVER (ORDER BY salary), rank() OVER (ORDER BY salary DESC), rank() OVER (PARTITION BY dep ORDER BY hired), count(*) OVER (PARTITION BY dep) FROM win_emp ORDER BY no;
SELECT no FROM win_emp ORDER BY rank() OVER (ORDER BY salary DESC, no), no;
SELECT no, salary - avg(salary) OVER (PARTITION BY dep) AS over_mean FROM win_emp ORDER BY over_mean, no;
SELECT no, rank() OVER (ORDER BY salary / 1000) AS r FROM win_emp ORDER BY r, no;
SELECT row_number() OVER (ORDER BY no) AS rn, no FROM win_emp ORDER BY rn DESC LIMIT 3;
SELECT row_number() OVER (ORDER BY no), no FROM win_emp ORDER BY no OFFSET 2 LIMIT 3;
SELECT DISTINCT dep, count(*) OVER (PARTITION BY dep) FROM win_emp ORDER BY dep;
SELECT DISTINCT ON (dep) dep, no, max(salary) OVER (PARTITION BY dep) FROM win_emp ORDER BY dep, no;
SELECT DISTINCT ON (rank() OVER (ORDER BY dep)) dep, rank() OVER (ORDER BY dep) FROM win_emp ORDER BY rank() OVER (ORDER BY dep), no;
SELECT generate_series(1, 2), row_number() OVER (ORDER BY no) FROM win_emp WHERE no < 4 ORDER BY 2, 1;
SELECT generate_series(1, (count(*) OVER ())::int) FROM win_emp WHERE no < 3 ORDER BY 1;
SELECT count(*) OVER (PARTITION BY dep ORDER BY dep), sum(no) OVER (PARTITION BY 1 ORDER BY 2) FROM win_emp WHERE no < 4 ORDER BY 1, 2;
SELECT no, CASE WHEN rank() OVER (ORDER BY no) > 3 THEN 'late' ELSE 'early' END, coalesce(lag(no) OVER (ORDER BY no), 0) + 1, -(sum(no) OVER (ORDER BY no)) FROM win_emp ORDER BY no;
SELECT no, (SELECT sum(x) OVER (ORDER BY x) FROM generate_series(1, 3) x ORDER BY 1 DESC LIMIT 1), sum((SELECT count(*) FROM win_emp e WHERE e.no < win_emp.no)) OVER (ORDER BY no) FROM win_emp ORDER BY no;
SELECT no, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM win_emp e WHERE e.salary > win_emp.salary)) OVER (ORDER BY no), sum((SELECT 1 / (win_emp.no - 1))) FILTER (WHERE no > 1) OVER (ORDER BY no) FROM win_emp ORDER BY no;
SELECT e.no, s.n FROM win_emp e, LATERAL (SELECT count(*) OVER (ORDER BY f.no ROWS e.no PRECEDING) AS n FROM win_emp f WHERE f.no <= e.no ORDER BY f.no DESC LIMIT 1) s ORDER BY e.no;
-- Grouped queries.
SELECT dep, sum(salary), rank() OVER (ORDER BY sum(salary) DESC NULLS LAST), sum(sum(salary)) OVER () FROM win_emp GROUP BY dep ORDER BY dep;
SELECT dep, count(*), sum(count(*)) OVER (ORDER BY dep), avg(count(*)) OVER (ORDER BY dep ROWS 1 PRECEDING) FROM win_emp GROUP BY dep HAVING count(*) > 1 ORDER BY dep;
SELECT count(*) OVER (), sum(count(*)) OVER () FROM win_emp;
SELECT count(*) OVER (PARTITION BY count(*)), dep FROM win_emp GROUP BY dep ORDER BY dep;
SELECT dep, sum(salary) FILTER (WHERE no > 2), sum(sum(salary)) FILTER (WHERE dep <> 'sales') OVER (ORDER BY dep) FROM win_emp GROUP BY dep ORDER BY dep;
SELECT no, dep, count(*) OVER (ORDER BY no) FROM win_emp GROUP BY no ORDER BY no;
-- Places.
SELECT dep, no FROM (SELECT dep, no, row_number() OVER (PARTITION BY dep ORDER BY salary DESC, no) AS rn FROM win_emp) s WHERE rn = 1 ORDER BY dep;
WITH ranked AS (SELECT no, rank() OVER (ORDER BY salary) AS r FROM win_emp) SELECT * FROM ranked WHERE r BETWEEN 2 AND 4 ORDER BY r, no;
WITH RECURSIVE t(n, s) AS (SELECT 1, 1::bigint UNION ALL SELECT n + 1, sum(n) OVER () FROM t WHERE n < 4) SELECT * FROM t ORDER BY n;
SELECT no FROM win_emp WHERE no IN (SELECT max(no) OVER (PARTITION BY dep) FROM win_emp) ORDER BY no;
SELECT no FROM win_emp e WHERE EXISTS (SELECT row_number() OVER (ORDER BY no) FROM win_emp f WHERE f.salary > e.salary) ORDER BY no;
SELECT rank() OVER (ORDER BY no) FROM win_emp WHERE no < 3 UNION ALL SELECT 100 ORDER BY 1;
CREATE TABLE win_copy AS SELECT no, rank() OVER (ORDER BY salary) AS r, lag(dep) OVER (ORDER BY no) AS before FROM win_emp;
SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'win_copy' ORDER BY ordinal_position;
CREATE VIEW win_view AS SELECT dep, no, rank() OVER w AS r, count(*) OVER (ORDER BY no ROWS 1 PRECEDING EXCLUDE CURRENT ROW) AS n FROM win_emp WINDOW w AS (PARTITION BY dep ORDER BY salary);
SELECT * FROM win_view WHERE r = 1 ORDER BY no;
SELECT count(*), max(n) FROM win_view WHERE no > 5;
DROP VIEW win_view;
INSERT INTO win_copy SELECT 100 + no, row_number() OVER (ORDER BY no), dep FROM win_emp WHERE no < 3;
UPDATE win_copy SET r = s.n FROM (SELECT no, row_number() OVER (ORDER BY no DESC) AS n FROM win_copy) s WHERE s.no = win_copy.no;
DELETE FROM win_copy WHERE no IN (SELECT no FROM (SELECT no, ntile(2) OVER (ORDER BY no) AS half FROM win_copy) s WHERE half = 2);
SELECT * FROM win_copy ORDER BY no;
SELECT count(*) OVER (), row_number() OVER (), sum(no) OVER () FROM win_emp WHERE false;
SELECT pg_typeof(row_number() OVER ()), pg_typeof(ntile(2) OVER ()), pg_typeof(percent_rank() OVER ()), pg_typeof(lag(dep) OVER ()), pg_typeof(sum(no) OVER ()), pg_typeof(avg(no) OVER ()), pg_typeof(first_value(bonus) OVER ()) FROM win_emp LIMIT 1;
SELECT row_number() OVER (), ntile(2) OVER (), sum(1) OVER () AS s;
-- Peers that print differently.
SELECT v, rank() OVER (ORDER BY v), count(*) OVER (PARTITION BY v) FROM (VALUES (1.0), (1.00), (2)) t(v) ORDER BY v, v::text;
SELECT v, count(*) OVER (PARTITION BY v), rank() OVER (ORDER BY v) FROM (VALUES ('a'::char(3)), ('a  '), ('b')) t(v) ORDER BY v;
SELECT max(v), min(v) FROM (VALUES (1.0), (1.00)) t(v);
SELECT i, max(v) OVER (ORDER BY i) FROM (VALUES (1, 1.0), (2, 1.00), (3, 0.5)) t(i, v);
-- Refused.
SELECT no FROM win_emp WHERE row_number() OVER (ORDER BY no) > 3;
SELECT no FROM win_emp GROUP BY no HAVING rank() OVER (ORDER BY no) > 1;
SELECT rank() OVER (ORDER BY no) FROM win_emp GROUP BY rank() OVER (ORDER BY no);
SELECT rank() OVER (ORDER BY no) FROM win_emp GROUP BY 1;
SELECT * FROM win_emp a JOIN win_emp b ON rank() OVER (ORDER BY a.no) = b.no;
SELECT no FROM win_emp LIMIT row_number() OVER ();
SELECT * FROM generate_series(1, row_number() OVER ());
SELECT sum(rank() OVER (ORDER BY no)) FROM win_emp;
SELECT sum(no) FILTER (WHERE rank() OVER (ORDER BY no) > 1) FROM win_emp;
SELECT sum(no) FILTER (WHERE sum(no) > 1) FROM win_emp;
SELECT rank() OVER (ORDER BY rank() OVER (ORDER BY no)) FROM win_emp;
SELECT sum(sum(no) OVER ()) OVER () FROM win_emp;
SELECT lag(no, (rank() OVER ())::int) OVER () FROM win_emp;
SELECT count(*) OVER (ORDER BY no ROWS (rank() OVER ())::int PRECEDING) FROM win_emp;
UPDATE win_copy SET r = rank() OVER (ORDER BY no);
DELETE FROM win_copy WHERE rank() OVER (ORDER BY no) = 1;
INSERT INTO win_copy VALUES (row_number() OVER (), 1);
DELETE FROM win_copy RETURNING row_number() OVER ();
CREATE TABLE win_bad (a int DEFAULT row_number() OVER ());
CREATE TABLE win_bad (a int CHECK (row_number() OVER () > 1));
SELECT row_number() FROM win_emp;
SELECT lag(no) FROM win_emp;
SELECT upper(dep) OVER () FROM win_emp;
SELECT nosuch(dep) OVER () FROM win_emp;
SELECT lag() OVER () FROM win_emp;
SELECT ntile('x') OVER () FROM win_emp;
SELECT ntile(1.5) OVER () FROM win_emp;
SELECT ntile(0) OVER () FROM win_emp;
SELECT ntile(-1) OVER () FROM win_emp;
SELECT nth_value(no, 0) OVER () FROM win_emp;
SELECT lag(no, 1, 'x') OVER () FROM win_emp;
SELECT lag(dep, 1, 5) OVER () FROM win_emp;
SELECT count(DISTINCT no) OVER () FROM win_emp;
SELECT array_agg(no ORDER BY no) OVER () FROM win_emp;
SELECT row_number() FILTER (WHERE no > 1) OVER () FROM win_emp;
SELECT count() OVER () FROM win_emp;
SELECT sum(generate_series(1, 2)) OVER () FROM win_emp;
SELECT rank() OVER nowhere FROM win_emp;
SELECT rank() OVER (nowhere) FROM win_emp;
SELECT rank() OVER w FROM win_emp WINDOW w AS (PARTITION BY dep), w AS (ORDER BY no);
SELECT rank() OVER (w PARTITION BY no) FROM win_emp WINDOW w AS (PARTITION BY dep);
SELECT rank() OVER (w ORDER BY no) FROM win_emp WINDOW w AS (ORDER BY dep);
SELECT rank() OVER (w) FROM win_emp WINDOW w AS (ORDER BY dep ROWS 1 PRECEDING);
SELECT rank() OVER (w ORDER BY no) FROM win_emp WINDOW w AS (PARTITION BY dep ROWS 1 PRECEDING);
SELECT rank() OVER v FROM win_emp WINDOW v AS (w), w AS (ORDER BY dep);
SELECT count(*) OVER (ROWS UNBOUNDED FOLLOWING) FROM win_emp;
SELECT count(*) OVER (ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING) FROM win_emp;
SELECT count(*) OVER (ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM win_emp;
SELECT count(*) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW) FROM win_emp;
SELECT count(*) OVER (ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ROWS 1 FOLLOWING) FROM win_emp;
SELECT count(*) OVER (ROWS -1 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ROWS NULL PRECEDING) FROM win_emp;
SELECT count(*) OVER (ROWS BETWEEN CURRENT ROW AND -1 FOLLOWING) FROM win_emp;
SELECT count(*) OVER (ROWS BETWEEN CURRENT ROW AND NULL FOLLOWING) FROM win_emp;
SELECT count(*) OVER (ROWS no PRECEDING) FROM win_emp;
SELECT count(*) OVER (ROWS 'x' PRECEDING) FROM win_emp;
SELECT count(*) OVER (ROWS true PRECEDING) FROM win_emp;
SELECT count(*) OVER (ROWS count(*) PRECEDING) FROM win_emp;
SELECT count(*) OVER (RANGE 1 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY no, dep RANGE 1 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY dep RANGE 1 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY no RANGE 1.5 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY no RANGE '1 day'::interval PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY hired RANGE 1 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY no RANGE -1 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY no RANGE BETWEEN CURRENT ROW AND -1 FOLLOWING) FROM win_emp;
SELECT count(*) OVER (ORDER BY bonus RANGE 'NaN' PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY rate RANGE -0.5 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY hired RANGE '-1 day' PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY no RANGE NULL PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY no RANGE no PRECEDING) FROM win_emp;
SELECT count(*) OVER (GROUPS 1 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY no GROUPS -1 PRECEDING) FROM win_emp;
SELECT count(*) OVER (ORDER BY no GROUPS NULL PRECEDING) FROM win_emp;
SELECT dep, rank() OVER (ORDER BY salary) FROM win_emp GROUP BY dep;
SELECT dep, sum(salary) OVER (ORDER BY dep) FROM win_emp GROUP BY dep;
SELECT no, rank() OVER (ORDER BY no) FROM win_emp FOR UPDATE;
SELECT rank() OVER (ORDER BY nocolumn) FROM win_emp;
SELECT no AS n, rank() OVER (ORDER BY n) FROM win_emp;
-- EXPLAIN.
EXPLAIN (COSTS OFF) SELECT no, rank() OVER (PARTITION BY dep ORDER BY salary) FROM win_emp;
EXPLAIN (COSTS OFF) SELECT no, count(*) OVER () FROM win_emp;
EXPLAIN (COSTS OFF) SELECT sum(salary) OVER (PARTITION BY dep), rank() OVER (PARTITION BY dep ORDER BY salary) FROM win_emp;
EXPLAIN (COSTS OFF) SELECT sum(salary) OVER (PARTITION BY dep), rank() OVER (ORDER BY salary) FROM win_emp;
EXPLAIN (COSTS OFF) SELECT rank() OVER (ORDER BY salary) FROM win_emp ORDER BY salary;
EXPLAIN (COSTS OFF) SELECT rank() OVER (ORDER BY salary), salary FROM win_emp ORDER BY salary DESC;
EXPLAIN (COSTS OFF) SELECT row_number() OVER (ORDER BY salary + 1) FROM win_emp WHERE dep = 'sales' LIMIT 2;
DROP TABLE win_emp, win_copy;

-- What one call looks ahead for is not forgotten for another's sake, wherever a batch ends.
SELECT count(*) FROM (
    SELECT g, sum(g) OVER w, lead(g, 2) OVER w AS l FROM generate_series(1, 5000) g WINDOW w AS (ORDER BY g)
) x WHERE l IS DISTINCT FROM CASE WHEN g > 4998 THEN NULL ELSE g + 2 END;
SELECT c, count(*) FROM (
    SELECT count(*) OVER (ORDER BY g ROWS BETWEEN CURRENT ROW AND 3 FOLLOWING EXCLUDE TIES) AS c FROM generate_series(1, 2000) g
) x GROUP BY c ORDER BY c;
