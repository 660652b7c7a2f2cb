-- Forms of PostgreSQL's grammar that are seldom written.
create table acc (a int, b text generated always as (a || ' sec') stored);
insert into acc values (3);
select * from acc* limit 1;
select x.a, y.a from acc* as x join acc * as y on x.a = y.a;
select extract(year from '2 years'::interval * a), a is distinct from a * a from acc;
select acc.a*2 as twice from acc;
create index on acc ((a || 'x'));
create index on acc ((now()::text || 'x'));
select '0xff'::xid, '010'::xid, '42'::xid;
begin;
set local role to none;
rollback;
set custom.x = '1';
reset custom.x;
show custom.x;
drop table acc;
