-- What gives no rows is no query of a cursor, and PL/pgSQL says what it is.
create table cu (id int);
do $$ declare c refcursor; begin open c for insert into cu values (1); end $$;
do $$ declare c refcursor; begin open c for with one as (select 5 as id) insert into cu select id from one; end $$;
do $$ declare c cursor for delete from cu; begin open c; end $$;
do $$ declare c refcursor; begin open c for execute 'update cu set id = 1'; end $$;
do $$ declare c refcursor; begin open c for execute 'create table cv (a int)'; end $$;
do $$ declare c refcursor; begin open c for create table cv (a int); end $$;
do $$ declare c refcursor; begin open c for execute 'select 1; select 2'; end $$;
do $$ declare r record; begin for r in delete from cu loop end loop; end $$;
do $$ declare r record; begin for r in execute 'delete from cu' loop end loop; end $$;
create function f() returns setof int language plpgsql as $$ begin return query delete from cu; end $$;
select f();
drop function f();
drop table cu;
