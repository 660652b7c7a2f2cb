-- What programs ask that people seldom write.

CREATE TABLE asked (id int PRIMARY KEY, v int, s text);
INSERT INTO asked VALUES (1, 1, 'a'), (2, 0, 'b'), (3, 3, 'c');
CREATE SCHEMA asked_too;
CREATE TABLE asked_too.t (id int);
INSERT INTO asked_too.t VALUES (1), (2);

-- pg_dump --inserts reads tables so.
SELECT count(*) FROM ONLY asked;
SELECT count(*) FROM ONLY (asked);
SELECT a.id, t.id FROM ONLY asked AS a JOIN ONLY asked_too.t ON t.id = a.id ORDER BY 1;
SELECT count(*) FROM asked, ONLY asked_too.t;
UPDATE ONLY asked SET v = v WHERE id = 1;
UPDATE asked SET s = s FROM ONLY asked_too.t WHERE t.id = asked.id;
DELETE FROM ONLY asked_too.t WHERE id = 2;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM ONLY asked_too.t;
FETCH ALL FROM c;
ROLLBACK;
SELECT id FROM asked ORDER BY id FETCH FIRST ROW ONLY;

-- Names of types as drivers quote them.
SELECT '"text"'::regtype, 'pg_catalog."int4"'::regtype, '"pg_catalog"."bool"'::regtype, '"char"'::regtype, 'char'::regtype;
SELECT to_regtype('"text"'), to_regtype('"integer"'), to_regtype('"Text"'), to_regtype('"pg_catalog"."varchar"');

-- Rows of all columns, and what gives nothing.
SELECT ROW(a.*) FROM asked AS a ORDER BY id;
SELECT ROW(a.*, 1, a.id) FROM asked AS a ORDER BY id LIMIT 1;
SELECT '[' || pg_sleep(0)::text || ']', pg_sleep(0)::varchar IS NULL;
SELECT getdatabaseencoding();

-- An error behind what is wanted is not heard of; constants that cannot be computed are, wherever they stand.
SELECT 10 / (3 - n) FROM generate_series(1, 5) AS n LIMIT 2;
SELECT EXISTS (SELECT 10 / (3 - n) FROM generate_series(1, 5) AS n);
SELECT CASE WHEN v > 100 THEN 1 / 0 ELSE 2 END FROM asked;
SELECT CASE 1 WHEN 0 THEN 1 / 0 ELSE 2 END;
SELECT coalesce(v, 1 / 0) FROM asked;
SELECT coalesce(1, 1 / 0);
SELECT id FROM asked WHERE false AND 1 / 0 = 1;
SELECT id FROM asked WHERE id = 1 OR 1 / 0 = 1;
EXPLAIN SELECT 1 / 0;
PREPARE never AS SELECT 1 / 0;
EXECUTE never;

-- What new objects of a schema would have is gone with it: pg_dump could not name it.
CREATE ROLE asked_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA asked_too GRANT SELECT ON TABLES TO asked_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA asked_too GRANT USAGE ON SEQUENCES TO asked_role;
SELECT count(*) FROM pg_default_acl;
DROP SCHEMA asked_too CASCADE;
SELECT count(*) FROM pg_default_acl;
DROP ROLE asked_role;

-- By this pg_restore knows what to make first.
CREATE TABLE asked_of (asked_id int CONSTRAINT asked_of_key REFERENCES asked);
SELECT refobjid::regclass, refobjsubid, deptype FROM pg_depend
WHERE classid = 'pg_constraint'::regclass AND objid = (SELECT oid FROM pg_constraint WHERE conname = 'asked_of_key')
ORDER BY refobjid::regclass::text;
DROP TABLE asked_of;
DROP TABLE asked;

