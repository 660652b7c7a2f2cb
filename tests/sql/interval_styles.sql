-- Intervals in the four styles of IntervalStyle, out and in.
CREATE TABLE spans (n int PRIMARY KEY, v interval);
INSERT INTO spans VALUES
  (1, '0'), (2, '1 year 2 mons 3 days 4:05:06.789'), (3, '-1 year -2 mons -3 days -4:05:06.789'), (4, '1 year -2 mons 3 days -04:05:06'),
  (5, '1 mon'), (6, '-1 mon'), (7, '14 mons'), (8, '1 day'), (9, '-1 day'), (10, '2 days 0.5 sec'), (11, '00:00:01'), (12, '-00:00:01'),
  (13, '-00:00:00.000001'), (14, '100:00:00'), (15, '-1 day +2:00:00'), (16, '1 day -00:00:01'), (17, '1 min'), (18, '2147483647 days'), (19, '-178000000 years'),
  (20, '-2 hours +1 sec'), (21, '00:00:01.5'), (22, '1 mon 1 sec'), (23, '-3 days 00:00:00.25');
SELECT n, v FROM spans ORDER BY n;
SET IntervalStyle = postgres_verbose;
SELECT n, v FROM spans ORDER BY n;
SET IntervalStyle = sql_standard;
SELECT n, v FROM spans ORDER BY n;
SET IntervalStyle = 'ISO_8601';
SHOW IntervalStyle;
SELECT n, v FROM spans ORDER BY n;
SELECT v::text, array_agg(v), format('%s', v), to_json(v) FROM spans WHERE n IN (2, 3) GROUP BY n, v ORDER BY n;
-- Every style is read, and what one writes in the style of the standard is read back in it.
SELECT interval '@ 1 year 2 mons ago', interval 'P1Y2M3DT4H5M6.7S', interval '1-2 3 4:05:06', interval 'P0001-02-03T04:05:06', interval 'PT-1.5S';
SET IntervalStyle = postgres;
SELECT interval '-1 2:03:04', interval '-1 day 2 hours', interval '-1-2 3 4:05:06', interval '-1 +2:03:04';
SET IntervalStyle = sql_standard;
SELECT n, v::text::interval = v AS same FROM spans ORDER BY n;
SET IntervalStyle = postgres;
SELECT interval '1 day' - interval '2 hours';
SET IntervalStyle = sql_standard;
SELECT interval '-1 2:03:04', interval '-1 day 2 hours', interval '-1-2 3 4:05:06', interval '-1 +2:03:04', interval '-1.5 hours 30 min';
-- What is kept means the same to everybody.
CREATE TABLE kept (n int, v interval DEFAULT '-1 2:03:04');
CREATE VIEW seen AS SELECT interval '-1 2:03:04' AS v;
SET IntervalStyle = postgres;
INSERT INTO kept VALUES (1);
SELECT v FROM kept;
SELECT v FROM seen;
-- Too large.
SELECT interval '768614336404564650.9 years';
SELECT interval 'P9223372036854775807M0.9Y';
SELECT interval '9223372036854775807 days 0.9 weeks';
SELECT interval '768614336404564650-11';
SELECT interval '-9223372036854775807 mons -1 mon 0 day ago';
SET IntervalStyle = other;
RESET IntervalStyle;
DROP VIEW seen;
DROP TABLE spans, kept;
