-- Databases: making, changing and dropping them, what is refused, and that each has its own of everything.
\set VERBOSITY verbose
\set SHOW_CONTEXT never
CREATE ROLE dbs_owner;
CREATE ROLE dbs_maker CREATEDB;
CREATE ROLE dbs_nobody;

CREATE DATABASE dbs_one;
CREATE DATABASE dbs_one;
CREATE DATABASE dbs_two WITH OWNER = dbs_owner TEMPLATE template0 ENCODING 'utf-8' CONNECTION LIMIT 5 IS_TEMPLATE = no_boolean;
CREATE DATABASE dbs_two WITH OWNER = dbs_owner TEMPLATE template0 ENCODING 'utf-8' CONNECTION LIMIT 5 STRATEGY = file_copy;
CREATE DATABASE "dbs Three" OWNER DEFAULT TEMPLATE = DEFAULT ENCODING = unicode LC_COLLATE = 'C' LC_CTYPE 'C' TEMPLATE DEFAULT;
CREATE DATABASE "dbs Three" TEMPLATE = template0 ENCODING = 6 LOCALE = 'POSIX' LC_CTYPE 'C' ALLOW_CONNECTIONS off TABLESPACE pg_default;
SELECT datname, datdba::regrole, pg_encoding_to_char(encoding), datlocprovider, datcollate IN ('C', 'C.UTF-8') AS bytes, datistemplate, datallowconn, datconnlimit, datacl, shobj_description(oid, 'pg_database')
FROM pg_database WHERE datname LIKE 'dbs%' ORDER BY 1;
SELECT datname, oid, datistemplate, datallowconn FROM pg_database WHERE oid < 16384 ORDER BY 1;

-- What is refused.
CREATE DATABASE dbs_x TEMPLATE dbs_nowhere;
CREATE DATABASE dbs_x OWNER dbs_nowhere;
CREATE DATABASE dbs_x ENCODING 'nonsense';
CREATE DATABASE dbs_x ENCODING 99;
CREATE DATABASE dbs_x LOCALE 'nonsense' TEMPLATE template0;
CREATE DATABASE dbs_x CONNECTION LIMIT -2;
CREATE DATABASE dbs_x CONNECTION LIMIT many;
CREATE DATABASE dbs_x COLOUR red;
CREATE DATABASE dbs_x TABLESPACE dbs_space;
CREATE DATABASE dbs_x TABLESPACE pg_global;
CREATE DATABASE dbs_x STRATEGY guess;
CREATE DATABASE dbs_x LOCALE_PROVIDER mine;
CREATE DATABASE dbs_x ICU_LOCALE 'de';
CREATE DATABASE;
CREATE DATABASE dbs_x OWNER;
CREATE DATABASE dbs_x.y;
BEGIN;
CREATE DATABASE dbs_x;
ROLLBACK;
BEGIN;
DROP DATABASE dbs_one;
ROLLBACK;
SELECT 1 \; CREATE DATABASE dbs_x;
DROP DATABASE dbs_nowhere;
DROP DATABASE IF EXISTS dbs_nowhere;
DROP DATABASE IF EXISTS dbs_nowhere WITH (FORCE);
DROP DATABASE dbs_nowhere (FORCE, SOON);
DROP DATABASE dbs_nowhere WITH FORCE;
DROP DATABASE postgres;
DROP DATABASE template1;
DROP DATABASE template0;
ALTER DATABASE postgres RENAME TO dbs_x;
ALTER DATABASE dbs_one RENAME TO dbs_two;
ALTER DATABASE dbs_nowhere RENAME TO dbs_x;
ALTER DATABASE dbs_nowhere CONNECTION LIMIT 3;
ALTER DATABASE dbs_one COLOUR red;
ALTER DATABASE dbs_one CONNECTION LIMIT -5;
ALTER DATABASE postgres ALLOW_CONNECTIONS false;
ALTER DATABASE dbs_one SET dbs_nothing = 1;
ALTER DATABASE dbs_one SET work_mem = 'much';
ALTER DATABASE dbs_one SET TABLESPACE dbs_space;
ALTER DATABASE dbs_one;
COMMENT ON DATABASE dbs_nowhere IS 'nothing';
GRANT CONNECT ON DATABASE dbs_nowhere TO dbs_nobody;
SELECT * FROM dbs_one.public.t;
SELECT 'dbs_one.public.t'::regclass;
SELECT has_database_privilege('dbs_nobody', 'dbs_nowhere', 'connect');
SELECT pg_database_size('dbs_nowhere');

