-- Subqueries of expressions: within one another, moved, copied, and made joins.
create table a (id int primary key, g int, v int);
create table b (id int primary key, a_id int, w int);
create table c (id int primary key, b_id int, z int);
insert into a select i, i % 3, i * 10 from generate_series(1, 9) i;
insert into b select i, 1 + i % 9, i % 5 from generate_series(1, 40) i;
insert into c select i, 1 + i % 40, i % 7 from generate_series(1, 150) i;
-- joins within joins
select id from a where exists (select from b where b.a_id = a.id and exists (select from c where c.b_id = b.id and c.z = 6)) order by id;
select id from a where exists (select from b where b.a_id = a.id and not exists (select from c where c.b_id = b.id and c.z > b.w)) order by id;
select id from a where id in (select a_id from b where id in (select b_id from c where z = a.g)) order by id;
select id from a where not exists (select from b where b.a_id = a.id and b.w in (select z from c where c.id < a.v)) order by id;
-- a subquery that looks two levels out stays one
select id from a where exists (select from b where b.a_id = a.id and exists (select from c where c.b_id = b.id and c.z = a.g + 1)) order by id;
-- beside one another, under OR, NOT and CASE
select id from a where exists (select from b where a_id = a.id and w = 0) or exists (select from c where z = a.id) order by id;
select id from a where not (id in (select a_id from b where w > 2)) order by id;
select id, case when exists (select from b where a_id = a.id and w = a.g) then 'yes' else (select min(z)::text from c where b_id = a.id) end from a order by id;
-- in queries in FROM, in LATERAL, in ON
select s.id, s.n from (select id, (select count(*) from b where a_id = a.id) n from a where g in (select w from b)) s where s.n > 4 order by 1;
select a.id, l.top from a, lateral (select max(w) top from b where a_id = a.id and exists (select from c where b_id = b.id and z >= a.g)) l order by 1;
select a.id, b.id from a left join b on b.a_id = a.id and exists (select from c where b_id = b.id and z = a.g) where a.id < 4 order by 1, 2;
select count(*) from a join b on b.a_id = a.id and b.w = (select max(w) from b b2 where b2.a_id = a.id);
-- correlated aggregates, with one another and under joins
select id from b where w > (select avg(w) from b b2 where b2.a_id = b.a_id) and id in (select b_id from c where z = 3) order by id;
select b.id from b where w = (select max(w) from b b2 where b2.a_id = b.a_id) and exists (select from c where c.b_id = b.id and c.z = (select min(z) from c c2 where c2.b_id = c.b_id)) order by 1;
select id from a where exists (select from b where a_id = a.id and w < (select avg(z) from c where b_id = b.id)) order by 1;
-- grouped by, ordered by, and in what is grouped
select (select g + 1) k, count(*) from a group by 1 order by 1;
select g, (select sum(w) from b where a_id = any (array_agg(a.id))) from a group by g order by (select count(*) from c where z = a.g), g;
select g from a group by g having sum(v) > (select avg(v) from a a2 where a2.g <> a.g) order by g;
select distinct (select max(w) from b where a_id = a.id) from a order by 1;
-- the same in WITH, which a subquery reads in turn
with t as (select a_id, max(w) m from b group by a_id) select id from a where v > 20 and (select m from t where a_id = a.id) > all (select z from c where id < 4) order by id;
with recursive r(n) as (select 1 union all select n + 1 from r where n < (select max(g) + 3 from a)) select n, (select count(*) from a where g = n) from r order by n;
select id, (with t as (select w from b where a_id = a.id) select count(*) from t where w > (select avg(w) from t)) from a order by id;
-- unions, and order around them
select id from a where exists (select 1 from b where a_id = a.id and w = 4 union select 1 from c where z = a.id) order by id;
select (select w from b where a_id = a.id union select z from c where b_id = a.id order by 1 desc limit 1) from a order by id;
select id from a where id in (select a_id from b order by w, id limit 5) order by id;
-- rows
select id from a where (id, g) in (select a_id, w from b) order by id;
select id from a where (g, v) = (select w, 10 * a_id from b where b.id = a.id) order by id;
select id from a where id > any (select a_id from b where w = a.g) order by id;
select id from a where id = any (select a_id from b where w = 4) order by id;
-- changes
begin;
update a set (g, v) = (select count(*), max(w) from b where a_id = a.id), id = id + (select max(id) from a) where exists (select from c where c.z = a.g and c.b_id in (select id from b where a_id = a.id)) returning id, (select count(*) from b where a_id = a.id - 9), g, v;
delete from b where w < (select avg(w) from b b2 where b2.a_id = b.a_id) returning id, exists (select from c where b_id = b.id);
insert into a values ((select max(id) + 1 from a), (select count(*) from b), 0) on conflict (id) do update set v = (select max(id) from c) returning (select sum(v) from a), id, g;
insert into a select id + 100, (select count(*) from b where a_id = a.id), v from a where id in (select a_id from b) on conflict (id) do nothing returning id, g;
merge into a using (select distinct a_id from b) s on a.id = s.a_id and exists (select from c where z = a.g) when matched and (select count(*) from b where a_id = s.a_id) > 2 then update set v = (select max(w) from b where a_id = s.a_id) when matched then do nothing when not matched then insert values (s.a_id + (select 1000), 0, (select min(z) from c));
select count(*), sum(id), sum(g), sum(v) from a;
with gone as (delete from c where b_id in (select id from b where w > (select avg(w) from b)) returning b_id) select count(*), (select max(b_id) from gone where b_id < (select max(id) from b)) from gone;
rollback;
-- functions of one query, and views
create function w_of(int) returns bigint language sql stable as $$ select sum(w) from b where a_id = $1 and exists (select from c where b_id = b.id) $$;
create function ids(int) returns setof int language sql stable as $$ select id from b where a_id = $1 and w in (select z from c where b_id = b.id) $$;
create view busy as select a.*, (select count(*) from b where a_id = a.id) n from a where exists (select from b where a_id = a.id and w = 0);
select id, w_of(id) from a where w_of(id) > (select avg(w_of(id)) from a) order by id;
select a.id, i from a, ids(a.id) i order by 1, 2;
select a.id, array(select ids(a.id) order by 1) from a order by 1;
select * from busy where n = (select max(n) from busy) order by id;
update busy set v = 0 where id in (select a_id from b where w = 1) returning id, v;
update a set v = w_of(id) where v = (select max(n) from busy b where b.id < a.id) returning *;
drop view busy;
drop function w_of(int), ids(int);
-- one subquery in several places: a view's column that is read and asked, a call that is made twice
create view few as select id, exists (select distinct b.w from b where b.a_id = a.id and b.w > a.g) e, exists (select 1 from b where b.a_id = a.id order by b.w) o, id in (select a_id from b where w = a.g) i from a;
select id, e from few where e order by id;
select id from few where o and not i order by id;
select id, i, e from few where i and (e or i) order by id;
create function has(int) returns boolean language sql stable as $$ select exists (select distinct w from b where a_id = $1 order by w) $$;
select id, has(id) from a where has(id) order by id;
drop function has(int);
-- views under outer joins and in changes
create view asked as select * from a where exists (select from b where b.a_id = a.id and b.w = a.g) and v < (select sum(z) from c where b_id = a.id) * 100;
select x.id, asked.id from a x left join asked on asked.id = x.id + 1 order by 1;
select x.id, asked.id from asked left join a x on asked.id = x.id + 1 order by 1;
begin;
with u as (update b set w = asked.g from asked where asked.id = b.a_id and b.id < 20 returning b.id, b.w) select * from u order by id;
with d as (delete from c using asked where asked.id = c.b_id and c.z = 1 returning c.id) select * from d order by id;
rollback;
-- what an aggregate of users does for each row
create sequence s;
create function next_of(bigint, int) returns bigint language plpgsql as $$ begin return nextval('s'); end $$;
create aggregate next_agg(int) (sfunc = next_of, stype = bigint);
create function one() returns bigint language sql as 'select next_agg(1)';
select one() from generate_series(1, 3);
drop function one();
drop aggregate next_agg(int);
drop function next_of(bigint, int);
drop sequence s;
drop view few, asked;
-- what is asked of a row is asked before it is joined
create sequence s;
select count(*) from a where nextval('s') > 0 and exists (select from b where b.a_id = a.id and b.w > 3);
select last_value from s;
select count(*) from a where not exists (select from b where b.a_id = a.id and b.w > 3) and nextval('s') > 0;
select last_value from s;
drop sequence s;
create function fails_at(int, int) returns boolean language plpgsql stable as $$ begin if $1 = $2 then raise 'met %', $1; end if; return true; end $$;
select id from a where fails_at(id, 2) and exists (select from c where c.id = a.id + 200);
select id from a where (select 12 / (id - 2)) < 100 and exists (select from c where c.id = a.id + 200);
drop function fails_at(int, int);
update a set (g, v) = (select max(a.id), 1);
drop table a, b, c;
