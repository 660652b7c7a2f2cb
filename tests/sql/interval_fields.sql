-- Fields and precision of intervals: in literals, casts and columns.
SELECT interval '1-2' YEAR TO MONTH AS a, interval '1 2:03:04.5678' DAY TO SECOND(2) AS b, interval(2) '1.23456' AS c, '1 day 2:03'::interval day AS d, interval '12' HOUR AS e;
SELECT interval '1' YEAR AS a, interval '1' MONTH AS b, interval '1' DAY AS c, interval '1' HOUR AS d, interval '1' MINUTE AS e, interval '1' SECOND AS f, interval '1.5678' SECOND(1) AS g;
SELECT interval '1 2' DAY TO HOUR AS a, interval '1 2:03' DAY TO MINUTE AS b, interval '1 2:03:04' DAY TO SECOND AS c, interval '2:03' HOUR TO MINUTE AS d, interval '2:03:04' HOUR TO SECOND AS e, interval '3:04' MINUTE TO SECOND AS f;
SELECT interval '2 years 3 months 4 days 5:06:07.891' YEAR AS a, interval '2 years 3 months 4 days 5:06:07.891' MONTH AS b, interval '2 years 3 months 4 days 5:06:07.891' YEAR TO MONTH AS c, interval '2 years 3 months 4 days 5:06:07.891' DAY AS d;
SELECT interval '2 years 3 months 4 days 5:06:07.891' HOUR AS a, interval '2 years 3 months 4 days 5:06:07.891' MINUTE AS b, interval '2 years 3 months 4 days 5:06:07.891' SECOND AS c, interval '2 years 3 months 4 days -5:06:07.896' SECOND(2) AS d, interval '-26 months' YEAR AS e;
SELECT interval '5' YEAR TO MONTH AS a, interval '5' DAY TO HOUR AS b, interval '5' HOUR TO MINUTE AS c, interval '5' MINUTE TO SECOND AS d, interval '5' AS e;
SELECT interval '1 5';
SELECT CAST('1 day 2:03:04.5' AS interval hour to minute) AS a, '1.23456'::interval(3) AS b, '1.23456'::interval second(4) AS c, interval '1 mon 2 days' * 1.5 AS d;
CREATE TABLE ivf (a interval year to month, b interval(3), c interval day to second(1), d interval second(2), e interval[] , f interval hour[]);
SELECT attname, format_type(atttypid, atttypmod), atttypmod FROM pg_attribute WHERE attrelid = 'ivf'::regclass AND attnum > 0 ORDER BY attnum;
INSERT INTO ivf VALUES ('1 year 2 mon 3 day', '1.23456', '1 mon 1 day 1.234', '1:02:03.456', '{1:02:03}', '{1:02:03,2}');
INSERT INTO ivf (a, d) SELECT i, i FROM (SELECT '1 year 2 mon 3 days 4:05:06.789'::interval) s (i);
SELECT * FROM ivf ORDER BY b;
ALTER TABLE ivf ALTER c TYPE interval day, ALTER d TYPE interval;
SELECT c, d FROM ivf ORDER BY b;
DROP TABLE ivf;
SELECT interval '1 2 3' DAY TO HOUR;
SELECT interval '1:70' MINUTE TO SECOND;
