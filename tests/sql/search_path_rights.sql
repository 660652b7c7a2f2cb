-- A schema of search_path that the role may not use is passed over.
create role pather; create schema closed; create schema open; grant usage, create on schema open to pather;
create table closed.both_there (a text); create table open.both_there (b int); grant select on open.both_there to pather; insert into open.both_there values (1);
create table closed.only_closed (a int); create function closed.f() returns text language sql as $$ select 'closed' $$; create function open.f() returns text language sql as $$ select 'open' $$;
create type closed.ty as enum ('a'); grant all on closed.both_there, closed.only_closed to pather;
set search_path = closed, open, public;
select current_schemas(false), current_schema(); select f(); select 'both_there'::regclass;
set role pather;
select current_schemas(false), current_schema(); select * from both_there; select f(); select 'both_there'::regclass;
select * from only_closed; select 'a'::ty; select to_regclass('only_closed');
create table made_here (a int); select relnamespace::regnamespace from pg_class where relname = 'made_here';
prepare p as select * from both_there; execute p;
reset role; deallocate p; prepare p as select * from both_there; execute p; set role pather; execute p; reset role; execute p;
grant usage on schema closed to pather; set role pather; select current_schema(); select * from only_closed; reset role; revoke usage on schema closed from pather; set role pather; select current_schema(); reset role;
create function def() returns text language sql security definer as $$ select current_schema()::text $$; set role pather; select def(), current_schema(); reset role;
create view seen as select * from both_there; drop view seen;
reset search_path; drop function open.def; drop function closed.def; drop schema closed cascade; drop schema open cascade; drop owned by pather; drop role pather;
