-- System columns where rows are changed: DO UPDATE, MERGE, queues that are emptied by ctid.
create table ups (id int primary key, v text, n int default 0);
insert into ups values (1, 'a'), (2, 'b');
-- DO UPDATE sees those of the row that is there.
select xmin as one from ups where id = 1 \gset
insert into ups values (1, 'c') on conflict (id) do update set v = excluded.v, n = ups.n + 1 where ups.xmin = :'one' returning v, n, xmax <> 0 as updated;
insert into ups values (1, 'd') on conflict (id) do update set v = excluded.v, n = ups.n + 1 where ups.xmin = :'one' returning v, n, xmax <> 0 as updated;
insert into ups values (1, 'd') on conflict (id) do update set v = excluded.v, n = ups.n + 1 where ups.xmin <> :'one' returning v, n, xmax <> 0 as updated;
insert into ups values (2, 'e'), (3, 'f') on conflict (id) do update set v = excluded.v || (ups.xmin = (select xmin from ups where id = 2))::text, n = (ups.xmax <> 0)::int
  returning id, v, n, xmin = (select xmin from ups where id = 2) as as_before;
insert into ups as u values (2, 'g') on conflict (id) do update set v = (u.ctid = (select ctid from ups where id = 2))::text where u.ctid is not null and u.tableoid = 'ups'::regclass returning v;
insert into ups as u values (2, 'g') on conflict (id) do update set v = 'h' where xmin is not null returning v;
insert into ups values (2, 'g') on conflict (id) do update set v = excluded.xmin::text;
insert into ups values (2, 'g') on conflict (id) do update set v = 'x' where excluded.ctid is not null;
insert into ups values (2, 'g') on conflict (id) do update set v = excluded.tableoid::text;
insert into ups (xmin) values (1);
update ups set ctid = '(0,1)';
prepare up (int, text) as insert into ups values ($1, $2) on conflict (id) do update set v = excluded.v where ups.xmin is not null and ups.cmin = '0' returning id, v, xmax <> 0 as updated;
execute up (2, 'p');
execute up (4, 'q');
execute up (4, 'r');
begin;
execute up (4, 's');
select xmin::text::bigint = txid_current() % 4294967296 as own, xmin = (select xmin from ups where id = 1) as other from ups where id = 4;
commit;
select * from ups order by id;
-- Through a view.
create view ups_v as select id as key, v as value from ups;
insert into ups_v values (1, 'view') on conflict (key) do update set value = excluded.value returning key, value;
-- River: was it updated?
with w as (insert into ups values (1, 'w'), (9, 'w') on conflict (id) do update set v = excluded.v returning id, (xmax <> 0) as was_update)
  select * from w order by id;
-- RETURNING of several kinds.
update ups set v = v || '!' where id in (1, 2) returning id, xmax, ctid is not null as placed, tableoid::regclass;
delete from ups where id = 9 returning id, xmax <> 0 as gone, cmin = cmax as same;
merge into ups u using (values (1, 'm'), (20, 'n')) s (id, v) on u.id = s.id and u.xmin is not null when matched and u.n >= 0 then update set v = s.v when not matched then insert values (s.id, s.v);
select id, v from ups where id in (1, 20) order by id;
-- A queue that is emptied by ctid.
create table queue (id int, payload text);
insert into queue select g, 'p' || g from generate_series(1, 10) g;
delete from queue where ctid in (select ctid from queue order by id limit 3 for update skip locked);
select min(id), count(*) from queue;
with next as materialized (select ctid from queue order by id limit 2 for update skip locked)
  delete from queue q using next where q.ctid = next.ctid;
select min(id), count(*) from queue;
delete from queue where ctid = (select ctid from queue order by id limit 1 for update) returning id;
update queue set payload = 'taken' where ctid = any (array(select ctid from queue order by id limit 2)) returning id;
select id, payload from queue order by id;
do $$
declare c tid; n int;
begin
  select ctid into c from queue where id = 10;
  update queue set payload = 'by a variable' where ctid = c;
  get diagnostics n = row_count;
  raise notice '% row', n;
end $$;
select payload from queue where id = 10;
-- Triggers' functions and row variables have no system columns; rows in expressions do.
select (select q.xmin = q2.xmin from queue q2 where q2.id = q.id) as same from queue q where id = 10;
select q.ctid = q.ctid as same, row(q.ctid) is not null as in_row from queue q where id = 10;
select array_agg(xmax) from queue;
select count(*) from queue group by xmin, tableoid having xmin is not null and count(*) > 1;
select max(id) from queue where xmin::text::bigint <= txid_current() % 4294967296;
-- Catalogs.
select count(distinct pr.xmin) > 0 as some from pg_catalog.pg_proc pr;
select n.xmin is not null, n.cmin = n.cmax, n.xmax, n.tableoid::regclass from pg_namespace n where nspname = 'public';
select bool_and(c.xmin is not null) from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid where a.xmin is not null and t.xmin is not null;
select age(xmin) >= 0 as seen from pg_class where relname = 'queue';
select count(*) = count(distinct ctid) as all from pg_class;
select c.relname, a.ctid is null as none from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attnum = 99 where c.ctid = (select ctid from pg_class where relname = 'queue');
select c.relname from pg_class c join pg_class d on c.ctid = d.ctid where d.relname in ('queue', 'ups') order by 1;
select relname from pg_class where relname ~ '^(queue|ups)$' and ctid > '(0,0)' order by 1;
select xmin from pg_views;
select v.ctid from pg_stat_activity v;
drop view ups_v;
drop table ups, queue;
-- Temporary tables.
create temp table tt (id int primary key, v text);
insert into tt values (1, 'a') returning xmin as told \gset
select xmin = :'told' as same from tt;
update tt set v = 'b' where xmin = :'told' returning xmin as next \gset
select xmin = :'told' as old, xmin = :'next' as same, v from tt;
update tt set v = 'c' where xmin = :'told' returning v;
delete from tt where xmin = :'next' and ctid is not null returning v;
drop table tt;
