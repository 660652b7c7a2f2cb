-- The views of time zones and of their abbreviations; a password that is the secret of an empty one.
select count(*) from pg_timezone_abbrevs;
select * from pg_timezone_abbrevs where abbrev in ('UTC', 'CET', 'CEST', 'EDT', 'EST', 'IST', 'NPT', 'MART', 'LHST', 'Z', 'ACST', 'ACDT') order by abbrev;
select name, abbrev, utc_offset, is_dst from pg_timezone_names where name in ('UTC', 'Asia/Kolkata', 'Asia/Tokyo', 'Etc/GMT+5') order by name;
select count(distinct utc_offset) >= 24 from pg_timezone_names;
create role golden_empty password 'SCRAM-SHA-256$4096:hpFyHTUsSWcR7O9P$LgZFIt6Oqdo27ZFKbZ2nV+vtnYM995pDh9ca6WSi120=:qVV5NeluNfUPkwm7Vqat25RjSPLkGeoZBQs6wVv+um4=';
select rolpassword from pg_authid where rolname = 'golden_empty';
alter role golden_empty password 'SCRAM-SHA-256$4096:A6xHKoH/494E941doaPOYg==$Ky+A30sewHIH3VHQLRN9vYsuzlgNyGNKCh37dy96Rqw=:COPdlNiIkrsacU5QoxydEuOH6e/KfiipeETb/bPw8ZI=';
select rolpassword from pg_authid where rolname = 'golden_empty';
drop role golden_empty;
-- A zone of a number is called by its offset, one of POSIX's form by nothing.
set time zone '-1.5';
select to_char('2012-12-12 12:00'::timestamptz, 'YYYY-MM-DD HH:MI:SS TZ tz OF');
set time zone '2';
select to_char('2012-12-12 12:00'::timestamptz, 'HH24:MI TZ');
set time zone '-1:30';
select to_char('2012-12-12 12:00'::timestamptz, 'HH24:MI [TZ] OF');
set time zone 'Asia/Kolkata';
select to_char('2012-12-12 12:00'::timestamptz, 'HH24:MI TZ tz');
set datestyle = 'sql';
set time zone '-3.25';
select '2012-12-12 12:00'::timestamptz;
reset datestyle;
reset time zone;
-- A role that is not there may what everybody may.
select has_table_privilege(-999999, 'pg_authid', 'update'), has_table_privilege(-999999, 'pg_class', 'select'), has_schema_privilege(-99, 'public', 'usage');
select has_database_privilege(-1, current_database(), 'connect'), has_function_privilege(-1, 'lower(text)', 'execute');
