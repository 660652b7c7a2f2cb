-- Whole rows, arrays, windows and functions with a syntax of their own in the text of views, and that they can be read again.
create schema g_view_expressions_shown;
set search_path = g_view_expressions_shown;
set intervalstyle = postgres_verbose;
create table t (a int, b text);
insert into t values (1, 'x'), (null, null);
create type c as (x t);
create view v1 as select row(i)::c from t i;
create view v2 as select * from t i, lateral (values (i)) ss;
create view v3 as select * from t i where i in (values (i));
create view v4 as select t as r, t::text as s, (t is null) as n, t = t as e, row(t, 1) as w from t;
create view v5 as select count(t), row_to_json(t) as j from t group by t;
create view v6 as with w as materialized (select r from (values (1, 2), (3, 4)) r) select (r).column1 from w;
create view v7 as select 'foo'::text = any (array['abc', 'def', 'foo']::text[]) c1,
  'foo'::text = any ((select array['abc', 'def', 'foo']::text[])::text[]) c2, array[1, 2]::int8[] c3, array[]::int[] c4, array['x', b] c5,
  array[array['1', '2'], array['3', '4']]::int[] c6 from t;
create view v8 as select ('2022-12-01'::date + '1 day'::interval) at time zone 'UTC' as atz,
  (now(), '1 day'::interval) overlaps (current_timestamp(2), '1 day'::interval) as o,
  'foo' is normalized isn, 'foo' is nfkc normalized isnn, 'foo' is not nfd normalized notn, normalize('foo') as n, normalize('foo', nfkd) as nfkd,
  overlay('foo' placing 'bar' from 2) as ovl, overlay('foo' placing 'bar' from 2 for 3) as ovl2, position('foo' in 'foobar') as p,
  substring('foo' from 2 for 3) as s, substring('foo' from 'oo') as ssf,
  trim(' ' from ' foo ') as bt, trim(leading ' ' from ' foo ') as lt, trim(trailing ' foo ') as rt, trim(both from b) as tb,
  trim(e'\\000'::bytea from e'\\000Tom\\000'::bytea) as btb, 'a\b' as bs from t;
create view v9 as select a, min(a) over (order by a range between '1' preceding and '10' following) as m,
  sum(a) over (order by a rows '2' preceding) as s, count(*) over w as c from t window w as (order by b desc groups between '1' preceding and 2 following);
create view v10 as select i, min(i) over (order by i range between '1 day' preceding and '10 days' following) as m
  from generate_series(now(), now() + '100 days'::interval, '1 hour') i;
create view v11 as select a from t where (select 1 > 0) is not null and a = (select max(a) from t) and a + (select 1) > 2 and exists (select 1) and not exists (select 2)
  order by b using ~<~, a using >;
create view v12 as select string_agg(b, ',' order by b using ~>~, a) as s from t;
create view v13 as select * from t natural join (select 1 as z) s;
create view v14 as select * from t natural left join (select 1 as z) s;
create view v15 as select * from t left join (select 1 as z) s on true;
create view v16 as select a from t where b collate "C" < 'x' and 'y' collate "C" > b;
create view v17 as select (t).a, (t).b as bb, (t.*)::text as x, (row(1, t)::record) is null as n from t;
create view v18 as select * from json_to_record('{"a":1}') as x(a int, b varchar(5));
create view v19 as select * from unnest(array[1, 2], array['a', 'b']) with ordinality as q(x, y, n), t cross join generate_series(1, t.a) g, unnest(array[t.b]) u;
create view v20 as select count(*) filter (where b > 'x') as f, nullif(b, 'q') as n, a is distinct from null as d, null is not distinct from b as e,
  jsonb_build_object('a', a) as j, format('%s', 'x') as fm, 12345678901 as big, 1e10 as ex, 99999999999999999999 as num, 1.50 as dec, -12345678901 as neg, -1.5 as nd
  from t;
create table m (c numeric(8, 2), v varchar(4), i int);
create view v21 as select c::numeric as c1, v::varchar as v1, v::text as v2, i::int as i1, i::int8 as i2, c::int as c2 from m;
select relname, pg_get_viewdef(oid), pg_get_viewdef(oid, true) from pg_class where relkind = 'v' and relname ~ '^v\d' order by length(relname), relname;
do $$
declare
  v record;
begin
  for v in select relname, pg_get_viewdef(oid) as text, pg_get_viewdef(oid, true) as pretty from pg_class where relkind = 'v' and relname ~ '^v\d' loop
    execute 'create view again_' || v.relname || ' as ' || v.text;
    execute 'create view pretty_' || v.relname || ' as ' || v.pretty;
  end loop;
end $$;
select relname, pg_get_viewdef(c.oid) from pg_class c where relname ~ '^(again|pretty)_' and pg_get_viewdef(c.oid) <> pg_get_viewdef(regexp_replace(relname, '.*_', '')::regclass) order by 1;
-- The rule behind a view.
select pg_get_ruledef(oid), pg_get_ruledef(oid, true) from pg_rewrite where ev_class = 'v15'::regclass;
select pg_get_ruledef(0);
-- A row by its name with a star, where an expression stands.
select t.* is not null from t;
select * from t where t.* is null;
select t.* = t.*, t.* < t.*, coalesce(t.*, t.*) from t;
select count(t.*), row_to_json(t.*) from t group by t.* order by t.*;
select * from t i where i.* in (values (i.*::t));
select * from t i where i.* = any (array[i.*]);
select * from t i where i.* not in (select 1, 'x');
select t.* from t order by t.* desc nulls last, t.*;
select case when t.* is null then 1 end, (t.*)::text, array[t.*, t.*] from t;
select a, rank() over (partition by a, t.* order by t.*) from t order by 1;
-- In tables.
create table k (a text check (trim(both from a) <> '' and trim(leading 'x' from a) = any (array['a', 'b']::text[])), b text default overlay('abc' placing 'x' from 2));
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'k'::regclass;
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'k'::regclass;
insert into k values (' '), ('xa');
insert into k values ('xa');
select * from k;
set client_min_messages = warning;
drop schema g_view_expressions_shown cascade;
