-- Conditions that a scan decides on the stored bytes: each beside the same condition in a form that is evaluated (a CASE), and against PostgreSQL.
CREATE DOMAIN sc_domain AS int;
CREATE TABLE sc (id int PRIMARY KEY, gone text, i2 smallint, i4 int, i8 bigint, n numeric, n2 numeric(12,2), d date, ts timestamp, tz timestamptz, t text, v varchar(12), c char(6), f float8, dom sc_domain, o oid, nm name);
INSERT INTO sc SELECT g, 'x', CASE WHEN g % 7 > 0 THEN g - 20 END, CASE WHEN g % 5 > 0 THEN (g - 20) * 100000 END, CASE WHEN g % 6 > 0 THEN (g - 20) * 10000000000 END,
  CASE WHEN g % 8 > 0 THEN (g - 20) / 4.0 END, CASE WHEN g % 9 > 0 THEN (g - 20) / 3.0 END, CASE WHEN g % 4 > 0 THEN date '2020-01-10' + g END,
  CASE WHEN g % 3 > 0 THEN timestamp '2020-01-10 12:00' + g * interval '12 hours' END, timestamptz '2020-01-10 12:00+00' + g * interval '12 hours',
  CASE WHEN g % 6 > 0 THEN chr(96 + g % 13) || repeat(' ', g % 3) END, chr(96 + g % 11) || repeat(' ', g % 2), CASE WHEN g % 7 > 0 THEN chr(96 + g % 9) END, g - 20, g % 10, g % 10, 'n' || g % 10
  FROM generate_series(1, 40) g;
ALTER TABLE sc DROP COLUMN gone;
ALTER TABLE sc ADD COLUMN later int DEFAULT 7;
ALTER TABLE sc ADD COLUMN later_n numeric DEFAULT 1.50;
ALTER TABLE sc ADD COLUMN later_t text DEFAULT 'late';
ALTER TABLE sc ADD COLUMN later_null int;
INSERT INTO sc VALUES
  (101, 0, 0, 0, 'NaN', 'NaN', 'infinity', 'infinity', 'infinity', '', '', '', 'NaN', 0, 0, '', 8, 2.5, 'new', 1),
  (102, -32768, -2147483648, -9223372036854775808, '-Infinity', -0.00, '-infinity', '-infinity', '-infinity', ' ', ' ', ' ', '-0', 9, 9, 'n', 7, 1.5, 'late', NULL),
  (103, 32767, 2147483647, 9223372036854775807, 'Infinity', 0.10, '4713-01-01 BC', '294276-12-31 23:59:59.999999', '2020-01-20', 'é', 'é', 'é', 'Infinity', 3, 3, 'o', NULL, NULL, NULL, NULL),
  (104, NULL, NULL, NULL, 1e30, 9999999999.99, '5874897-12-31', '2000-01-01', NULL, 'aa', 'aa', 'aa', 0, NULL, NULL, NULL, 7, 1.500, 'late ', 2),
  (105, 1, 1, 1, -123456789012345678901234567890.000001, 1.00, '2020-01-20', '2020-01-20', '2020-01-20', 'a', 'a', 'a', 1, 1, 1, 'n1', 9, 0, 'a', 3);
