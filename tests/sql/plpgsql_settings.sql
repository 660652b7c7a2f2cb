-- Settings of PL/pgSQL.
do $$ begin null; end $$; show plpgsql.check_asserts; do $$ begin assert false, 'bad'; end $$;
set plpgsql.check_asserts = off; do $$ begin assert false, 'bad'; end $$; reset plpgsql.check_asserts; do $$ begin assert 1 > 2; end $$;
create table vc (a int, b int); insert into vc values (1, 2);
create function vc_f(a int) returns int language plpgsql as $$ declare r int; begin select a + b into r from vc; return r; end $$;
select vc_f(10);
set plpgsql.variable_conflict = use_column; show plpgsql.variable_conflict;
create or replace function vc_f(a int) returns int language plpgsql as $$ declare r int; begin select a + b into r from vc; return r; end $$; select vc_f(10);
set plpgsql.variable_conflict = use_variable;
create or replace function vc_f(a int) returns int language plpgsql as $$ declare r int; begin select a + b into r from vc; return r; end $$; select vc_f(10);
create or replace function vc_f(a int) returns int language plpgsql as $$ #variable_conflict use_column
declare r int; begin select a + b into r from vc; return r; end $$; select vc_f(10);
set plpgsql.variable_conflict = 'other'; reset plpgsql.variable_conflict;
drop function vc_f; drop table vc;
