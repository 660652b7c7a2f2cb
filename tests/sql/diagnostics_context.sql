-- GET DIAGNOSTICS ... PG_CONTEXT tells of all that is being run.
create function ctx1() returns text language plpgsql as $$
declare c text;
begin
  get diagnostics c = pg_context;
  return c;
end $$;
create function ctx2() returns text language plpgsql as $$
begin
  return ctx1();
end $$;
create function ctx3(n int) returns text language plpgsql as $$
declare c text;
begin
  c := ctx1();
  if n > 0 then
    raise notice '%', c;
    return ctx3(n - 1);
  end if;
  perform 1;
  select ctx2() into c;
  return c;
end $$;
create function ctx_sql() returns text language sql volatile as $$ select 1; select ctx2() $$;
create function ctx4() returns text language plpgsql as $$
declare c text; r record;
begin
  begin
    perform 1 / 0;
  exception when others then
    c := ctx1();
    raise notice 'in handler: %', c;
  end;
  for r in select ctx1() as x loop raise notice 'in loop: %', r.x; end loop;
  c := ctx_sql();
  return c;
end $$;
create procedure ctx_p(inout c text) language plpgsql as $$
begin
  c := ctx1();
end $$;
select ctx1(); select ctx2(); select ctx3(1); select ctx4(); call ctx_p(null);
do $$
begin
  raise notice '%', ctx2();
end $$;
create table ctx_t (a text); create function ctx_tg() returns trigger language plpgsql as $$
begin
  new.a := ctx1();
  return new;
end $$; create trigger tg before insert on ctx_t for each row execute function ctx_tg(); insert into ctx_t values ('x') returning a;
create function ctx5() returns void language plpgsql as $$
begin
  insert into ctx_t values ('y');
  raise notice '%', (select a from ctx_t where a like '%ctx5%');
end $$; select ctx5();
select ctx2();
drop table ctx_t; drop function ctx1, ctx2, ctx3, ctx4, ctx5, ctx_sql, ctx_tg; drop procedure ctx_p;
