-- The options of COPY in both spellings, judged in PostgreSQL's order.
create table t (a int, b text, c text);
insert into t values (1, 'one', 'x'), (2, null, 'y,z');

copy t to stdout with delimiter as ':' null as 'nothing' encoding 'sql_ascii';
copy t to stdout csv force quote b, c;
copy t to stdout with csv force quote *;
copy t (a, b) to stdout csv header quote '''' escape '\';
copy t to stdout using delimiters '|';
copy t to stdout (format csv, header on, force_quote (b), null '-');
copy t to stdout (header false, delimiter ';');
copy (select a from t) to stdout with;

-- Twice is too often.
copy t from stdin (format csv, format csv);
copy t from stdin (freeze off, freeze on);
copy t from stdin (delimiter ',', delimiter ',');
copy t from stdin (null ' ', null ' ');
copy t from stdin (header off, header on);
copy t from stdin (quote ':', quote ':');
copy t from stdin (escape ':', escape ':');
copy t from stdin (force_quote (a), force_quote *);
copy t from stdin (force_not_null (a), force_not_null (b));
copy t from stdin (force_null (a), force_null (b));
copy t from stdin (encoding 'sql_ascii', encoding 'sql_ascii');

-- What does not go together.
copy t to stdout (format binary, delimiter ',');
copy t to stdout (format binary, null 'x');
copy t to stdout (format binary, header);
copy t to stdout (format xyz);
copy t to stdout (strange 1);
copy t to stdout (delimiter 'ab');
copy t to stdout (delimiter E'\n');
copy t to stdout (delimiter 'a');
copy t to stdout (delimiter 'A');
copy t to stdout (null E'\r');
copy t to stdout (quote '"');
copy t to stdout (format csv, quote 'ab');
copy t to stdout (format csv, delimiter '"');
copy t to stdout (escape '"');
copy t to stdout (format csv, escape 'ab');
copy t to stdout (force_quote (a));
copy t from stdin (format csv, force_quote (a));
copy t to stdout (force_not_null (a));
copy t to stdout (format csv, force_not_null (a));
copy t to stdout (force_null (a));
copy t to stdout (format csv, force_null (a));
copy t to stdout (delimiter ',', null 'a,b');
copy t to stdout (format csv, null 'a"b');
copy t to stdout (header match);
copy t to stdout (header maybe);
copy t to stdout (freeze maybe);
copy t to stdout (encoding 'nowhere');
copy t to stdout (force_quote a);
copy t to stdout (delimiter);
copy t to stdout csv strange;
copy t to stdout delimiter;
copy t from stdin (format csv, force_not_null (d));
copy t (a) from stdin (format csv, force_not_null (b));
copy t (a) from stdin (format csv, force_null (b));

-- A header that is to name the columns.
copy t from stdin (header match);
a	b	c
3	three	z
\.
copy t from stdin (header match);
a	b
4	four
\.
copy t from stdin (format csv, header match);
a,b,d
5,five,z
\.
copy t from stdin (header match);
a	\N	c
\.
copy t (c, a) from stdin (header match);
c	a
c	6
\.
select * from t order by a;

-- FREEZE is for a table that was made or emptied in the same subtransaction.
copy t from stdin freeze;
7	seven	z
\.
begin;
truncate t;
copy t from stdin csv freeze;
8,eight,z
\.
savepoint s;
copy t from stdin csv freeze;
9,nine,z
\.
rollback to s;
truncate t;
copy t from stdin (freeze);
10	ten	z
\.
commit;
select * from t;
begin;
create table made (a int);
copy made from stdin freeze;
1
\.
commit;
table made;

create view v as select * from t;
copy v from stdin;
1	one	x
\.
select 'here';
drop view v;
drop table t, made;
