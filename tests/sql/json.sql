-- The types json and jsonb: input and its errors, output, order, casts, columns.

select '{"a":1, "b" : [1,2, {"c":null}], "a":2}'::json, '{"a":1, "b" : [1,2, {"c":null}], "a":2}'::jsonb;
select '  [ ]  '::json, '  [ ]  '::jsonb, '"x"'::json, 'null'::jsonb, 'true'::jsonb, '1.50e2'::json, '1.50e2'::jsonb, '-0'::jsonb;
select '{"aa":1, "b":2, "":3, "ab":4}'::jsonb;
select '"\u00e4\ud83d\ude00 \/ \b\f\n\r\t \" \\ \u0001"'::jsonb, '"\u00e4\u0000"'::json;
select '1e400000'::jsonb;
select '12345678901234567890.123456789012345678901234567890'::jsonb, '1e-30'::jsonb, '0.10'::jsonb;
select ''::json;
select '   '::jsonb;
select '{"a"'::json;
select '{"a":}'::json;
select '{"a":1'::json;
select '{"a":1,}'::json;
select '{a:1}'::json;
select '{"a" 1}'::json;
select '[1,'::json;
select '[1,]'::json;
select '[1 2]'::json;
select '[,]'::json;
select '{"a":1}}'::json;
select '1 2'::json;
select 'tru'::jsonb;
select 'truex'::jsonb;
select '01'::jsonb;
select '1.'::jsonb;
select '.5'::jsonb;
select '1e'::jsonb;
select '-'::jsonb;
select '+1'::jsonb;
select '1a'::jsonb;
select 'NaN'::jsonb;
select $$'a'$$::json;
select '"abc'::json;
select '"a\'::json;
select '"a\x"'::json;
select '"a\u12"'::json;
select '"a\u12x4"'::json;
select E'"a\nb"'::json;
select '"\ud83d"'::jsonb;
select '"\ude00"'::jsonb;
select '"\ud83d\ud83d"'::jsonb;
select '"\ud83dx"'::jsonb;
select '"\u0000"'::jsonb;
select E'{"a": 1,\n "b": 2,\n "c" 3}'::json;
select E'{"a": "a string that is longer than the place that is shown of it in an error", "b" 1}'::json;
select 'ä'::json;

-- order and equality
select a, b, a < b, a = b, a > b from (values ('[]'::jsonb, 'null'::jsonb), ('1', '"1"'), ('1', '1.0'), ('{}', '[]'), ('[1]', '[0,0]'),
  ('{"a":1}', '{"b":0}'), ('{"a":1,"b":1}', '{"c":0}'), ('true', 'false'), ('[]', '[null]'), ('[[]]', '[null]')) v(a, b);
select j from (values ('[]'::jsonb), ('null'), ('"a"'), ('"B"'), ('2'), ('10'), ('-1'), ('true'), ('false'), ('[1]'), ('[2,1]'), ('{}'), ('{"a":1}'),
  ('{"a":0,"b":0}'), ('{"b":0}'), ('[[]]'), ('[{}]')) v(j) order by j;
select distinct j from (values ('1'::jsonb), ('1.0'), ('{"a":1,"b":2}'), ('{"b":2,"a":1}')) v(j) order by j;
select max(j::text), count(distinct j) from (values ('1'::jsonb), ('1.0')) v(j);
select '1'::json = '1'::json;
select j from (values ('1'::json)) v(j) order by j;
select j from (values ('1'::json)) v(j) group by j;
select distinct j from (values ('1'::json)) v(j);
select '1'::json union select '2';
select '1'::json union all select '2';
select count(distinct j) from (values ('1'::json)) v(j);

-- casts
select '1.6'::jsonb::int, '1.6'::jsonb::numeric, '3'::jsonb::int8, '3'::jsonb::int2, '3.5'::jsonb::float8, '3.5'::jsonb::float4, 'true'::jsonb::bool;
select '"1"'::jsonb::int;
select 'null'::jsonb::bool;
select '[]'::jsonb::numeric;
select '{}'::jsonb::int8;
select 'true'::jsonb::float8;
select '1'::jsonb::bool;
select '300000'::jsonb::int2;
select '{"a" : 1}'::json::jsonb, '{"a" : 1}'::jsonb::json, '{"a" : 1}'::jsonb::text, '{"a" : 1}'::text::json, cast('{"a" : 1}' as varchar)::jsonb;
select '{}'::text::jsonb || '{"a":1}';
select array['1'::jsonb, '{"a": "b c"}'], '{"{\"a\": 1}",null}'::jsonb[], ('{"1","[2]"}'::jsonb[])[2];
select pg_typeof('1'::json), pg_typeof('1'::jsonb), pg_typeof('{1}'::jsonb[]), '1'::jsonb is null;
select case when true then '1'::jsonb else '2' end, coalesce(null, '{}'::jsonb), nullif('1'::jsonb, '1.0'), greatest('1'::jsonb, '"a"');

-- columns
create table documents (id int primary key, j json, b jsonb not null default '{}', t jsonb[]);
insert into documents values (1, '{"x": 1}', '{"name": "one", "tags": ["a", "b"], "n": {"deep": [1, 2, 3]}}', '{1,"\"a\""}'), (2, null, '[1, "two", null]', null);
insert into documents (id) values (3);
insert into documents values (4, '{', '{}');
insert into documents values (4, '1', null);
select * from documents order by id;
update documents set b = b || '{"more": true}', j = '[1,  2]' where id = 1;
select id, j, b from documents where b = '{"n": {"deep": [1, 2, 3]}, "name": "one", "tags": ["a", "b"], "more": true}';
create unique index documents_b on documents (b);
insert into documents values (5, null, '[1, "two",   null]');
insert into documents values (5, null, '[1.0, "two"]') on conflict (b) do nothing;
select id from documents where b = '[1.00, "two"]';
select id, b from documents order by b;
create index on documents (j);
alter table documents add column c json default '{"d":  1}';
select id, c from documents order by id;
alter table documents alter column c type jsonb using c::jsonb;
select id, c from documents order by id;
alter table documents add check (jsonb_typeof(b) in ('object', 'array'));
insert into documents values (6, null, '1');
copy (select id, j, b from documents order by id) to stdout;
copy documents (id, j, b) from stdin;
7	{"a": "x\\ny"}	{"a": "x\\ty"}
8	\N	[]
\.
select id, j, b from documents where id > 6 order by id;
copy documents (id, b) from stdin;
9	{"a"}
\.
prepare find (jsonb) as select id from documents where b @> $1 order by id;
execute find ('{"name": "one"}');
execute find ('{}');
select column_name, data_type, udt_name from information_schema.columns where table_name = 'documents' order by ordinal_position;
select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'documents'::regclass and attnum > 0 order by attnum;
drop table documents;
select oid, typname, typlen, typtype, typcategory, typarray, typelem, typinput, typoutput, typreceive, typsend, typstorage from pg_type where typname in ('json', 'jsonb', '_json', '_jsonb') order by oid;
