-- Conditions about no row of what they filter are asked once: EXPLAIN shows it, and what lies below is never run.
create table q as select g as id from generate_series(1, 150) g;
analyze q;
-- A division by zero tells whether rows were looked at.
select count(*) from q a left join (q b cross join q c cross join q d) on a.id < 0 and false;
select count(*) from q o where (select count(*) from q a, q b, q c where o.id < 0 and 1 / (a.id - a.id) = 1) = 0;
select sum((select count(*) from q a, q b, q c, q d where o.id < 0)) from q o where o.id < 20;
select count(*) from q o where (select a.id from q a cross join q b order by o.id limit 1) is not null;
select o.id, (select count(*) from q a where o.id = 2) from q o where o.id < 4 order by 1;
select o.id, (select count(*) from q a left join q b on o.id = 2 and a.id = b.id where b.id is null) from q o where o.id < 4 order by 1;
select o.id, x.n from q o left join lateral (select count(*) as n from q a where o.id > 2) x on o.id < 4 where o.id < 5 order by 1;
select count(*) from q a full join q b on a.id = b.id and (select false);
select count(*) from q a left join q b on (select true) and a.id = b.id;
select count(*) from q a left join q b on (select false) and a.id = b.id where b.id is null;
select count(*) from q where (select max(id) from q) > 100;
select count(*) from q where (select max(id) from q) > 1000 and 1 / (id - id) = 1;
select count(*) from q a where exists (select from q b where (select false) and a.id = b.id);
select count(*) from q a where not exists (select from q b where (select false) and a.id = b.id);
prepare p(int) as select count(*) from q where $1 > 1 and id < 10;
execute p(1);
execute p(2);
explain (costs off) select * from q where now() > '2000-01-01';
-- Volatile ones are asked for each row.
create sequence s;
select count(*) from q where nextval('s') > 100;
select last_value from s;
deallocate p;
drop sequence s;
drop table q;
