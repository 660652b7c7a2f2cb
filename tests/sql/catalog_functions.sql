-- Functions, casts and types that programs ask the catalog with.
SELECT set_config('bytea_output', 'hex', false) FROM pg_show_all_settings() WHERE name = 'bytea_output';
SELECT name, setting, vartype, pending_restart FROM pg_show_all_settings() WHERE name IN ('bytea_output', 'enable_seqscan') ORDER BY 1;
SELECT count(*) = (SELECT count(*) FROM pg_settings) AS same FROM pg_show_all_settings();
SELECT x.extname, e.comment FROM pg_catalog.pg_extension x JOIN pg_catalog.pg_available_extensions() e ON x.extname = e.name;
SELECT CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END;
SELECT count(*) FROM pg_cursor() WHERE name = 'none';
SELECT count(*) FROM pg_prepared_statement();
SELECT * FROM pg_show_all_file_settings() LIMIT 0;
-- Text that types read and print.
SELECT uuid_in(overlay(md5('x') PLACING '4' FROM 13)::cstring);
SELECT uuid_in('9dd4e461-268c-4034-f5c8-564e155c67a6'), uuid_out('9dd4e461-268c-4034-f5c8-564e155c67a6');
CREATE TABLE cf_n (id uuid DEFAULT uuid_in(md5('x')::cstring), n int DEFAULT int4in('7'));
INSERT INTO cf_n DEFAULT VALUES;
SELECT * FROM cf_n;
DROP TABLE cf_n;
SELECT textin('a'), int4in('5') + 1, boolin('t'), numeric_in('1.55', 0, -1), date_in('2020-01-02'), varcharin('abc', 0, 8);
SELECT int4out(5), boolout(true), numeric_out(1.50), textout('x'), jsonb_out('{"a": 1}');
SELECT 'x'::text::cstring, 'x'::cstring::text, 'y'::varchar::cstring;
SELECT 1::cstring;
SELECT int4in('x');
SELECT array_to_string('1 2 3'::int2vector::integer[], ',') AS a, '1 2'::int2vector::integer[], '3 4'::oidvector::bigint[];
-- Names of operators and collations.
SELECT (CASE WHEN false THEN (SELECT conexclop[1]::regoper FROM pg_constraint LIMIT 1) END);
SELECT '+(integer,integer)'::regoperator, 'pg_catalog.english'::regconfig, 'simple'::regdictionary;
SELECT '-(NONE,int4)'::regoperator, '||/'::regoper, 551::regoper, 551::regoperator, '"C"'::regcollation, 950::regcollation::oid;
SELECT '=(int4,int4)'::regoperator::oid, 96::oid::regoperator, 0::regoper, 999999::regoperator;
SELECT '+'::regoper;
SELECT 'xyz'::regoper;
SELECT '+(int4)'::regoperator;
SELECT '+(int4,nosuch)'::regoperator;
SELECT 'nosuch'::regcollation;
SELECT to_regoper('+'), to_regoper('||/'), to_regoperator('+(int4,int4)'), to_regoperator('+(int4,text)'), to_regcollation('"POSIX"');
SELECT oidvectortypes(proargtypes) FROM pg_proc WHERE oid = 'substring(text,int4,int4)'::regprocedure;
SELECT oidvectortypes('23 25 1009'::oidvector), oidvectortypes('');
-- information_schema's own.
SELECT t, information_schema._pg_char_max_length(t, m) AS chars, information_schema._pg_char_octet_length(t, m) AS octets,
  information_schema._pg_numeric_precision(t, m) AS prec, information_schema._pg_numeric_precision_radix(t, m) AS radix,
  information_schema._pg_numeric_scale(t, m) AS scale, information_schema._pg_datetime_precision(t, m) AS dt,
  information_schema._pg_interval_type(t, m) AS i
  FROM (VALUES (25, -1), (1043, 14), (1042, 5), (1560, 3), (21, -1), (23, -1), (20, -1), (700, -1), (701, -1), (1700, -1),
  (1700, 655366), (1082, -1), (1114, -1), (1114, 3), (1184, 0), (1186, -1), (1186, 2147418115)) v(t, m);
CREATE DOMAIN cf_d AS varchar(9);
CREATE TABLE cf_t (a int, b cf_d, c numeric(7, 2), PRIMARY KEY (c, a));
SELECT a.attname, information_schema._pg_truetypid(a, t)::regtype, information_schema._pg_truetypmod(a, t)
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = 'cf_t'::regclass AND a.attnum > 0 ORDER BY a.attnum;
SELECT information_schema._pg_char_max_length(information_schema._pg_truetypid(a, t), information_schema._pg_truetypmod(a, t))
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = 'cf_t'::regclass AND a.attname = 'b';
SELECT a.attname, information_schema._pg_index_position('cf_t_pkey'::regclass, a.attnum)
  FROM pg_attribute a WHERE a.attrelid = 'cf_t'::regclass AND a.attnum > 0 ORDER BY a.attnum;
