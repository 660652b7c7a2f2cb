-- What a view's text calls the columns of its FROM items after columns were added, renamed and dropped; USING with an alias.
create schema g_view_column_aliases;
set search_path = g_view_column_aliases;
create table t1 (a int, b int, c int);
create table t2 (ax int8, b int, c numeric);
create table t3 (ay int, b int, q int);
create view v1 as select b, c, a, ax from t1 join t2 using (b, c);
create view v1n as select * from (t1 join t2 using (b, c)) j;
create view v2 as select * from t1 join t2 using (b, c) join t3 using (b);
create view v2n as select * from (t1 join t2 using (b, c) join t3 using (b)) as j;
create view v3 as select * from t1 join t2 using (b, c) full join t3 using (b);
create view v4 as select * from (t1 cross join t3) as j(aa, bb, cc, dd);
create view v5 as select x.b, x.a, y.b as yb from t1 x left join t1 as y(p, b, r) on x.a = y.p;
create view v6 as select * from t1 natural join t2;
create view v7 as select * from t1 join t2 using (b, c) as j;
create view v8 as select j.b, z.d, t1.a from t1 join t2 using (b) as j join t3 as z(d, e, r) on true;
create view v9 as select * from (t1 join t3 using (b) as i) as o;
create view v10 as select x.* from t1 x(f, g) join t3 on true;
create view v11 as select * from t1 left join (t2 full join t3 using (b)) using (b);
create view v12 as select b, count(*) from t1 full join t3 using (b) group by b order by b;
create view v13 as select * from generate_series(1, 2) g join t1 on g = t1.a;
create view v14 as with w(b, z) as (select 1, 2) select * from w join t1 using (b);
create function shown(out name name, out text text) returns setof record language sql as
  $$ select relname, pg_get_viewdef(oid, true) from pg_class where relkind = 'v' and relname ~ '^v\d+n?$' order by length(relname), relname $$;
select * from shown();
alter table t2 add column d int;
alter table t2 add column e int;
select * from shown();
alter table t1 rename c to d;
select * from shown();
alter table t3 rename q to c;
alter table t3 add column a int;
alter table t1 add column q int;
select * from shown();
alter table t2 drop column d;
alter table t1 rename a to c;
select * from shown();
select pg_get_viewdef('v2n'), pg_get_viewdef('v8');
-- Two tables of which one gets the merged column's name.
create table u7 (x int, xx int, y int);
alter table u7 drop column xx;
create table u8 (x int, z int);
create view w1 as
  select * from (values (1, 2, 3, 4, 5)) v(a, b, c, d, e)
  union all
  select * from u7 full join u8 using (x), u8 u8x;
create view w2 as
  select * from (values (1, 2, 3, 4, 5, 6)) v(a, b, c, x, e, f)
  union all
  select * from u7 full join u8 using (x), u7 u7x full join u8 u8x using (x);
create view w3 as
  select * from (values (1, 2, 3, 4, 5, 6, 7)) v(a, b, c, x, e, f, g)
  union all
  select * from u7 full join u8 using (x), u7 u7x full join u8 u8x using (x) full join u8 u8y using (x);
select pg_get_viewdef('w1', true), pg_get_viewdef('w2', true), pg_get_viewdef('w3', true);
alter table u7 add column zz int;
alter table u7 add column z int;
alter table u7 drop column zz;
alter table u8 add column z2 int;
select pg_get_viewdef('w1', true), pg_get_viewdef('w2', true), pg_get_viewdef('w3', true);
-- Types that are not the same: the merged column is computed.
create table d1 (x date, y int);
create table d2 (x timestamptz, z int);
create view w4 as select * from d1 left join d2 using (x), d2 d2x;
select pg_get_viewdef('w4', true);
-- A column that came behind the view and has the name of a merged one.
create table n1 (x int, y int);
create table n2 (x int, z int);
create table n3 (z int, q int);
create view w5 as select x, y, z, q from n1 join n2 using (x) join n3 using (z);
alter table n1 add column z int;
select pg_get_viewdef('w5', true);
-- The texts mean the same when they are read again.
do $$
declare
  v record;
begin
  for v in select relname, pg_get_viewdef(oid) as text from pg_class where relkind = 'v' and relname ~ '^[vw]\d' and relname !~ '^w[1-4]' loop
    execute 'create view again_' || v.relname || ' as ' || v.text;
  end loop;
end $$;
select count(*) from pg_class where relname ~ '^again_';
select relname from pg_class c where relname ~ '^again_' and pg_get_viewdef(c.oid) <> pg_get_viewdef(substr(relname, 7)::regclass) order by 1;
-- An alias of USING names the merged columns alone.
insert into n1 values (1, 2, 3);
insert into n2 values (1, 4);
create view w6 as select j.x, j as r, n1.y from n1 join n2 using (x) as j;
select x, y from w6;
select * from (select * from v7) s;
set client_min_messages = warning;
drop schema g_view_column_aliases cascade;
