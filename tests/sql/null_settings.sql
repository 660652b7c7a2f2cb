-- array_nulls and transform_null_equals.
select '{NULL,null,a,"NULL"}'::text[]; set array_nulls = off; select '{NULL,null,a,"NULL"}'::text[]; select '{1,NULL}'::int[]; show array_nulls; reset array_nulls; select '{1,NULL}'::int[];
create table nulls (a int, b text); insert into nulls values (1, null), (null, 'x');
select * from nulls where a = null; set transform_null_equals = on; select * from nulls where a = null; select * from nulls where null = b; select null = null, 1 = null, a <> null from nulls; select case a when null then 'n' else 'o' end from nulls; select * from nulls where (a = null) is true and a in (null);
reset transform_null_equals; select * from nulls where a = null; drop table nulls;
