-- Ordered-set and hypothetical-set aggregates, and those of pairs of numbers.

CREATE TABLE os_t (g text, x float8, y int, d interval, s text);
INSERT INTO os_t VALUES ('a', 1, 10, '1 day', 'p'), ('a', 2, 20, '2 days', 'q'), ('a', 4, 20, '5 days', 'q'), ('a', NULL, 40, NULL, NULL),
  ('b', 3, 1, '1 hour', 'z'), ('b', 9, 1, '3 hours', 'y'), ('c', NULL, NULL, NULL, NULL);
SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM os_t GROUP BY g ORDER BY g;
SELECT g, percentile_cont(0.25) WITHIN GROUP (ORDER BY x DESC), percentile_disc(0.25) WITHIN GROUP (ORDER BY x DESC) FROM os_t GROUP BY g ORDER BY g;
SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY d), percentile_disc(0.4) WITHIN GROUP (ORDER BY d) FROM os_t GROUP BY g ORDER BY g;
SELECT percentile_cont(ARRAY[0, 0.25, 0.5, NULL, 1]) WITHIN GROUP (ORDER BY y), percentile_disc('{0,0.5,1}') WITHIN GROUP (ORDER BY s) FROM os_t;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY s), percentile_disc(0) WITHIN GROUP (ORDER BY y), percentile_disc(1) WITHIN GROUP (ORDER BY y) FROM os_t;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY y) FILTER (WHERE y < 30), percentile_cont(NULL) WITHIN GROUP (ORDER BY y) FROM os_t;
SELECT pg_typeof(percentile_disc(0.5) WITHIN GROUP (ORDER BY y)), pg_typeof(percentile_cont(0.5) WITHIN GROUP (ORDER BY y)), pg_typeof(percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY y)) FROM os_t;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM os_t WHERE false;
SELECT g, mode() WITHIN GROUP (ORDER BY y), mode() WITHIN GROUP (ORDER BY s DESC) FROM os_t GROUP BY g ORDER BY g;
SELECT mode() WITHIN GROUP (ORDER BY y) FROM os_t HAVING mode() WITHIN GROUP (ORDER BY y) > 0;
-- Direct arguments are of the group.
SELECT y, percentile_disc(y / 100.0) WITHIN GROUP (ORDER BY x) FROM os_t GROUP BY y ORDER BY y;
SELECT g, percentile_disc(x) WITHIN GROUP (ORDER BY y) FROM os_t GROUP BY g;
SELECT percentile_cont(2) WITHIN GROUP (ORDER BY x) FROM os_t;
SELECT percentile_cont(-0.5) WITHIN GROUP (ORDER BY x) FROM os_t;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY s) FROM os_t;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x, y) FROM os_t;
SELECT percentile_cont(0.5) FROM os_t;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) OVER () FROM os_t;
SELECT sum(x) WITHIN GROUP (ORDER BY x) FROM os_t;
SELECT abs(x) WITHIN GROUP (ORDER BY x) FROM os_t;
SELECT percentile_cont(DISTINCT 0.5) WITHIN GROUP (ORDER BY x) FROM os_t;
SELECT percentile_cont(max(x)) WITHIN GROUP (ORDER BY x) FROM os_t;
SELECT g FROM os_t WHERE mode() WITHIN GROUP (ORDER BY x) = 1;
-- The fraction is judged even if there is nothing to pick from; of several, it is not.
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY x) FROM os_t WHERE false;
SELECT percentile_disc(-1) WITHIN GROUP (ORDER BY g) FILTER (WHERE false) FROM os_t;
SELECT percentile_disc(1.5) WITHIN GROUP (ORDER BY g) FROM os_t WHERE false GROUP BY g;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM os_t WHERE false;
SELECT percentile_cont(ARRAY[1.5]) WITHIN GROUP (ORDER BY x) FROM os_t WHERE false;
SELECT percentile_cont(ARRAY[1.5]) WITHIN GROUP (ORDER BY x) FROM (VALUES (NULL::float8)) v(x);
PREPARE os_p (float8) AS SELECT percentile_cont($1) WITHIN GROUP (ORDER BY x) FROM os_t WHERE false;
EXECUTE os_p (1.5);
EXECUTE os_p (1);
DEALLOCATE os_p;
-- Hypothetical sets.
SELECT rank(20) WITHIN GROUP (ORDER BY y), dense_rank(20) WITHIN GROUP (ORDER BY y), percent_rank(20) WITHIN GROUP (ORDER BY y), cume_dist(20) WITHIN GROUP (ORDER BY y) FROM os_t;
SELECT g, rank(15) WITHIN GROUP (ORDER BY y), dense_rank(50) WITHIN GROUP (ORDER BY y), percent_rank(15) WITHIN GROUP (ORDER BY y), cume_dist(15) WITHIN GROUP (ORDER BY y) FROM os_t GROUP BY g ORDER BY g;
SELECT rank(20) WITHIN GROUP (ORDER BY y DESC), dense_rank(20) WITHIN GROUP (ORDER BY y DESC), rank(20) WITHIN GROUP (ORDER BY y NULLS FIRST), dense_rank(20) WITHIN GROUP (ORDER BY y NULLS FIRST), rank(NULL::int) WITHIN GROUP (ORDER BY y), cume_dist(NULL::int) WITHIN GROUP (ORDER BY y) FROM os_t;
SELECT rank('a', 20) WITHIN GROUP (ORDER BY g, y), dense_rank('a', 20) WITHIN GROUP (ORDER BY g, y), dense_rank('b', 1.5) WITHIN GROUP (ORDER BY g DESC, x) FROM os_t;
SELECT rank(3) WITHIN GROUP (ORDER BY y) FILTER (WHERE y > 1), percent_rank(3) WITHIN GROUP (ORDER BY y) FROM os_t WHERE y IS NULL;
SELECT rank(1, 2) WITHIN GROUP (ORDER BY y) FROM os_t;
SELECT rank('x') WITHIN GROUP (ORDER BY y) FROM os_t;
SELECT g, rank(x) WITHIN GROUP (ORDER BY y) FROM os_t GROUP BY g;
-- Pairs.
SELECT regr_count(y, x), regr_sxx(y, x), regr_syy(y, x), regr_sxy(y, x), regr_avgx(y, x), regr_avgy(y, x) FROM os_t;
SELECT regr_r2(y, x), regr_slope(y, x), regr_intercept(y, x), covar_pop(y, x), covar_samp(y, x), corr(y, x) FROM os_t;
SELECT g, regr_count(y, x), regr_r2(y, x), regr_slope(y, x), regr_intercept(y, x), covar_pop(y, x), covar_samp(y, x), corr(y, x) FROM os_t GROUP BY g ORDER BY g;
SELECT corr(1, i), regr_r2(1, i), regr_slope(i, 1), covar_samp(i, i) FROM generate_series(1, 1) i;
SELECT corr(x, 'NaN'), covar_pop(x, 'Infinity'), regr_avgx(x, 'Infinity') FROM os_t;
SELECT covar_pop(1e200, x * 1e300) FROM os_t;
SELECT corr(y, x) OVER (ORDER BY y, x) FROM os_t WHERE x IS NOT NULL ORDER BY y, x;
DROP TABLE os_t;
-- As many dimensions as were asked for.
SELECT percentile_disc(ARRAY[[NULL, 1, 0.5], [0.75, 0.25, NULL]]) WITHIN GROUP (ORDER BY g), percentile_cont('[0:1]={0.5,1}'::float8[]) WITHIN GROUP (ORDER BY g) FROM generate_series(1, 100) g;
