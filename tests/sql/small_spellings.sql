-- Small things that programs spell in their own way, and answers that were of another type or none.
select (a.*)::text, row(a.*::text) from (values (1, 2)) a;
select collation for ('x'::text), collation for ('x' collate "C"), pg_collation_for('x'::name);
select collation for (1);
select 'first line'
' - next' -- and more
' - third';
select 'first line'
' - next' /* c */
' - third';
create domain domainint4 as int4;
select pg_typeof(coalesce(4::domainint4, 7::domainint4)), pg_typeof(array[4::domainint4]), pg_typeof(case when true then 4::domainint4 end), pg_typeof(greatest(4::domainint4, null)), pg_typeof(coalesce(4::domainint4, 5));
drop domain domainint4;
create type ct as (name text, hobby text);
create function mk() returns ct language sql as $$ select 'guts', 'x' $$;
select name(mk()), hobby(mk());
select text(mk());
drop function mk(); drop type ct;
select proargtypes::regtype[] from pg_proc where proname = 'int4pl';
select '23'::oidvector::regtype[], '23 25'::oidvector::regtype[];
select '\377'::text::"char", '\101'::text::"char", '\400'::"char" = '', 'abc'::text::"char";
select interval '1 month 2146410 days' * 1000.5002;
select interval '1 day' * 2147483647.9;
select time '15:36:39 America/New_York';
select time '15:36:39 EST', time '2001-02-03 15:36:39 America/New_York';
select date '1999-08-Jan';
select date '1999-Jan-08', date '08-Jan-1999', date 'Jan-08-1999';
select make_timestamptz(1973, 7, 15, 8, 15, 55.33, '2');
select make_timestamptz(1973, 7, 15, 8, 15, 55.33, '+2') = timestamptz '1973-07-15 08:15:55.33+02';
set timezone = 'UTC';
select timestamptz 'J2452271.5+08', timestamp 'J2452271.25', time '040506.789', time 'T040506.789', time 'T040506', time '040506';
reset timezone;
select (select grouping(v1)) from (values ((select 1))) v(v1) group by v1;
select a, (select grouping(a)), count(*) from (values (1), (2)) v(a) group by rollup (a) order by a;
select (select grouping(a)) from (values (1)) v(a);
create table vw_b (a int primary key, t text);
create view v16 as select a, t, a as aa from vw_b;
insert into v16 values (3, 'r', 3);
insert into v16 (aa, t) values (3, 'r') returning *;
insert into v16 (a, aa) values (4, 4);
drop view v16; drop table vw_b;
-- collations that are named twice
select * from (values ('a' collate "C")) x(c) where c collate "C" >= 'b' collate "POSIX";
select 'a' collate "C" || 'b' collate "POSIX";
select 'a' collate "C" like 'b' collate "POSIX";
select 'a' collate "C" < ('b' collate "C" || 'c');
select 'a' collate "C" in ('b' collate "POSIX");
select case when true then 'a' collate "C" else 'b' collate "POSIX" end;
select coalesce('a' collate "C", 'b' collate "POSIX");
select concat('a' collate "C", 'b' collate "POSIX");
select array['a' collate "C", 'b' collate "POSIX"];
select lower('a' collate "C") < upper('b' collate "POSIX");
select length('a' collate "C") < length('b' collate "POSIX");
select 1 where 'a' collate "C" = 'a' and 'b' collate "POSIX" = 'b';
select ('a' collate "C") collate "POSIX" < 'b';
select row('a' collate "C", 'b' collate "POSIX");
-- system views have their queries
select pg_get_viewdef('pg_catalog.pg_tables'::regclass);
select pg_get_viewdef('pg_catalog.pg_tables'::regclass, true);
select pg_get_viewdef('information_schema.enabled_roles'::regclass, true);
select definition from pg_views where viewname = 'pg_user';
-- a collation behind a cast
select 'x'::text collate "C", 'x'::text collate "C" < 'y', lower('X'::text)::varchar(10) collate "C" = 'x';
select 1 where 'x' in ('x'::text collate "C") and ('y'::char(3))::text collate "C" = 'y';
create table ce (c1 text, c2 text[]);
create index on ce ((c1::text collate "C"));
insert into ce values ('b', '{x,y}'), ('a', '{z}');
select c1 from ce order by c1::varchar::text collate "C" desc;
select ce.c2[1]::text collate "C" from ce order by 1;
select c1 from ce where c1::text = 'a'::text order by c1 collate "C";
select c1::character varying(3) collate "C", ce.c1::varchar collate "POSIX" from ce where 'ce'::regclass = 'ce'::regclass order by c1 collate "C";
drop table ce;
