-- The table of a hash join is made anew where its keys hang on an outer row.
create schema g_hash_join_rescans;
set search_path = g_hash_join_rescans;
create table o (q1 int, q2 bigint);
insert into o values (123, 456), (123, 4567890123456789), (456, 123);
create table i4 (f1 int);
insert into i4 values (0), (123456), (-123456);
create table big as select g % 500 as k from generate_series(0, 999) g;
analyze big;
analyze i4;
set enable_nestloop = off;
set enable_mergejoin = off;
select o.q2, ss.* from o, lateral (select b.k, i4.f1 from big b join i4 on b.k = i4.f1 + o.q2 order by 1, 2) ss order by 1, 2, 3;
select o.q2, (select count(*) from big b join i4 on b.k = i4.f1 + o.q2) from o;
select o.q2, (select count(i4.f1) from big b left join i4 on b.k = i4.f1 + o.q2) from o;
select o.q2, (select count(*) from big b where b.k in (select i4.f1 + o.q2 from i4)) from o;
select o.q2, (select count(*) from big b full join i4 on b.k = i4.f1 + o.q2) from o;
set client_min_messages = warning;
drop schema g_hash_join_rescans cascade;
