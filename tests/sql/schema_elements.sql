-- CREATE SCHEMA with elements; CREATE TABLE AS EXECUTE.
create role el_owner; create role el_reader;
create schema el
  grant select on t to el_reader
  create view v as select a, b from t
  create index ti on t (b)
  create table t (a int primary key default nextval('sq'), b text, c int references other)
  create table other (x int primary key)
  create sequence sq start 5;
create schema el create table other (x int primary key) create sequence sq start 5 grant select on t, v to el_reader with grant option create view v as select a, b from t create index ti on t (b) create table t (a int primary key default nextval('sq'), b text);
show search_path;
insert into el.t (b) values ('x'); select * from el.v;
select relname, relkind, relowner::regrole, relacl from pg_class where relnamespace = 'el'::regnamespace order by 1;
create schema el2 create table el.wrong (a int); select 1 from pg_namespace where nspname = 'el2';
create schema el2 create table el2.right_one (a int) create table again (a int) create table again (b int); select 1 from pg_namespace where nspname = 'el2';
create schema if not exists el2 create table t (a int);
create schema authorization el_owner create table t (a int) create view v as select * from t;
select relname, relowner::regrole from pg_class where relnamespace = 'el_owner'::regnamespace and relkind in ('r', 'v') order by 1; select nspowner::regrole from pg_namespace where nspname = 'el_owner';
create schema el3 authorization el_owner create table t (a int); select relowner::regrole from pg_class where oid = 'el3.t'::regclass; select current_user;
begin; create schema el4 create table t (a int); show search_path; select count(*) from el4.t; rollback; select 1 from pg_namespace where nspname = 'el4';
create function el_tell() returns trigger language plpgsql as $$ begin raise notice 'told'; return new; end $$;
create schema el5 create table t (a int) create trigger tg before insert on t for each row execute function public.el_tell(); insert into el5.t values (1);
create schema el6 create function f() returns int language sql as 'select 1';
create schema el6 drop table t;
prepare q(int, text) as select $1 as a, $2 as b, x from generate_series(1, $1) x;
create table made as execute q(2, 'it''s'); select * from made; \d made
create temp table made2 (one, two, three) as execute q(1, null); select * from made2;
create table made3 as execute q(3, 'x') with no data; select * from made3; create table if not exists made3 as execute q(3, 'x');
create table made4 as execute q(3); create table made4 as execute nosuch; prepare ins as insert into made values (1, 'x', 1); create table made4 as execute ins;
prepare w as with c as (select 1 as n) select n from c union all select 2; create table made4 as execute w; select * from made4;
drop table made, made2, made3, made4; drop schema el cascade; drop schema el_owner cascade; drop schema el3 cascade; drop schema el5 cascade; drop function el_tell; drop role el_owner, el_reader;
