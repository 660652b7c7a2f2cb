-- DateStyle: four forms of output, three orders of fields, in input and output.
set timezone = 'America/New_York';
create table moments (d date, ts timestamp, tz timestamptz);
insert into moments values ('1997-12-17', '1997-12-17 07:37:16.25', '1997-12-17 07:37:16-05'), ('2020-07-04', '2020-07-04 23:59:59.000001', '2020-07-04 12:00:00-04'),
  ('0044-03-15 BC', '0044-03-15 12:00:00 BC', '0044-03-15 12:00:00+00 BC'), ('infinity', '-infinity', 'infinity'), (null, null, null);
set datestyle = 'ISO, MDY'; select * from moments;
set datestyle = 'SQL, MDY'; select * from moments;
set datestyle = 'SQL, DMY'; select * from moments;
set datestyle = 'Postgres, MDY'; select * from moments;
set datestyle = 'Postgres, DMY'; select * from moments;
set datestyle = 'German'; show datestyle; select * from moments;
-- What was written in a style is read in it.
select ts::text::timestamp = ts as same, d::text::date = d as same_day from moments where d is not null;
set datestyle = 'Postgres, DMY'; select ts::text::timestamp = ts as same, d::text::date = d as same_day from moments where d is not null;
set datestyle = 'SQL, DMY'; select ts::text::timestamp = ts as same, d::text::date = d as same_day, tz::text::timestamptz = tz as same_moment from moments where d is not null;
select '02/03/2020'::date, array['2020-02-03'::date], row('2020-02-03'::date), daterange('2020-02-03', '2020-02-05'), to_json('2020-02-03'::date), to_json('2020-02-03 04:05:06'::timestamp);
set datestyle = 'SQL, MDY'; select '02/03/2020'::date, '1999-01-08'::date || '', concat('2020-02-03'::date);
set datestyle = ymd; show datestyle; select '99/01/02'::date, '2020-02-03'::date;
set datestyle = iso; show datestyle;
set datestyle = german; show datestyle;
set datestyle = 'sql, european'; show datestyle;
set datestyle = 'us'; show datestyle;
set datestyle to postgres, dmy; show datestyle;
set datestyle = 'sql, iso';
set datestyle = 'dmy, mdy';
set datestyle = 'nothing';
reset datestyle; show datestyle;
-- What is kept is kept in one style.
set datestyle = 'German';
create table kept (d date default '03.02.2020', ts timestamp default '03.02.2020 04:05:06', check (d > '01.02.2003'));
create view shown as select d from moments where d = '17.12.1997';
insert into kept default values;
set datestyle = 'ISO, MDY';
select * from kept; select * from shown; select pg_get_viewdef('shown'::regclass);
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'kept'::regclass;
set datestyle = 'SQL, DMY'; copy moments to stdout; copy (select '2020-02-03'::date) to stdout (format csv);
set timezone = 'UTC'; select timestamptz '2020-02-03 04:05:06+00';
set timezone = '+05:30'; select timestamptz '2020-02-03 04:05:06+00';
set timezone = 'Asia/Tokyo'; select timestamptz '2020-02-03 04:05:06+00';
select timetz '04:05:06+02', time '04:05:06', interval '1 day';
drop view shown; drop table moments, kept;
