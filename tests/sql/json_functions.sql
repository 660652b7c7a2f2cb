-- Operators, functions and aggregates of json and jsonb.

-- members, elements, paths
select j -> 'a', j ->> 'a', j -> 'b', j ->> 'b', j -> 'c' -> 1, j -> 'c' ->> -1, j -> 'x', j -> 0, j #> '{c,1,d}', j #>> '{c,1,d}', j #>> '{c,-2}', j #> '{}', j #> '{c,x}'
  from (select '{"a": "text \"q\"", "b": null, "c": [10, {"d": [ 1,2 ]}], "a": "last"}'::json j) v;
select j -> 'a', j ->> 'a', j -> 'b', j ->> 'b', j -> 'c' -> 1, j -> 'c' ->> -1, j -> 'x', j -> 0, j #> '{c,1,d}', j #>> '{c,1,d}', j #>> '{c,-2}', j #> '{}', j #> '{c,x}'
  from (select '{"a": "text \"q\"", "b": null, "c": [10, {"d": [ 1,2 ]}], "a": "last"}'::jsonb j) v;
select '[1,2,3]'::json -> 0, '[1,2,3]'::jsonb -> -1, '[1,2,3]'::jsonb -> 3, '1'::jsonb -> 0, '1'::json -> 'a', '"x"'::jsonb #>> '{}', '"x"'::json #>> '{}', 'null'::jsonb #>> '{}';
select '{"a":{"b":"c"}}'::jsonb #> array['a',null], '{"a":[0,1]}'::json #>> array['a','01'], '{"a":[0,1]}'::jsonb #>> array['a',' 1'];
select '{"a":"\u0000"}'::json -> 'a';
select json_extract_path('{"a":{"b":[1,2]}}', 'a', 'b', '1'), json_extract_path_text('{"a":{"b":"x"}}', 'a', 'b'), jsonb_extract_path('{"a":{"b":[1,2]}}', 'a', 'b'), jsonb_extract_path_text('{"a":{"b":"x"}}', 'a', 'b');

select j['a'], j['b'][1]['c'], j['b'][-1], j['x'], j['a']['y'], ('[1,2]'::jsonb)[0], j['b'][null], j['b']['0'] from (select '{"a": "x", "b": [1, {"c": 2}], "0": 3}'::jsonb j) v;
select j[0], j[1.5] from (select '{"0": 3}'::jsonb j) v;

-- containment and existence
select '{"a":1,"b":[1,2,{"c":3}]}'::jsonb @> '{"b":[{"c":3},1]}', '{"a":1}'::jsonb @> '{"a":2}', '[1,2,[3]]'::jsonb @> '[[3],1,1]', '[1,2]'::jsonb @> '1', '1'::jsonb @> '[1]', '{"a":{}}'::jsonb @> '{"a":{}}',
  '{"a":[]}'::jsonb @> '{}', '[]'::jsonb <@ '[1]', '{}'::jsonb @> '[]', '[[1,2]]'::jsonb @> '[1]', '"a"'::jsonb @> '"a"', '1'::jsonb <@ '[1.0]';
select '{"a":1,"b":null}'::jsonb ? 'b', '["a","b"]'::jsonb ? 'b', '"a"'::jsonb ? 'a', '[1]'::jsonb ? '1', '{"a":1}'::jsonb ?| array['x','a'], '{"a":1}'::jsonb ?& array['x','a'], '{"a":1}'::jsonb ?& array[null,'a'], '{}'::jsonb ?| '{}', '{}'::jsonb ?& '{}';

