-- COLLATION FOR.
select collation for ('foo'), collation for ('foo'::text), collation for ('a'::varchar(3)), collation for ('a'::char);
select collation for (null), collation for ('a' || 'b' collate "POSIX"), pg_collation_for(array['a'::text]), collation for (upper('x' collate "C"));
select collation for (relname) from pg_class limit 1;
select collation for (1); select collation for (now()); select collation for ('{1}'::int[]);
create table colls (a text, b text collate "C", c int); select collation for (a), collation for (a || 'x') from (select * from colls union all select '1', '2', 3) q; drop table colls;
