-- INCLUDE of indexes and keys, NULLS NOT DISTINCT, ADD CONSTRAINT ... USING INDEX, forms of ALTER INDEX, LIKE.
\set VERBOSITY verbose
create schema s; set search_path = s;
create table a (x int, y int, z text, primary key (x) include (y), unique (y) include (z, x), constraint un unique nulls not distinct (z));
\d a
create unique index ai on a (x, y desc) include (z) where x > 3;
create index ai2 on a (lower(z)) include (x);
create index ai5 on a (x) include (nope);
create index ai6 on a using btree (x) include (z) with (fillfactor=70);
select pg_get_indexdef(indexrelid), indnkeyatts, indnatts, indkey, indnullsnotdistinct, indclass, indoption, indcollation from pg_index where indrelid = 'a'::regclass order by indexrelid;
select conname, pg_get_constraintdef(oid), conkey from pg_constraint where conrelid = 'a'::regclass order by oid;
insert into a values (1, 1, 'a'), (2, 2, null);
insert into a values (3, 3, null);
insert into a values (3, 3, null) on conflict (z) do update set x = 30 returning *;
insert into a values (3, 3, null) on conflict on constraint un do nothing;
insert into a values (1, 9, 'z');
insert into a values (9, 1, 'z');
insert into a values (9, 1, 'z') on conflict (x) do nothing;
insert into a values (9, 1, 'z') on conflict (y, z) do nothing;
set enable_seqscan = off;
select x, y from a where x = 1;
alter table a add constraint u2 unique (x, y) include (z);
alter table a drop constraint a_pkey;
alter table a add primary key (x) include (y, z);
alter table a add unique nulls not distinct (y);
alter table a add unique nulls distinct (y, x);
create unique index nn on a (z, y) nulls not distinct;
create unique index nn2 on a (z, y) nulls not distinct where y > 3;
create unique index nn3 on a (z, y) nulls distinct;
create index nn4 on a (z, y) nulls not distinct;
\d a
alter table a add constraint un2 unique using index nn;
alter table a add constraint un3 unique using index nn2;
alter table a add constraint un4 unique using index ai2;
alter table a add constraint un5 unique using index nn4;
create unique index pk1 on a (x, y) include (z);
alter table a add constraint pk1x primary key using index pk1;
alter table a drop constraint a_pkey;
alter table a add constraint pk1x primary key using index pk1;
\d a
create unique index d1 on a (x desc);
alter table a add constraint d1 unique using index d1;
create unique index d2 on a (x);
alter table a add constraint d2 unique using index d2 deferrable initially deferred;
alter table a add unique using index d1;
create table b (like a including all);
\d b
create table b2 (like a including indexes);
\d b2
alter table a drop column z;
\d a
create table c (x int unique nulls not distinct, y int unique nulls distinct, z int unique include (x));
create table c (x int unique nulls not distinct, y int unique nulls distinct);
\d c
insert into c values (null, null);
insert into c values (null, null);
insert into c values (null, null) on conflict (x) do nothing;
insert into c values (null, 1), (null, 2) on conflict (x) do update set y = excluded.y;
create table c2 (x int primary key include (y), y int);
alter table c add column w int unique nulls not distinct;
-- ALTER INDEX forms
create index i1 on c (y);
alter index i1 rename to i2;
alter index if exists nope rename to i3;
alter index nope rename to i3;
alter index i2 set (fillfactor = 70);
alter index i2 reset (fillfactor);
alter index i2 set (nope = 3);
alter index i2 alter column 1 set statistics 100;
alter index i2 alter 1 set statistics 100;
create index i3 on c ((x + 1));
alter index i3 alter column 1 set statistics 100;
alter index i3 alter column 2 set statistics 100;
alter index i3 set tablespace pg_default;
alter index i3 attach partition i2;
alter index i3 owner to postgres;
alter table i3 rename to i4;
alter table i4 set (fillfactor = 50);
select pg_get_indexdef('i4'::regclass);
drop schema s cascade;