-- change
select '{"a":1}'::jsonb || '{"a":2,"b":3}', '[1]'::jsonb || '[2]', '[1]'::jsonb || '2', '1'::jsonb || '[2]', '1'::jsonb || '2', '{"a":1}'::jsonb || '[1]', '[1]'::jsonb || '{"a":1}', '{}'::jsonb || '[]', '{"a":1}'::jsonb || '1';
select '{"a":1,"b":2}'::jsonb - 'a', '["a","b","a"]'::jsonb - 'a', '[1,2,3]'::jsonb - 1, '[1,2,3]'::jsonb - -1, '[1,2,3]'::jsonb - 5, '{"a":1,"b":2,"c":3}'::jsonb - array['a','c'], '["a",1]'::jsonb - array['a'];
select '1'::jsonb - 'a';
select '1'::jsonb - 1;
select '{}'::jsonb - 1;
select '{"a":{"b":[1,2]}}'::jsonb #- '{a,b,0}', '{"a":1}'::jsonb #- '{x}', '[1,[2,3]]'::jsonb #- '{1,-1}', '{"a":1}'::jsonb #- '{}';
select '1'::jsonb #- '{a}';
select jsonb_set('{"a":[1,2]}', '{a,1}', '"x"'), jsonb_set('{"a":[1,2]}', '{a,9}', '"x"'), jsonb_set('{"a":[1,2]}', '{a,-9}', '"x"'), jsonb_set('{"a":[1,2]}', '{b}', '"x"'), jsonb_set('{"a":[1,2]}', '{b}', '"x"', false),
  jsonb_set('{"a":[1,2]}', '{b,c}', '"x"'), jsonb_set('{}', '{a}', '1'), jsonb_set('[]', '{0}', '1'), jsonb_set('{"a":1}', '{a,b}', '2'), jsonb_set('{"a":1}', '{}', '2'), jsonb_set('{"a":{"b":{"c":1}}}', '{a,b,c}', '{"d":2}');
select jsonb_set('1', '{a}', '1');
select jsonb_set('[1]', '{a}', '1');
select jsonb_set('{"a":1}', array[null], '1');
select jsonb_set('{"a":1}', '{a}', null), jsonb_set_lax('{"a":1}', '{a}', null), jsonb_set_lax('{"a":1}', '{a}', null, true, 'delete_key'), jsonb_set_lax('{"a":1}', '{a}', null, true, 'return_target'), jsonb_set_lax('{"a":1}', '{a}', '2');
select jsonb_set_lax('{"a":1}', '{a}', null, true, 'raise_exception');
select jsonb_set_lax('{"a":1}', '{a}', null, true, 'nothing');
select jsonb_insert('{"a":[0,1]}', '{a,1}', '"x"'), jsonb_insert('{"a":[0,1]}', '{a,1}', '"x"', true), jsonb_insert('{"a":[0,1]}', '{a,-1}', '"x"', true), jsonb_insert('{"a":[0,1]}', '{b}', '"x"'), jsonb_insert('{"a":[0,1]}', '{a,9}', '"x"');
select jsonb_insert('{"a":1}', '{a}', '2');
select json_strip_nulls('{"a":null, "b" : [1,null,{"c":null,"d":"x"}]}'), jsonb_strip_nulls('{"a":null, "b" : [1,null,{"c":null,"d":"x"}]}'), jsonb_strip_nulls('null');
select jsonb_pretty('{"a":[1,{"b":"c"},[]],"d":{}, "e":null}');

-- kinds and rows
select json_typeof('{}'), json_typeof('[]'), json_typeof('"a"'), json_typeof('1'), json_typeof('true'), json_typeof('null'), jsonb_typeof('{}'), jsonb_typeof('1'), jsonb_typeof('false'), jsonb_typeof('null');
select json_array_length('[1,[2,3]]'), jsonb_array_length('[1,[2,3]]'), jsonb_array_length('[]');
select json_array_length('{}');
select jsonb_array_length('1');
select * from json_each('{"a":1,"b":"x","c":null,"a":[1, 2]}');
select * from jsonb_each('{"bb":1,"a":"x","c":null}');
select * from json_each_text('{"a":1,"b":"x","c":null}') as t(k, v);
select key, value from jsonb_each_text('{"a":{"x": 1},"b":"x","c":null}');
select jsonb_each('{"a":1}'), json_each_text('{"a":"x y"}');
select * from json_array_elements('[1,"a",null,{"b": 2}]');
select value, ordinality from jsonb_array_elements('[1,"a",null]') with ordinality;
select * from json_array_elements_text('[1,"a",null,{"b": 2}]') as e;
select e, e ->> 'n' from jsonb_array_elements('[{"n":1},{"n":"x"}]') e;
select x from jsonb_array_elements_text('["p","q"]') as t(x);
select jsonb_array_elements_text('["p",null]');
select * from json_object_keys('{"a":1,"b":2,"a":3}');
select k from jsonb_object_keys('{"bb":1,"a":2}') k;
select * from json_each('[1]');
select * from json_each('1');
select * from jsonb_each('[1]');
select * from jsonb_each_text('1');
select * from json_array_elements('{}');
select * from json_array_elements_text('1');
select * from jsonb_array_elements('{}');
select * from jsonb_array_elements('1');
select * from json_object_keys('[]');
select * from jsonb_object_keys('1');
select id, e.value from (values (1, '["a","b"]'::jsonb), (2, '[]'), (3, '["c"]')) v(id, j), jsonb_array_elements_text(v.j) e order by 1, 2;
select id, e from (values (1, '["a","b"]'::jsonb), (2, '[]')) v(id, j) left join lateral jsonb_array_elements_text(v.j) e on true order by 1, 2;

