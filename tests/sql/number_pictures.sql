-- pictures of numbers
SELECT to_char(v, '9.99'), to_char(v, 'FM9.99'), to_char(v, '0.00'), to_char(v, 'FM990.009'), to_char(v, 'S9.9'), to_char(v, '9.9S'), to_char(v, '9.9MI'), to_char(v, 'PL9.9'), to_char(v, '9.9PR'), to_char(v, 'SG9.9'), to_char(v, 'FM9.9PR') FROM (VALUES (0.0), (0.1), (-0.01), (-1.456), (7.5), (12.3)) AS t(v);
SELECT to_char(v, '9,999,999.99'), to_char(v, 'FM9,999,999'), to_char(v, '9G999G999D9'), to_char(v, 'L999'), to_char(v, '999th'), to_char(v, 'FM999TH'), to_char(v, '999V99'), to_char(v, 'RN'), to_char(v, 'FMrn'), to_char(v, '9.9EEEE'), to_char(v, 'B999') FROM (VALUES (0), (1), (-12), (485), (1234567)) AS t(v);
SELECT to_char(v, '9.999EEEE'), to_char(v::float8, '9.999EEEE'), to_char(v, '999.9'), to_char(v::float8, '999.9'), to_char(v::float4, '9999999999.99') FROM (VALUES ('0'::numeric), ('1.2345'), ('-4.2'), ('4.2e9'), ('1.2e-5'), ('inf'), ('-inf'), ('nan')) AS t(v);
SELECT to_char(1.2345e-1234, '9.99EEEE'), to_char(12345678901::float8, 'FM9999999999D9999900000000000000000'), to_char((-0.25)::float8, '9'), to_char((-0.25)::float4, 'FM0'), to_char(-0.25, '9'), to_char(1e20::float8, '999999999999999999999D9');
SELECT to_char(100, 'f"ool"999'), to_char(100, 'f"ool\"999'), to_char(100, 'f\"ool999'), to_char(100, E'f"\\\\ool"999'), to_char(456, E'999 "\\"quoted\\"" 9'), to_char(-7, 'b\c'), to_char(7, ''), to_char(123, 'x9y9z9');
SELECT to_char(1, 'SMI9');
SELECT to_char(1, '9.9.9');
SELECT to_char(1, '9V.9');
SELECT to_char(1, '9PR9');
SELECT to_char(1, 'FM9EEEE');
SELECT to_number('-34,338,492', '99G999G999'), to_number('0.00001-', '9.999999S'), to_number('5.01-', 'FM9.999999MI'), to_number('5 4 4 4 4 8 . 7 8', '9 9 9 9 9 9 . 9 9'), to_number('.01', 'FM9.99'), to_number(' . 0 1-', ' 9 9 . 9 9 S'), to_number('<564646.654564>', '999999.999999PR'), to_number('34,50', '999,99'), to_number('$1,234.56', 'L99,999.99'), to_number('42nd', '99th'), to_number('123456', '999V9'), to_number('0', '99.99'), to_number('+7', 'SG9'), to_number('1', '');
SELECT to_number('x', '9');
SELECT to_number('1', 'RN');
-- intervals
SELECT interval '4 millenniums 5 centuries 4 decades 1 year', interval 'P0002T1S', interval 'P10.5e4Y', interval '-9223372036854775808 microseconds', interval 'PT2562047788.0152155019444', interval '1 week 2 days 3.5 hours ago';
SELECT interval '1 second 2 seconds';
SELECT interval '1:20:05 5 microseconds';
SELECT interval '1 day 1 day';
SELECT interval '2147483648 days';
SELECT interval '2147483647 years';
SELECT interval '1 quarter';
SELECT interval '49 days' / 49, interval '1 mon 7 days' / 7, avg(i) FROM (VALUES (interval '49 days'), (interval '0')) AS t(i);
SELECT make_interval(years := 1, months => 2, days := -3);
-- other mended edges
SELECT power(-1, 'NaN'), tand(270), cotd(180), atanh(1e-7), timezone('nowhere', 'infinity'::timestamptz), '-infinity'::timestamp AT TIME ZONE 'UTC';
SELECT trim(both from '  x '), trim(leading from ' x'), trim(from ' x '), name 'n' AS n, oid '1' AS o, U&'d!0061t' UESCAPE '!' AS U&"d*0061t" UESCAPE '*', 'a'
  'b' -- goes on
  'c' AS abc;
SELECT 123abc;
SELECT 0x1F;
SELECT 1_000;
SELECT 1.5e;
PREPARE p AS SELECT $1a;
SELECT * FROM (TABLE pg_tablespace) AS t(a) WHERE false;
SELECT 1 AS a UNION ALL TABLE pg_tablespace;
