-- Chains and nestings of thousands: what programs generate.
\set ECHO none
\pset format unaligned
\pset tuples_only on
select 'select 1' || repeat('+1', 2000) \gexec
select 'select length(''a''' || repeat('||''b''', 2000) || ')' \gexec
select 'select x' || repeat('+x', 2000) || ' from (values (1), (2)) v(x)' \gexec
select 'select 1' || repeat('::int', 2000) \gexec
select 'select count(*) from (select 1' || repeat(' union all select 1', 2000) || ') u' \gexec
select 'select 1' || repeat(' union select 1', 1000) \gexec
select 'select ' || repeat('(', 2000) || '1' || repeat(')', 2000) \gexec
select 'select ' || repeat('not ', 2000) || 'true' \gexec
select 'select ' || repeat('- ', 2001) || '1' \gexec
select 'select ' || repeat('(select ', 500) || '1' || repeat(')', 500) \gexec
select 'select * from ' || repeat('(select * from ', 500) || '(values (1)) v' || repeat(') x', 500) \gexec
select 'select ' || repeat('abs(', 1000) || '-1' || repeat(')', 1000) \gexec
select 'select ' || repeat('case when false then 0 else ', 500) || '1' || repeat(' end', 500) \gexec
select 'select true' || repeat(' and true', 5000) \gexec
select 'with a0 as (select 1 x)' || string_agg(format(', a%s as (select * from a%s)', g, g - 1), '' order by g) || ' select * from a400' from generate_series(1, 400) g \gexec
-- Prepared, explained, in a cursor, in PL/pgSQL.
select 'prepare p as select 1' || repeat('+1', 2000) \gexec
execute p;
execute p;
deallocate p;
begin;
select 'declare c cursor for select 1' || repeat('+1', 2000) \gexec
fetch c;
commit;
do $$ declare n int; begin execute 'select 1' || repeat('+1', 2000) into n; raise notice '%', n; end $$;
-- Views of views.
begin;
create view v0 as select 1 as x;
do $$ begin for i in 1..150 loop execute format('create view v%s as select x from v%s', i, i - 1); end loop; end $$;
select * from v150;
rollback;
-- What is hostile is refused, and the session lives.
create function refused(text) returns boolean language plpgsql as $$
begin execute $1; return false; exception when statement_too_complex or syntax_error then return true; end $$;
select refused('select ' || repeat('(', 1000000) || '1' || repeat(')', 1000000));
select refused('select ' || repeat('(', 1000000));
select refused('select 1' || repeat('+1', 1000000));
select refused('select ' || repeat('(select ', 100000) || '1' || repeat(')', 100000));
select refused('select ' || repeat('case when ', 100000) || 'true');
select refused('select ' || repeat('not ', 1000000) || 'true');
drop function refused(text);
select 1;
