-- What subqueries of IN, ANY, ALL and ARRAY give is kept as a whole, whatever work_mem is.
set work_mem = '64kB';
select null::int in (select a from generate_series(1, 1000000) a);
select array_length(array(select a from generate_series(1, 1000000) a), 1);
select 5 in (select a from generate_series(1, 1000000) a), 0 in (select a from generate_series(1, 1000000) a);
select 0 > all (select a from generate_series(1, 1000000) a), 0 not in (select a from generate_series(1, 1000000) a);
select count(*) from generate_series(1, 3) g where array_length(array(select a from generate_series(1, 200000 * g) a), 1) > 300000;