-- SQL values
select to_json(1), to_json('a"b'::text), to_json(null::int), to_json(true), to_json(1.50::numeric), to_json('NaN'::float8), to_json(1e20::float8), to_json(array[1,null,2]), to_json('{}'::json), to_json('{"a":1}'::jsonb);
select to_json('2020-02-03'::date), to_json('2020-02-03 04:05:06.789'::timestamp), to_json('2020-02-03 04:05:06+00'::timestamptz), to_json('04:05:06'::time), to_json('infinity'::timestamp), to_json('1 day'::interval), to_json('\x0102'::bytea), to_json('a1b2c3d4-0000-0000-0000-000000000000'::uuid), to_json('ab'::char(4));
set timezone to 'Asia/Kolkata';
select to_json('2020-02-03 04:05:06+00'::timestamptz), to_jsonb('2020-02-03 04:05:06+00'::timestamptz);
reset timezone;
select to_jsonb(1), to_jsonb('a"b'::text), to_jsonb(1.50::numeric), to_jsonb('NaN'::numeric), to_jsonb('-Infinity'::float8), to_jsonb(1.5e300::float8), to_jsonb(array['a',null]), to_jsonb('{"b":1, "a":2}'::json), to_jsonb('2020-02-03'::date), to_jsonb(array[true,false]);
select to_json(row(1,'a',null)), to_jsonb(row(1,'a',row(2,3))), row_to_json(row(1,'x')), row_to_json(row(1,array[1,2]), true), array_to_json(array[1,2,3]), array_to_json(array['a','b'], true), array_to_json('{}'::int[]);
select json_build_array(), json_build_array(1,'a',null,array[1,2],row(1,2),'{"x": 1}'::json), jsonb_build_array(), jsonb_build_array(1,'a',null,array[1,2],'{"x": 1}'::json);
select json_build_object(), json_build_object('a',1,'b',null,3,true,'d',json_build_object('e', 2)), jsonb_build_object('bb',1,'a',null,3,true), jsonb_build_object();
select json_build_object('a',1,'a',2), jsonb_build_object('a',1,'a',2), json_build_object(true, 1, '2020-02-03'::date, 2, 1.5, 3);
select json_build_object('a');
select json_build_object(null, 1);
select jsonb_build_object('a', 1, null, 1);
select json_build_object(array[1], 1);
select jsonb_build_object('{}'::json, 1);
select json_object('{a,1,b,"x y",c,null}'), json_object('{a,b}', '{1,null}'), jsonb_object('{a,1,b,null}'), jsonb_object('{a,b}', '{1,2}'), json_object('{}');
select json_object('{a}');
select json_object('{a}', '{1,2}');
select json_object('{null,1}');

