-- Signs, powers, shifts.
SELECT -2 ^ 2, -(2 ^ 2), 2 ^ -1, -2 ^ 2 ^ 3, - -2 ^ 2, 3 - 2 ^ 2, -2.25 ^ 0.0;
SELECT - (-2147483648) AS a, pg_typeof(- (-2147483648)), - (-9223372036854775808) AS b, -(-(5)), pg_typeof(-2147483648), -(+2147483648) AS c;
SELECT 7::int2 << 42, (-1)::int2 << -7, 32767::int2 >> -7, (-32768)::int2 >> 42, 1::int2 << 15, 1 << 33;
-- Decimals between two floats are not the shortest.
SELECT 3e10::float4, 1e10::float4, 9007199254740992::float8, 5e-324::float8, 9.5e15::float8, 0.3::float4, 33554432::float4, 2e22::float8, 8.5e15::float4;
-- Types without values.
SELECT pg_typeof(coalesce(NULL, NULL)), pg_typeof(CASE WHEN true THEN NULL END), pg_typeof('x'::char), pg_typeof('x'::varchar(3)), pg_typeof(coalesce('a'::varchar, 'b'::varchar)), pg_typeof(NULL);
-- One match behind the other.
SELECT regexp_replace('ab', 'a*', 'X', 'g'), regexp_replace('ab', 'a*', 'X', 1, 2), regexp_replace('aaa', 'aa', 'X', 2), regexp_replace('abc', '', 'X', 4), regexp_replace('abc', '', 'X', 5);
SELECT regexp_count('ab', 'a*'), regexp_count('aaa', 'aa', 2), regexp_count('abc', '', 4), regexp_count('abc', '', 5), regexp_count('äöü', '.', 2);
SELECT regexp_substr('aaa', 'aa', 2), regexp_substr('abc', '', 4), regexp_substr('abc', '', 5), regexp_substr('abcab', 'b', 1, 2);
SELECT m FROM regexp_matches('ab', 'a*', 'g') m;
SELECT regexp_instr('ABCDEF', 'C'), regexp_instr('äABCABC', 'B(C)', 1, 2, 1), regexp_instr('ABC', '(B)|(X)', 1, 1, 0, '', 2), regexp_instr('ABCabc', 'C', 4, 1, 0, 'i'), regexp_instr('abc', 'x'), regexp_instr('abc', 'b', 5);
SELECT regexp_instr('abc', 'b', 1, 1, 2);
SELECT regexp_instr('abc', 'b', 0);
SELECT regexp_instr('abc', 'b', 1, 1, 0, 'g');
-- Pairs of numbers.
SELECT regr_count(y, x), regr_sxx(y, x), regr_syy(y, x), regr_sxy(y, x), regr_avgx(y, x), regr_avgy(y, x) FROM (VALUES (1.0, 2), (2.5, 3), (NULL, 4), (4, 7), (9, 1)) AS v(y, x);
SELECT regr_r2(y, x), regr_slope(y, x), regr_intercept(y, x), corr(y, x), covar_pop(y, x), covar_samp(y, x) FROM (VALUES (1.0, 2), (2.5, 3), (NULL, 4), (4, 7), (9, 1)) AS v(y, x);
SELECT regr_count(y, x), regr_r2(y, x), corr(y, x), covar_samp(y, x), covar_pop(y, x), regr_slope(y, x), regr_intercept(y, x) FROM (VALUES (1, 2)) AS v(y, x);
SELECT regr_count(y, x), regr_sxx(y, x), corr(y, x) FROM (VALUES (1, 2)) AS v(y, x) WHERE y > 1;
SELECT regr_r2(y, x), corr(y, x) FROM (VALUES (1, 2), (1, 3)) AS v(y, x);
SELECT corr('Infinity'::float8, x), covar_pop(x, 'NaN'::float8) FROM (VALUES (1), (2)) AS v(x);
SELECT covar_pop(x, x) FROM (VALUES (1e200::float8), (-1e200::float8)) AS v(x);
SELECT n % 2, corr(n, n * n) FROM generate_series(1, 9) n GROUP BY 1 ORDER BY 1;
SELECT n, covar_samp(n, n * n) OVER (ORDER BY n ROWS 2 PRECEDING) FROM generate_series(1, 5) n;
-- Arguments by name.
SELECT make_interval(days => 3), make_interval(1, hours => 2, secs => 1.5), make_date(day => 2, year => 2024, month => 1);
SELECT jsonb_set('{"a": 1}', path => '{b}', replacement => '2', create_if_missing => false), jsonb_set('{"a": 1}', '{b}', replacement => '2');
SELECT make_interval(days => 3, 4);
SELECT make_interval(days => 3, days => 4);
-- Parentheses around the first of several queries.
SELECT ((SELECT 1) UNION (SELECT 1)) AS one, EXISTS ((SELECT 1 WHERE false) EXCEPT (SELECT 2)), 2 IN ((SELECT 1) UNION ALL (SELECT 2));
SELECT * FROM ((SELECT 1 AS a) UNION ALL (SELECT 2)) q ORDER BY a;
-- Slices.
SELECT a[2:3], a[:2], a[2:], a[:], a[5:9], a[3:2], a[-5:1], a[NULL:2] FROM (SELECT ARRAY[1, 2, 3, 4] AS a) s;
SELECT ('[3:5]={a,b,c}'::text[])[4:9], ('{}'::int[])[1:2], (ARRAY['x', NULL])[1:2], (string_to_array('a b c', ' '))[2:3];
SELECT (ARRAY[1, 2])['x':2];
SELECT (ARRAY[1, 2])[1:2.5];
SELECT (5)[1:2];
SELECT ('{"a": 1}'::jsonb)['a':'b'];
SELECT '[1:5]={1,2}'::int[];
SELECT '[3:2]={1}'::int[];
-- Behind a schema every word is a function's name, whatever it means by itself.
SELECT pg_catalog.interval('1:00'::time), pg_catalog.substring('abc', 2), PG_CATALOG.SUBSTRING('abc', 1, 2), pg_catalog.overlay('abc', 'x', 2, 1), pg_catalog.position('abc', 'c');
SELECT pg_catalog.left('abc', 2), pg_catalog.right('abc', 2), pg_catalog.date('2024-01-01 10:00'::timestamp), pg_catalog.timestamp('2024-01-01'::date), pg_catalog.time('2024-01-01 10:00'::timestamp), pg_catalog.ltrim('  a'), pg_catalog.count(*), pg_catalog.max(1);
SELECT pg_catalog.session_user() = session_user, pg_catalog.current_user() = current_user;
SELECT '1'::pg_catalog.numeric(5, 2), '2'::pg_catalog.varchar(3), '3'::pg_catalog."numeric"(4, 1), CAST('10:00:00.123' AS pg_catalog.time(1)), '1 day'::pg_catalog.interval;
