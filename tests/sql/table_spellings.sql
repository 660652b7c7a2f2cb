-- Spellings and messages of DDL.
create table compressed (a text compression pglz, b text compression lz4 collate "C" not null, c int, compression text);
select attname, attcompression from pg_attribute where attrelid = 'compressed'::regclass and attnum > 0 order by attnum;
create table u (a int compression pglz);
create table u (a text compression nothing);

create table t (a int, b text);
create view v as select * from t;
alter table t drop xmin;
alter table t drop column nothing;
alter table v drop a;
alter table v add c int;
alter table v alter a set not null;
alter table v alter a drop not null;
alter table v alter a type bigint;
alter table t add primary key (nothing);
alter table t add unique (nothing);
drop view v;
alter table t alter a type boolean using a::int;
alter table t alter b type int using length(b);
alter index t rename to renamed;
select relname, relkind from pg_class where relname in ('t', 'renamed');
alter index renamed rename to t;
create table pg_catalog.mine (a int);

create table u (a int generated always as identity null);
create table u (a int null generated always as identity);
create table u (a int generated always as identity not null);
drop table u;
create table u (a bool default 1 in (1, 2));
create table u (a bool default (1 in (1, 2)), b int default 1 + 2 not null, c text default 'x' || 'y' check (c in ('xy')));
drop table u;
create table u (a int not nul, b int);
create index if not exists on t (a);
select distinct from t;
select * from t* where a > 1;
select x.a from t* x;

drop operator equals;
drop operator int4, int4;
drop operator ===;
drop operator (int4, int4);
drop operator === ();
drop operator === (int4);
drop operator === (int4, );
drop operator === (, int4);

create table too_many (x, y, z) as select a, b from t;
create table too_many (x, y, z) as select a, b from t with no data;
declare c cursor for select 1 into u;
create view w as select 1 into u;
reindex table concurrently pg_class;
vacuum (process_toast false, full) t;
analyze (verbose-x) t;

create function nothing(int) returns void language sql as 'select $1';
create function inserts(int) returns void language sql as 'insert into t values ($1)';
select nothing(1) is null, inserts(2) is null;
select '(-1,0)'::tid, '(4294967295,1)'::tid;
select '(4294967296,1)'::tid;

-- Columns of views may be called like those of the system.
create view places as select ctid, a from t;
select a, ctid is not null from places;
create view fake as select 1 as ctid, 2 as xmin;
select * from fake;
create materialized view kept as select 1 as ctid;

create function instead() returns trigger language plpgsql as 'begin return new; end';
create view changed as select count(*) as n from t;
create trigger i instead of insert on changed for each row execute function instead();
create trigger u instead of update on changed for each row execute function instead();
select is_updatable, is_insertable_into, is_trigger_updatable, is_trigger_deletable, is_trigger_insertable_into
  from information_schema.views where table_name = 'changed';

create table kept_texts (a varchar, b int);
create unique index shown on kept_texts (b) where a::text > 500000000::text collate "C";
select pg_get_indexdef('shown'::regclass);
drop view changed, fake, places;
drop materialized view if exists kept;
drop table kept_texts, t, compressed;
drop function instead(), nothing(int), inserts(int);