-- Whose they are.
SET ROLE dbs_nobody;
CREATE DATABASE dbs_x;
DROP DATABASE dbs_one;
DROP DATABASE IF EXISTS dbs_nowhere;
ALTER DATABASE dbs_one RENAME TO dbs_x;
ALTER DATABASE dbs_one CONNECTION LIMIT 3;
ALTER DATABASE dbs_one SET work_mem = '1MB';
ALTER DATABASE dbs_one OWNER TO dbs_nobody;
COMMENT ON DATABASE dbs_one IS 'mine';
ALTER ROLE dbs_owner IN DATABASE dbs_one SET work_mem = '1MB';
GRANT CREATE ON DATABASE dbs_one TO dbs_nobody;
SET ROLE dbs_owner;
ALTER DATABASE dbs_two RENAME TO dbs_x;
ALTER DATABASE dbs_two OWNER TO dbs_nobody;
ALTER DATABASE dbs_two CONNECTION LIMIT 7;
COMMENT ON DATABASE dbs_two IS 'the second';
SET ROLE dbs_maker;
CREATE DATABASE dbs_x OWNER dbs_owner;
CREATE DATABASE dbs_x TEMPLATE dbs_two;
CREATE DATABASE dbs_made;
ALTER DATABASE dbs_made RENAME TO dbs_made_2;
GRANT CREATE, TEMPORARY ON DATABASE dbs_made_2 TO dbs_nobody WITH GRANT OPTION;
REVOKE CONNECT ON DATABASE dbs_made_2 FROM PUBLIC;
RESET ROLE;
SELECT datname, datdba::regrole, datconnlimit, datacl, shobj_description(oid, 'pg_database') FROM pg_database WHERE datname LIKE 'dbs%' ORDER BY 1;
SELECT has_database_privilege('dbs_nobody', 'dbs_made_2', 'connect'), has_database_privilege('dbs_nobody', 'dbs_made_2', 'create with grant option'),
  has_database_privilege('dbs_nobody', 'dbs_two', 'connect'), has_database_privilege('dbs_nobody', 'dbs_two', 'create');
DROP ROLE dbs_maker;
DROP ROLE dbs_nobody;
SELECT d.description FROM pg_shdescription d JOIN pg_database b ON b.oid = d.objoid WHERE datname LIKE 'dbs%';

-- Settings.
ALTER DATABASE dbs_one SET work_mem = '7MB';
ALTER DATABASE dbs_one SET search_path TO inside, public;
ALTER DATABASE dbs_one SET timezone = 'Europe/Paris';
ALTER DATABASE dbs_one RESET timezone;
ALTER ROLE postgres IN DATABASE dbs_one SET statement_timeout = '55s';
ALTER ROLE postgres IN DATABASE dbs_one SET work_mem = '9MB';
ALTER ROLE ALL IN DATABASE dbs_one SET lock_timeout = '44s';
ALTER ROLE dbs_owner IN DATABASE dbs_one SET work_mem = '9MB';
ALTER ROLE dbs_owner IN DATABASE dbs_nowhere SET work_mem = '9MB';
SELECT coalesce(datname, '-'), coalesce(rolname, '-'), setconfig FROM pg_db_role_setting s LEFT JOIN pg_database d ON d.oid = setdatabase LEFT JOIN pg_roles r ON r.oid = setrole
WHERE datname LIKE 'dbs%' ORDER BY 1, 2;

