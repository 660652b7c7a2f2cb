-- Rows compared by their order with the rows of a query: ANY and ALL.
create schema g_row_order_subqueries;
set search_path = g_row_order_subqueries;
create table r (a int, b int);
insert into r values (1, 2), (3, 4), (3, null), (null, 1);
select x, y, (x, y) < any (select a, b from r) lt, (x, y) <= any (select a, b from r) le, (x, y) > any (select a, b from r) gt,
  (x, y) >= any (select a, b from r) ge
from (values (0, 0), (1, 2), (2, 9), (3, 4), (3, 5), (4, 0), (null, 1), (1, null)) v(x, y);
select x, y, (x, y) < all (select a, b from r where a is not null) lt, (x, y) <= all (select a, b from r where b is not null and a is not null) le,
  (x, y) > all (select a, b from r where b is not null and a is not null) gt, (x, y) >= all (select a, b from r where a is not null) ge
from (values (0, 0), (1, 2), (2, 9), (3, 4), (3, 5), (4, 0), (null, 1), (1, null)) v(x, y);
select (1, 2) < all (select a, b from r where false), (1, 2) < any (select a, b from r where false);
select * from r o where (a, b) <= any (select i.a, i.b from r i where i.a > o.a) order by a, b;
select (1, 'b'::text, 2.5) < any (values (1::bigint, 'b'::varchar, 2.6), (0, 'z', 9));
select (1, 2) ~ any (select a, b from r);
select ('a', 'b') ~ any (select a::text, b::text from r);
select (1, 2, 3) < any (select a, b from r);
create view v as select (a, b) <> all (values (1, 2), (3, 4)) c1, (a, b) <= any (values (1, 2), (3, 4)) c2, (a, b) > all (select 1, 2) c3, (a, b) in (select 1, 2) c4 from r;
select pg_get_viewdef('v'), pg_get_viewdef('v', true);
select * from v;
set client_min_messages = warning;
drop schema g_row_order_subqueries cascade;
