-- System columns: xmin, xmax, cmin, cmax, ctid, tableoid; and their types.
create table sc (id int primary key, v text);
insert into sc values (1, 'a'), (2, 'b');
-- Insert or update?
insert into sc values (1, 'c') on conflict (id) do update set v = excluded.v returning id, xmax <> 0 as updated, (xmax = 0) as inserted;
insert into sc values (3, 'c') on conflict (id) do update set v = excluded.v returning id, xmax <> 0 as updated, (xmax = 0) as inserted;
insert into sc values (2, 'x'), (4, 'y') on conflict (id) do update set v = excluded.v returning id, v, xmax::text::bigint > 0 as updated;
insert into sc values (3, 'z') on conflict (id) do update set v = sc.v || excluded.v where sc.v = 'c' returning id, v, xmax <> 0 as updated;
insert into sc values (3, 'z') on conflict do nothing returning xmax;
-- Types.
select pg_typeof(xmin), pg_typeof(xmax), pg_typeof(cmin), pg_typeof(cmax), pg_typeof(ctid), pg_typeof(tableoid) from sc where id = 1;
select tableoid::regclass, xmax from sc where id = 4;
-- A version's writer stays, and is another with each change.
select xmin as before from sc where id = 1 \gset
select xmin = :'before' as same, xmin::text = :'before' as same_text from sc where id = 1;
update sc set v = 'd' where id = 1 and xmin = :'before' returning v, xmin = :'before' as same;
update sc set v = 'e' where id = 1 and xmin = :'before' returning v;
select v, xmin <> :'before' as changed, xmin = (select xmin from sc where id = 3) as as_the_other from sc where id = 1;
-- What RETURNING tells is what is read afterwards.
insert into sc values (10, 'n') returning xmin as told \gset
select xmin = :'told' as same from sc where id = 10;
update sc set v = 'o' where id = 10 and xmin = :'told' returning xmin as told \gset
select v, xmin = :'told' as same from sc where id = 10;
update sc set v = 'p' where id = 10 returning xmin as told \gset
delete from sc where id = 10 and xmin = :'told' returning v, xmin = :'told' as same, xmax <> 0 as gone;
-- In a transaction: all that it has written is its own.
begin;
insert into sc values (11, 'a') returning xmin as told \gset
insert into sc values (12, 'b');
update sc set v = v || '!' where id = 2;
select id, xmin = :'told' as own from sc order by id;
select count(distinct xmin::text) > 1 as others from sc;
select xmin::text::bigint = txid_current() % 4294967296 as named from sc where id = 12;
select (pg_current_xact_id()::xid)::text = :'told' as named, pg_current_xact_id_if_assigned() = pg_current_xact_id() as assigned;
select pg_xact_status(pg_current_xact_id());
select cmin::text::int > 0 as later, cmin = cmax as both from sc where id = 12;
savepoint s;
update sc set v = 'gone' where id = 11;
rollback to s;
select v from sc where xmin = :'told' order by id;
commit;
select id from sc where xmin = :'told' order by id;
begin;
select txid_current() as lost \gset
insert into sc values (13, 'x');
rollback;
select txid_status(:lost);
-- ctid names a row.
select count(*), count(distinct ctid), bool_and(ctid = ctid) from sc;
select a.id from sc a join sc b on a.ctid = b.ctid order by 1;
update sc set v = 'by ctid' where ctid = (select ctid from sc where id = 12) returning id;
select v from sc where ctid in (select ctid from sc where id in (11, 12)) order by id;
delete from sc where ctid = any (array(select ctid from sc where id > 10 order by id limit 1)) returning id;
create table dup (k int, v text);
insert into dup values (1, 'a'), (1, 'b'), (2, 'c'), (2, 'd'), (3, 'e');
delete from dup a using dup b where a.k = b.k and a.ctid > b.ctid returning a.k, a.v;
select * from dup order by k;
insert into dup values (1, 'z') returning ctid is not null as told;
delete from dup where ctid not in (select min(ctid) from dup group by k) returning v;
select k from dup where ctid > '(0,0)' and ctid < '(4294967295,65535)' order by k;
select k, row_number() over (order by ctid) from dup;
-- With joins, groups, subqueries and locks.
select s.id, d.ctid is null as none, d.xmin is null as no_xmin from sc s left join dup d on d.k = s.id where s.id in (3, 4) order by 1;
select xmin = xmin, count(*) from dup group by 1;
select count(*) from (select xmin, ctid, v from dup) q where q.xmin = q.xmin;
select (select d.ctid = e.ctid) from dup d join dup e using (k) order by k;
select l.same from dup d, lateral (select d.ctid = e.ctid as same from dup e where e.k = d.k) l;
select k, xmax = 0 as free from dup where xmin <> 0 order by k for update;
select xmin from dup d, sc s;
select ctid from dup d where d.xmin = s.xmin;
with w as (insert into dup values (7, 'w') returning k, xmin, xmax) select k, xmin <> 0, xmax from w;
create view seen as select k, xmin as writer, ctid as place from dup;
select count(writer), count(distinct place) from seen;
select xmin from seen;
\d+ seen
create table again as select ctid as place, xmin as writer from dup limit 0;
\d again
merge into dup d using (values (7, 'm')) n (k, v) on d.k = n.k when matched and d.xmin <> 0 and d.ctid is not null then update set v = n.v;
merge into dup d using (values (7, 'm')) n (k, v) on d.k = n.k and d.xmin <> 0 and d.ctid is not null when matched then update set v = d.xmax::text || n.v;
select v from dup where k = 7;
create table bad (a int check (xmin <> 0));
create table bad (a int, b text generated always as (ctid::text) stored);
-- Catalogs have them too.
select count(*) > 0 as all from pg_proc where xmin is not null;
select c.xmin is not null, c.xmax, c.oid = 'sc'::regclass as found from pg_class c where c.relname = 'sc';
-- tid, xid, xid8 and cid.
select '(1,2)'::tid, '( 0, 7)'::tid, '(4294967295,65535)'::tid;
select '(1)'::tid;
select '(1,65536)'::tid;
select '(1,2)'::tid < '(1,10)'::tid, '(2,1)'::tid > '(1,10)'::tid, '(1,2)'::tid = '(1,2)', '(1,2)'::tid <> '(1,3)'::tid, '(1,2)'::tid <= '(1,2)', '(1,2)'::tid >= '(1,3)';
select max(t), min(t) from unnest('{"(1,2)","(0,9)","(10,1)"}'::tid[]) t;
select t from unnest('{"(1,2)","(0,9)","(10,1)"}'::tid[]) t order by t desc;
create table kept (t tid, x xid, e xid8, c cid);
insert into kept values ('(3,4)', '7', '5000000000', '2');
select *, x = 7 as seven, x <> 7 as other, e > '4999999999' as more, e::xid from kept;
select x < 8 from kept;
create index on kept (t);
create index on kept (e);
select t from kept where t = '(3,4)';
select max(e), min(e) from kept;
select '4'::xid8::text, '1'::cid = '1'::cid;
drop view seen;
drop table sc, dup, kept, again;