-- Extensions that migrations make: functions are there once they are, and shown with their schema where it is not searched.
CREATE EXTENSION IF NOT EXISTS "uuid-ossp";
CREATE EXTENSION IF NOT EXISTS "uuid-ossp";
CREATE EXTENSION "uuid-ossp";
CREATE EXTENSION pgcrypto WITH SCHEMA public;
CREATE TABLE ext_t (id uuid PRIMARY KEY DEFAULT uuid_generate_v4(), d bytea GENERATED ALWAYS AS (digest(n, 'sha256')) STORED, n text);
SELECT column_name, column_default FROM information_schema.columns WHERE table_name = 'ext_t' ORDER BY 1;
INSERT INTO ext_t (n) VALUES ('a') RETURNING substr(id::text, 15, 1), encode(d, 'hex'), n;
SELECT uuid_nil(), uuid_ns_dns(), uuid_ns_url(), uuid_ns_oid(), uuid_ns_x500();
SELECT uuid_generate_v3(uuid_ns_dns(), 'www.example.com'), public.uuid_generate_v5(uuid_ns_url(), 'http://example.com');
SELECT substr(uuid_generate_v1()::text, 15, 1), substr(uuid_generate_v1mc()::text, 15, 1), uuid_generate_v1() <> uuid_generate_v1();
SELECT pg_catalog.uuid_nil();
SELECT n, encode(digest('abc', n), 'hex'), encode(hmac('abc', 'key', n), 'hex'), encode(hmac('abc'::bytea, repeat('k', 200)::bytea, n), 'hex') FROM unnest(ARRAY['md5', 'sha1', 'sha224', 'SHA256', 'sha384', 'sha512']) AS n;
SELECT digest('abc', 'crc32');
SELECT length(gen_random_bytes(33)), gen_random_bytes(16) <> gen_random_bytes(16);
SELECT gen_random_bytes(0);
SELECT gen_random_bytes(1025);
SELECT extname, extversion, extnamespace::regnamespace FROM pg_extension ORDER BY 1;
SELECT name, default_version, installed_version FROM pg_available_extensions WHERE name IN ('pgcrypto', 'plpgsql', 'uuid-ossp') ORDER BY 1;
SELECT proname, pronamespace::regnamespace, provolatile FROM pg_proc WHERE proname IN ('uuid_nil', 'uuid_generate_v4') ORDER BY 1;
SELECT obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'uuid-ossp';
COMMENT ON EXTENSION "uuid-ossp" IS 'mine';
SELECT obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'uuid-ossp';
COMMENT ON EXTENSION nothing IS 'mine';
SET search_path = '';
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'public.ext_t'::regclass ORDER BY adnum;
SELECT uuid_nil();
SELECT public.uuid_nil();
RESET search_path;
DROP EXTENSION "uuid-ossp";
DROP TABLE ext_t;
BEGIN;
DROP EXTENSION "uuid-ossp", pgcrypto;
SELECT uuid_nil();
ROLLBACK;
SELECT uuid_nil();
ALTER EXTENSION "uuid-ossp" UPDATE;
DROP EXTENSION "uuid-ossp", pgcrypto;
DROP EXTENSION "uuid-ossp";
DROP EXTENSION IF EXISTS "uuid-ossp";
SELECT uuid_nil();
CREATE EXTENSION pgcrypto VERSION '7';

-- Hashes of which programs make advisory locks.
SELECT hashtext(''), hashtext('a'), hashtext('The quick'), hashtext('twelve bytes'), hashtext('The quick brown fox jumps'), hashtextextended('The quick brown fox', 42), hashtextextended('x', 0);
SELECT hashint2(7::int2), hashint4(-1), hashint8(7), hashint8(-1), hashint8(12345678901234);

-- What does not exist here is named, or is not there.
COMMIT PREPARED 'x';
ROLLBACK PREPARED 'x';
COMMIT PREPARED;
DROP PUBLICATION IF EXISTS p, q;
DROP PUBLICATION p;
DROP STATISTICS IF EXISTS t CASCADE;
DROP FOREIGN TABLE ft;
DROP EVENT TRIGGER IF EXISTS e;
DROP SERVER IF EXISTS s;
DROP TEXT SEARCH CONFIGURATION IF EXISTS c;
DROP ACCESS METHOD IF EXISTS m;
DROP FOREIGN DATA WRAPPER IF EXISTS w;