-- integers
SELECT array_agg(id ORDER BY id) FROM sc WHERE i4 < 0;
SELECT array_agg(id ORDER BY id) FROM sc WHERE CASE WHEN i4 < 0 THEN true END;
SELECT array_agg(id ORDER BY id) FROM sc WHERE 0 >= i4;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i4 <> 0;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i4 = 2147483647;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i4 > 2147483647::bigint - 1;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i4 < 10000000000;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i2 <= 5;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i2 < 5::smallint;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i2 > -40000;
SELECT array_agg(id ORDER BY id) FROM sc WHERE 3::bigint < i2;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i8 > 0::smallint;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i8 <= 10000000000;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i8 BETWEEN -20000000000 AND 20000000000;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i4 > 1.5;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i4 < 1e5::float8;
SELECT array_agg(id ORDER BY id) FROM sc WHERE dom > 7;
SELECT array_agg(id ORDER BY id) FROM sc WHERE o > 7;
SELECT array_agg(id ORDER BY id) FROM sc WHERE nm > 'n7';
SELECT array_agg(id ORDER BY id) FROM sc WHERE i4 < NULL;
SELECT array_agg(id ORDER BY id) FROM sc WHERE NOT i4 < 0;
SELECT array_agg(id ORDER BY id) FROM sc WHERE (i4 < 0) IS NULL;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i4 < 0 OR i8 > 100000000000;
-- numeric
SELECT array_agg(id ORDER BY id) FROM sc WHERE n > 1.5;
SELECT array_agg(id ORDER BY id) FROM sc WHERE n = 1.500;
SELECT array_agg(id ORDER BY id) FROM sc WHERE n >= 'NaN';
SELECT array_agg(id ORDER BY id) FROM sc WHERE n <= '-Infinity';
SELECT array_agg(id ORDER BY id) FROM sc WHERE n > 'Infinity'::numeric;
SELECT array_agg(id ORDER BY id) FROM sc WHERE n <> 0;
SELECT array_agg(id ORDER BY id) FROM sc WHERE n > 1e29;
SELECT array_agg(id ORDER BY id) FROM sc WHERE n < -123456789012345678901234567890;
SELECT array_agg(id ORDER BY id) FROM sc WHERE n = -123456789012345678901234567890.0000010;
SELECT array_agg(id ORDER BY id) FROM sc WHERE n2 = 0;
SELECT array_agg(id ORDER BY id) FROM sc WHERE n2 >= 0.1;
SELECT array_agg(id ORDER BY id) FROM sc WHERE n2 BETWEEN 0.06 - 0.01 AND 1.0;
SELECT array_agg(id ORDER BY id) FROM sc WHERE n2 > 9999999999.985;
SELECT array_agg(id ORDER BY id) FROM sc WHERE CASE WHEN n2 > 9999999999.985 THEN true END;
SELECT array_agg(id ORDER BY id) FROM sc WHERE 0.3333333333 > n2;
SELECT array_agg(id ORDER BY id) FROM sc WHERE n2 > 10;
-- days and moments
SET TimeZone = 'America/New_York';
SELECT array_agg(id ORDER BY id) FROM sc WHERE d >= date '2020-01-20' AND d < date '2020-01-20' + interval '1 week';
SELECT array_agg(id ORDER BY id) FROM sc WHERE d > '2020-02-01';
SELECT array_agg(id ORDER BY id) FROM sc WHERE d = timestamp '2020-01-20';
SELECT array_agg(id ORDER BY id) FROM sc WHERE d <= timestamp '2020-01-20 00:00:01';
SELECT array_agg(id ORDER BY id) FROM sc WHERE d <> timestamp '2020-01-20 00:00:01';
SELECT array_agg(id ORDER BY id) FROM sc WHERE timestamp '2020-01-20' <= d;
SELECT array_agg(id ORDER BY id) FROM sc WHERE d < timestamp 'infinity';
SELECT array_agg(id ORDER BY id) FROM sc WHERE d > timestamp '-infinity';
SELECT array_agg(id ORDER BY id) FROM sc WHERE d > timestamp '294276-12-31';
SELECT array_agg(id ORDER BY id) FROM sc WHERE d < timestamptz '2020-01-20 12:00+00';
SELECT array_agg(id ORDER BY id) FROM sc WHERE ts > timestamp '2020-01-20 12:00';
SELECT array_agg(id ORDER BY id) FROM sc WHERE ts < date '2020-01-20';
SELECT array_agg(id ORDER BY id) FROM sc WHERE ts <= timestamptz '2020-01-20 12:00+00';
SELECT array_agg(id ORDER BY id) FROM sc WHERE ts = 'infinity';
SELECT array_agg(id ORDER BY id) FROM sc WHERE tz > timestamptz '2020-01-20 12:00+00';
SELECT array_agg(id ORDER BY id) FROM sc WHERE tz < timestamp '2020-01-20 12:00';
SELECT array_agg(id ORDER BY id) FROM sc WHERE tz >= date '2020-01-20';
RESET TimeZone;
-- texts, with blanks at the end
SELECT array_agg(id ORDER BY id) FROM sc WHERE t = 'a';
SELECT array_agg(id ORDER BY id) FROM sc WHERE t = 'a ';
SELECT array_agg(id ORDER BY id) FROM sc WHERE t <> 'a';
SELECT array_agg(id ORDER BY id) FROM sc WHERE t = '';
SELECT array_agg(id ORDER BY id) FROM sc WHERE 'c' = t;
SELECT array_agg(id ORDER BY id) FROM sc WHERE v = 'a';
SELECT array_agg(id ORDER BY id) FROM sc WHERE v = 'a '::varchar;
SELECT array_agg(id ORDER BY id) FROM sc WHERE v = 'a '::char(3);
SELECT array_agg(id ORDER BY id) FROM sc WHERE c = 'a';
SELECT array_agg(id ORDER BY id) FROM sc WHERE c = 'a   ';
SELECT array_agg(id ORDER BY id) FROM sc WHERE c = 'a    '::text;
SELECT array_agg(id ORDER BY id) FROM sc WHERE c = 'a'::text;
SELECT array_agg(id ORDER BY id) FROM sc WHERE c <> 'a'::char(2);
SELECT array_agg(id ORDER BY id) FROM sc WHERE c = '';
SELECT array_agg(id ORDER BY id) FROM sc WHERE c::text = 'a ';
SELECT array_agg(id ORDER BY id) FROM sc WHERE c::varchar = 'a';
SELECT array_agg(id ORDER BY id) FROM sc WHERE t COLLATE "C" < 'b';
SELECT array_agg(id ORDER BY id) FROM sc WHERE c COLLATE "C" > 'g';
SELECT array_agg(id ORDER BY id) FROM sc WHERE v COLLATE "C" >= 'h';
SELECT array_agg(id ORDER BY id) FROM sc WHERE t::char(2) = 'a';
SELECT array_agg(id ORDER BY id) FROM sc WHERE f > 'Infinity';
SELECT array_agg(id ORDER BY id) FROM sc WHERE f = 0;
-- columns that rows of before do not have
SELECT array_agg(id ORDER BY id) FROM sc WHERE later = 7;
SELECT array_agg(id ORDER BY id) FROM sc WHERE later > 7;
SELECT array_agg(id ORDER BY id) FROM sc WHERE later_n = 1.5 AND id > 30;
SELECT array_agg(id ORDER BY id) FROM sc WHERE later_n > 1.4 AND later_n < 2 AND later = 7 AND id > 35;
SELECT array_agg(id ORDER BY id) FROM sc WHERE later_t = 'late' AND id > 35;
SELECT array_agg(id ORDER BY id) FROM sc WHERE later_null < 3;
SELECT array_agg(id ORDER BY id) FROM sc WHERE later_null IS NULL AND later = 7 AND id > 38;
SELECT id, later, later_n, later_t, later_null, i4 FROM sc WHERE later = 7 AND i4 > 1000000 AND id < 45 ORDER BY id;
UPDATE sc SET i4 = i4 + 1 WHERE later = 7 AND id % 10 = 3;
SELECT id, i4, later, later_t FROM sc WHERE later = 7 AND later_t = 'late' AND i4 > 300000 ORDER BY id;
-- a condition decided so beside one that fails for rows that it refuses
SELECT count(*) FROM sc WHERE i4 > 0 AND 1000 / i4 >= 0;
SELECT count(*) FROM sc WHERE n2 > 0 AND 1 / n2 > 0 AND t <> '' AND length(t) > 0;
-- another type for the column
DELETE FROM sc WHERE id > 101;
ALTER TABLE sc ALTER COLUMN i2 TYPE bigint;
SELECT array_agg(id ORDER BY id) FROM sc WHERE i2 > 15;
ALTER TABLE sc ALTER COLUMN c TYPE text;
SELECT array_agg(id ORDER BY id) FROM sc WHERE c = 'a';
ALTER TABLE sc ALTER COLUMN d TYPE timestamp;
SELECT array_agg(id ORDER BY id) FROM sc WHERE d > '2020-02-10';
ALTER TABLE sc ALTER COLUMN i4 TYPE numeric(10,1);
SELECT array_agg(id ORDER BY id) FROM sc WHERE i4 > 1500000;
DELETE FROM sc WHERE later = 7 AND i8 > 0;
SELECT count(*) FROM sc;
DROP TABLE sc;
DROP DOMAIN sc_domain;