-- Each has its own of everything.
CREATE SCHEMA inside;
CREATE TABLE inside.t (id serial PRIMARY KEY, v text);
INSERT INTO inside.t (v) VALUES ('of postgres');
CREATE TYPE inside.mood AS ENUM ('calm');
PREPARE reads AS SELECT v FROM inside.t;
EXECUTE reads;
CREATE TEMPORARY TABLE here (a int);
\c dbs_one
SELECT current_database(), current_setting('work_mem'), current_setting('search_path'), current_setting('statement_timeout'), current_setting('lock_timeout');
EXECUTE reads;
SELECT v FROM inside.t;
SELECT * FROM here;
CREATE SCHEMA inside;
CREATE TABLE inside.t (id serial PRIMARY KEY, v text);
INSERT INTO inside.t (v) VALUES ('of one');
CREATE TYPE inside.mood AS ENUM ('wild', 'calm');
CREATE VIEW inside.shown AS SELECT v FROM t;
SELECT v FROM inside.t;
SELECT v FROM dbs_one.inside.t;
SELECT v FROM postgres.inside.t;
SELECT enum_range(NULL::mood);
SELECT table_catalog, table_schema, table_name FROM information_schema.tables WHERE table_schema IN ('inside', 'public') ORDER BY 2, 3;
SELECT nspname, nspowner::regrole, nspacl FROM pg_namespace WHERE nspname = 'public';
SELECT has_schema_privilege('dbs_owner', 'public', 'create'), has_schema_privilege('dbs_owner', 'public', 'usage');
SET ROLE dbs_owner;
CREATE TABLE public.not_mine (a int);
RESET ROLE;
DROP DATABASE dbs_one;
ALTER DATABASE dbs_one RENAME TO dbs_x;
CREATE TABLE public.owned (a int);
ALTER TABLE public.owned OWNER TO dbs_owner;
COMMENT ON DATABASE dbs_one IS 'said inside';
SELECT count(*) FROM pg_stat_activity WHERE datname = 'dbs_one';
\c dbs_two
SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = 'dbs_one';
SET ROLE dbs_owner;
CREATE TABLE public.mine (a int);
RESET ROLE;
SELECT relname, relowner::regrole FROM pg_class WHERE relnamespace = 'public'::regnamespace;
\c postgres
SELECT v FROM inside.t;
SELECT enum_range(NULL::inside.mood);
SELECT to_regclass('inside.shown');
DROP ROLE dbs_owner;
SELECT pg_database_size('dbs_one') > 0, pg_database_size(oid) > 0 FROM pg_database WHERE datname = 'dbs_two';

-- They go, with all that is in them.
ALTER DATABASE dbs_two IS_TEMPLATE true;
DROP DATABASE dbs_two;
ALTER DATABASE dbs_two IS_TEMPLATE = false;
DROP DATABASE dbs_two;
DROP DATABASE dbs_one;
DROP DATABASE "dbs Three";
DROP DATABASE dbs_made_2 WITH (FORCE);
SELECT datname FROM pg_database WHERE datname LIKE 'dbs%';
SELECT count(*) FROM pg_shdescription WHERE description IN ('the second', 'said inside');
SELECT count(*) FROM pg_db_role_setting WHERE setdatabase <> 0;
CREATE DATABASE dbs_one;
ALTER ROLE dbs_owner IN DATABASE dbs_one SET work_mem = '9MB';
\c dbs_one
SELECT v FROM inside.t;
\c postgres
DROP ROLE dbs_owner, dbs_maker, dbs_nobody;
SELECT count(*) FROM pg_db_role_setting WHERE setdatabase <> 0;
-- Renamed twice in one transaction; and names that are too long.
BEGIN;
ALTER DATABASE dbs_one RENAME TO dbs_1;
ALTER DATABASE dbs_1 RENAME TO dbs_11;
SAVEPOINT s;
ALTER DATABASE dbs_11 RENAME TO dbs_111;
ROLLBACK TO s;
ALTER DATABASE dbs_11 RENAME TO dbs_1111;
COMMIT;
SELECT datname FROM pg_database WHERE datname LIKE 'dbs\_1%';
ALTER DATABASE dbs_1111 RENAME TO dbs_one;
CREATE DATABASE dbs_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx;
ALTER DATABASE dbs_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx CONNECTION LIMIT 3;
DROP DATABASE dbs_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx;
SELECT count(*) FROM pg_database WHERE datname LIKE 'dbs_xx%';
DROP DATABASE dbs_one;
DROP SCHEMA inside CASCADE;