SELECT 'a'::information_schema.sql_identifier, 1::information_schema.cardinal_number, 'YES'::information_schema.yes_or_no;
-- Every relation's rows have a type.
SELECT count(*) AS must_be_0 FROM pg_class WHERE relkind IN ('r', 'v', 'm', 'f', 'p', 'c') AND reltype = 0;
SELECT count(*) AS must_be_0 FROM pg_class c WHERE reltype <> 0 AND NOT EXISTS (SELECT FROM pg_type t WHERE t.oid = c.reltype AND t.typrelid = c.oid AND t.typtype = 'c');
SELECT (n).nspname FROM (SELECT n FROM pg_namespace n WHERE nspname = 'public') q;
-- What objects are called.
COMMENT ON TABLE cf_t IS 'x';
CREATE VIEW cf_v AS SELECT a, b FROM cf_t;
CREATE INDEX cf_i ON cf_t (b);
CREATE SEQUENCE cf_s;
CREATE FUNCTION cf_f(int, text) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE SCHEMA "cf S";
CREATE TABLE "cf S"."T x" ("c 1" int CONSTRAINT "c c" CHECK ("c 1" > 0) DEFAULT 5);
CREATE TYPE cf_c AS (x int);
SELECT d, i.* FROM (VALUES
  ('pg_class'::regclass, 'cf_t'::regclass::oid, 0), ('pg_class', 'cf_t'::regclass, 2), ('pg_class', 'cf_v'::regclass, 0),
  ('pg_class', 'cf_i'::regclass, 0), ('pg_class', 'cf_s'::regclass, 0), ('pg_class', 'pg_class'::regclass, 0),
  ('pg_class', '"cf S"."T x"'::regclass, 1), ('pg_type', 'cf_d'::regtype, 0), ('pg_type', 'int4'::regtype, 0),
  ('pg_proc', 'cf_f'::regproc, 0), ('pg_namespace', '"cf S"'::regnamespace, 0), ('pg_authid', 'postgres'::regrole, 0),
  ('pg_class', 'cf_c'::regclass, 0),
  ('pg_constraint', (SELECT oid FROM pg_constraint WHERE conname = 'c c'), 0),
  ('pg_constraint', (SELECT oid FROM pg_constraint WHERE conname = 'cf_t_pkey'), 0),
  ('pg_attrdef', (SELECT oid FROM pg_attrdef WHERE adrelid = '"cf S"."T x"'::regclass), 0),
  ('pg_rewrite', (SELECT oid FROM pg_rewrite WHERE ev_class = 'cf_v'::regclass), 0),
  ('pg_extension', (SELECT oid FROM pg_extension WHERE extname = 'plpgsql'), 0)
  ) AS o(c, o, s), pg_describe_object(c, o, s) d, pg_identify_object(c, o, s) i;
SELECT (pg_identify_object('pg_class'::regclass, 'pg_class'::regclass, 0)).identity;
SELECT pg_describe_object('pg_class'::regclass, 1, 0);
DROP SCHEMA "cf S" CASCADE;
DROP FUNCTION cf_f;
DROP SEQUENCE cf_s;
DROP VIEW cf_v;
DROP TABLE cf_t;
DROP TYPE cf_c;
DROP DOMAIN cf_d;
SELECT pg_get_functiondef('now'::regproc);
-- Others that stopped somebody.
SELECT * FROM f_nofunc(b := 2);
SELECT f_nofunc(1, b => 'x'::text);
CREATE TEMP TABLE cf_1 (id int PRIMARY KEY);
CREATE TEMP TABLE cf_2 (r int, CONSTRAINT cf_2_fk FOREIGN KEY (r) REFERENCES cf_1 (id) DEFERRABLE);
BEGIN;
SET CONSTRAINTS cf_2_fk DEFERRED;
INSERT INTO cf_2 VALUES (1);
INSERT INTO cf_1 VALUES (1);
COMMIT;
DROP TABLE cf_2, cf_1;
DO $$ DECLARE x text; BEGIN BEGIN PERFORM 1/0; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS x = PG_CONTEXT; RAISE NOTICE '%', x; END; END $$;
SELECT obj_description('public'::regnamespace, 'pg_namespace');
SELECT lanname FROM pg_language WHERE lanispl;
