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