-- rows of tables
create table items (id int primary key, name text, price numeric(8,2), at timestamp, tags text[], doc jsonb);
insert into items values (1, 'pen', 1.5, '2020-01-01 10:00', '{red,"dark blue"}', '{"k": [1, 2]}'), (2, null, null, null, null, null), (3, 'ink', 20, '2021-01-01', '{}', '3');
select i from items i order by id;
select row_to_json(i), to_jsonb(i) from items i order by id;
select row_to_json(i, true) from items i where id = 1;
select json_agg(i order by id) from items i;
select json_agg(i.* order by id desc) from items i where id < 3;
select json_agg(row_to_json(i)) from (select id, name from items order by id) i;
select row_to_json(x) from (select id, name as label from items where id = 3) x;
select (select row_to_json(x) from (select i.id, i.name) x) from items i order by id;
select jsonb_agg(name order by id), jsonb_agg(tags order by id), json_agg(price order by id), json_agg(tags order by id) from items;
select json_object_agg(id, name order by id), jsonb_object_agg(id, doc order by id) from items;
select json_agg(name) filter (where name is not null), jsonb_agg(distinct name), jsonb_agg(id) filter (where false), json_agg(1) from items where id > 0;
select json_agg(id), jsonb_agg(id), json_object_agg(id, id), jsonb_object_agg(id, id) from items where false;
select json_object_agg(name, id) from items;
select jsonb_object_agg(name, id) from items;
select id % 2 as odd, json_agg(name order by id), jsonb_object_agg(id, name) from items group by 1 order by 1;
select id, json_agg(id) over (order by id), jsonb_agg(name) over (order by id rows 1 preceding) from items order by id;
select a.id, row_to_json(b) from items a left join items b on b.id = a.id + 1 order by a.id;
select a.id, coalesce(json_agg(b) filter (where b.id is not null), '[]') from items a left join items b on b.id > a.id group by a.id order by a.id;
select i.id, l.list from items i left join lateral (select json_agg(json_build_object('tag', t) order by t) as list from unnest(i.tags) t) l on true order by i.id;
select t.x from (select items as x from items where id = 1) t;
select (i).name, (i).id from (select items as i from items) v order by 2;
select row_to_json(nothing) from items;

-- records from objects
select * from json_to_record('{"a":1,"b":[1,2],"c":"x","d":{"e": 1},"f":null}') as x(a int, b int[], c text, d json, f int, g text);
select * from jsonb_to_record('{"a":"1","b":"{1,2}","c":3,"d":{"e":1}}') as x(a int, b int[], c varchar(2), d jsonb);
select * from json_to_recordset('[{"a":1,"b":"x"},{"a":"2","c":true},{}]') as x(a int, b text);
select x.b, x.a * 2 from jsonb_to_recordset('[{"a":1,"b":"x"},{"a":2.0}]') as x(a numeric, b text) order by a;
select v.id, r.n from (values (1, '{"n":5}'::jsonb), (2, '{"n":6}')) v(id, j), jsonb_to_record(v.j) as r(n int) order by 1;
select json_populate_record(row(1,'x'::text), '{"f2":"y"}');
select (jsonb_populate_record(i, '{"name":"new","tags":["a"]}')).name from items i where id = 1;
select jsonb_populate_record(i, '{"name":"new","tags":["a"]}') from items i where id = 1;
select * from json_populate_record(null::items, '{"id":7,"name":"n","price":"1.239","at":"2020-01-01","tags":["a","b"],"doc":{"x":1},"other":1}');
select id, doc from jsonb_populate_recordset(null::items, '[{"id":8},{"id":9,"doc":[1]}]') order by id;
insert into items select * from json_populate_recordset(null::items, '[{"id":10,"name":"ten"}]') returning *;
select * from json_to_record('{"a":"x"}') as x(a int);
select * from json_to_record('{"a":{"b":1}}') as x(a int[]);
select * from json_to_record('[1]') as x(a int);
select * from json_to_recordset('{"a":1}') as x(a int);
select * from json_to_recordset('[1]') as x(a int);
select * from jsonb_to_recordset('1') as x(a int);
select * from json_to_record('{"a":1}');
select * from json_to_record('{"a":1}') as x;
select * from json_array_elements('[1]') as x(a int);
drop table items;
-- Of two forms that take the same, the one that is not variadic.
SELECT jsonb_delete('{"a": 1, "b": 2}'::jsonb, 'a'), jsonb_delete('{"a": 1, "b": 2, "c": 3}'::jsonb, 'a', 'c'), jsonb_delete('[1, 2]'::jsonb, 0);
