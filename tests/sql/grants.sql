-- Owners and privileges: what is granted, what that allows, and how it is shown.
\set VERBOSITY verbose
CREATE ROLE grt_owner;
CREATE ROLE grt_a;
CREATE ROLE grt_b;
CREATE ROLE grt_group;
CREATE ROLE grt_member IN ROLE grt_group;
CREATE ROLE grt_quiet NOINHERIT IN ROLE grt_group;
-- Nothing to begin with.
SET ROLE grt_owner;
CREATE TABLE grt_t (a int);
CREATE SCHEMA grt_s;
RESET ROLE;
CREATE SCHEMA grt_s AUTHORIZATION grt_owner;
SET search_path = grt_s, public;
SET ROLE grt_owner;
CREATE TABLE t (id int PRIMARY KEY, a text, b text);
CREATE TABLE s (n serial, i int GENERATED ALWAYS AS IDENTITY);
CREATE SEQUENCE q;
CREATE VIEW v AS SELECT id, a || '!' AS loud, b FROM t WHERE id < 100;
CREATE MATERIALIZED VIEW m AS SELECT * FROM t;
INSERT INTO t VALUES (1, 'x', 'y');
SELECT relname, relowner::regrole, relacl FROM pg_class WHERE relnamespace = 'grt_s'::regnamespace AND relkind <> 'i' ORDER BY relname;
-- Others do not even see the schema.
SET ROLE grt_a;
SELECT * FROM grt_s.t;
SELECT * FROM t;
RESET ROLE;
GRANT USAGE ON SCHEMA grt_s TO grt_a, grt_b, grt_group;
SET ROLE grt_a;
SELECT * FROM t;
SELECT count(*) FROM v;
SELECT * FROM m;
SELECT * FROM q;
INSERT INTO t VALUES (2);
UPDATE t SET a = 1;
DELETE FROM t;
TRUNCATE t;
LOCK TABLE t;
BEGIN;
LOCK TABLE t;
ROLLBACK;
COPY t TO STDOUT;
COPY t FROM STDIN;
EXPLAIN SELECT * FROM t;
SELECT nextval('q');
SELECT setval('q', 5);
SELECT * FROM t FOR UPDATE;
CREATE TABLE mine (LIKE t);
CREATE TABLE mine (a int);
CREATE INDEX ON t (a);
ALTER TABLE t ADD c int;
ALTER TABLE t OWNER TO grt_a;
DROP TABLE t;
DROP VIEW v;
DROP SEQUENCE q;
DROP SCHEMA grt_s;
COMMENT ON TABLE t IS 'mine';
REFRESH MATERIALIZED VIEW m;
ALTER SEQUENCE q RESTART;
CREATE OR REPLACE VIEW v AS SELECT 1;
GRANT SELECT ON t TO grt_b;
REVOKE SELECT ON t FROM grt_b;
-- Tables.
SET ROLE grt_owner;
GRANT SELECT, INSERT ON t TO grt_a WITH GRANT OPTION;
GRANT ALL ON v TO PUBLIC;
SELECT relacl FROM pg_class WHERE oid IN ('t'::regclass, 'v'::regclass) ORDER BY relname;
SET ROLE grt_a;
SELECT * FROM t;
INSERT INTO t VALUES (2, 'two');
INSERT INTO t VALUES (2, 'two') ON CONFLICT DO NOTHING;
INSERT INTO t VALUES (2, 'two') ON CONFLICT (id) DO UPDATE SET a = 'three';
INSERT INTO t VALUES (3) RETURNING id;
UPDATE t SET a = 'z';
DELETE FROM t WHERE id = 3;
SELECT * FROM t FOR SHARE;
-- Through a view the rights of its owner count.
SELECT * FROM v;
UPDATE v SET b = 'through' WHERE id = 1;
DELETE FROM v WHERE id = 3;
INSERT INTO v (id, b) VALUES (4, 'four');
SELECT id, b FROM v ORDER BY id;
-- What was granted on goes with the right to grant it.
GRANT SELECT ON t TO grt_b WITH GRANT OPTION;
GRANT UPDATE ON t TO grt_b;
GRANT SELECT, UPDATE ON t TO grt_b;
GRANT ALL ON t TO grt_b;
SET ROLE grt_b;
GRANT SELECT ON t TO grt_a WITH GRANT OPTION;
GRANT SELECT ON t TO PUBLIC WITH GRANT OPTION;
GRANT SELECT ON t TO grt_group;
SET ROLE grt_owner;
SELECT relacl FROM pg_class WHERE oid = 't'::regclass;
REVOKE SELECT ON t FROM grt_a;
REVOKE GRANT OPTION FOR SELECT ON t FROM grt_a CASCADE;
SELECT relacl FROM pg_class WHERE oid = 't'::regclass;
REVOKE ALL ON t FROM grt_a CASCADE;
REVOKE ALL ON t FROM grt_owner;
SELECT * FROM t;
SELECT relacl FROM pg_class WHERE oid = 't'::regclass;
GRANT ALL ON t TO grt_owner;
-- Columns.
GRANT SELECT (id, a), UPDATE (a), INSERT (id, a), REFERENCES (id) ON t TO grt_a;
SELECT attname, attacl FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum;
SET ROLE grt_a;
SELECT id, a FROM t ORDER BY id;
SELECT count(*) FROM t;
SELECT * FROM t;
SELECT b FROM t;
SELECT id FROM t WHERE b = 'y';
SELECT id FROM t ORDER BY b;
UPDATE t SET a = 'q' WHERE id = 1;
UPDATE t SET a = b;
UPDATE t SET b = 'q';
UPDATE t SET a = 'q' WHERE id = 1 RETURNING a;
UPDATE t SET a = 'q' WHERE id = 1 RETURNING *;
INSERT INTO t (id, a) VALUES (10, 'ten');
INSERT INTO t (id, b) VALUES (11, 'ten');
INSERT INTO t VALUES (11, 'a', 'ten');
INSERT INTO t (id, a) VALUES (10, 'ten') ON CONFLICT (id) DO UPDATE SET a = excluded.a;
INSERT INTO t (id, a) VALUES (10, 'ten') ON CONFLICT (id) DO UPDATE SET a = t.b;
SELECT id FROM t WHERE id = 1 FOR UPDATE;
COPY (SELECT id, a FROM t ORDER BY id) TO STDOUT;
COPY t TO STDOUT;
SELECT x.id FROM t x JOIN t y USING (id) WHERE x.id = 1;
SELECT x.id FROM t x JOIN t y USING (b);
RESET ROLE;
GRANT CREATE ON SCHEMA grt_s TO grt_a;
SET ROLE grt_a;
CREATE TABLE child (id int REFERENCES t (id));
DROP TABLE child;
SET ROLE grt_owner;
REVOKE SELECT ON t FROM grt_a;
SELECT attname, attacl FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum;
REVOKE ALL (id, a, b) ON t FROM grt_a;
SELECT attname, attacl FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum;
-- Sequences.
GRANT USAGE ON SEQUENCE q TO grt_a;
GRANT INSERT ON s TO grt_a;
SET ROLE grt_a;
SELECT nextval('q');
SELECT currval('q');
SELECT setval('q', 5);
SELECT last_value FROM q;
INSERT INTO s DEFAULT VALUES;
INSERT INTO s (n) VALUES (7);
SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'grt_s' ORDER BY 1;
SET ROLE grt_owner;
GRANT SELECT, UPDATE ON q TO grt_a;
GRANT USAGE ON s_n_seq TO grt_a;
GRANT USAGE ON SEQUENCE t TO grt_a;
GRANT INSERT ON q TO grt_a;
SELECT relacl FROM pg_class WHERE oid = 'q'::regclass;
SET ROLE grt_a;
SELECT setval('q', 5);
INSERT INTO s DEFAULT VALUES;
-- All at once.
SET ROLE grt_owner;
GRANT SELECT ON ALL TABLES IN SCHEMA grt_s TO grt_group;
GRANT ALL ON ALL SEQUENCES IN SCHEMA grt_s TO grt_group;
SELECT relname, relacl FROM pg_class WHERE relnamespace = 'grt_s'::regnamespace AND relkind <> 'i' ORDER BY relname;
SET ROLE grt_member;
SELECT count(*) FROM m;
SELECT nextval('q');
SET ROLE grt_quiet;
SELECT count(*) FROM m;
RESET ROLE;
-- Predefined roles.
GRANT pg_read_all_data TO grt_b;
SET ROLE grt_b;
SELECT count(*) FROM s;
INSERT INTO s DEFAULT VALUES;
RESET ROLE;
REVOKE pg_read_all_data FROM grt_b;
GRANT pg_write_all_data TO grt_b;
SET ROLE grt_b;
DELETE FROM s;
DELETE FROM s WHERE n = 1;
SELECT count(*) FROM s;
RESET ROLE;
REVOKE pg_write_all_data FROM grt_b;
-- Views that ask for the rights of who reads them.
SET ROLE grt_owner;
CREATE VIEW i WITH (security_invoker = true) AS SELECT id FROM t;
GRANT SELECT ON i TO grt_b;
SET ROLE grt_b;
SELECT * FROM i;
SELECT count(*) FROM v;
RESET ROLE;
-- What cannot be granted.
GRANT USAGE ON grt_s.t TO grt_a;
GRANT SELECT ON SCHEMA grt_s TO grt_a;
GRANT nonsense ON t TO grt_a;
GRANT SELECT ON nothing TO grt_a;
GRANT SELECT ON t TO grt_nobody;
GRANT SELECT (nothing) ON t TO grt_a;
GRANT DELETE (a) ON t TO grt_a;
GRANT SELECT (a) ON SCHEMA grt_s TO grt_a;
GRANT SELECT ON t_pkey TO grt_a;
GRANT SELECT ON t TO grt_a GRANTED BY grt_b;
GRANT CREATE ON DATABASE nothing TO grt_a;
-- The database.
SELECT has_database_privilege('grt_a', current_database(), 'connect'), has_database_privilege('grt_a', current_database(), 'create'),
       has_database_privilege('grt_a', current_database(), 'temp');
-- The functions.
SELECT has_table_privilege('grt_group', 't', 'select'), has_table_privilege('grt_group', 't', 'select with grant option'),
       has_table_privilege('grt_owner', 't', 'select with grant option'), has_table_privilege('grt_member', 't', 'insert, select');
SELECT has_column_privilege('grt_group', 't', 'b', 'select'), has_column_privilege('grt_b', 't', 'b', 'select'),
       has_any_column_privilege('grt_b', 't', 'update'), has_sequence_privilege('grt_a', 'q', 'usage'),
       has_schema_privilege('grt_a', 'grt_s', 'create'), has_schema_privilege('grt_b', 'grt_s', 'create');
SELECT has_table_privilege('grt_nobody', 't', 'select');
SELECT has_table_privilege('t', 'nonsense');
SELECT acldefault('r', 10), acldefault('n', 10), acldefault('d', 10), acldefault('s', 10), acldefault('c', 10);
SELECT grantor::regrole, grantee::regrole, privilege_type, is_grantable
  FROM pg_class, aclexplode(relacl) WHERE oid = 'q'::regclass ORDER BY 2, 3;
SELECT makeaclitem('grt_a'::regrole, 'grt_b'::regrole, 'SELECT', true);
SELECT grantor, grantee, table_name, privilege_type, is_grantable, with_hierarchy
  FROM information_schema.table_privileges WHERE table_schema = 'grt_s' AND table_name IN ('t', 'v') ORDER BY 3, 2, 1, 4;
SELECT grantor, grantee, object_name, privilege_type, is_grantable
  FROM information_schema.usage_privileges WHERE object_schema = 'grt_s' ORDER BY 3, 2, 1;
SELECT nspname, nspowner::regrole, nspacl FROM pg_namespace WHERE nspname IN ('public', 'grt_s') ORDER BY 1;
\dp t
\dp q
-- Default privileges.
ALTER DEFAULT PRIVILEGES FOR ROLE grt_owner GRANT SELECT ON TABLES TO grt_b;
ALTER DEFAULT PRIVILEGES FOR ROLE grt_owner IN SCHEMA grt_s GRANT INSERT ON TABLES TO grt_b WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES FOR ROLE grt_owner REVOKE ALL ON SEQUENCES FROM grt_owner;
ALTER DEFAULT PRIVILEGES IN SCHEMA grt_s GRANT USAGE ON SCHEMAS TO grt_b;
SELECT defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype, defaclacl FROM pg_default_acl ORDER BY 1, 2, 3;
SET ROLE grt_owner;
CREATE TABLE later (a int);
CREATE SEQUENCE later_q;
SELECT relname, relacl FROM pg_class WHERE relname LIKE 'later%' ORDER BY 1;
RESET ROLE;
ALTER DEFAULT PRIVILEGES FOR ROLE grt_owner REVOKE SELECT ON TABLES FROM grt_b;
SELECT defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype, defaclacl FROM pg_default_acl ORDER BY 1, 2, 3;
-- Owners.
CREATE ROLE grt_c;
CREATE TABLE c (a int);
ALTER TABLE c OWNER TO grt_c;
GRANT UPDATE (b) ON t TO grt_c;
GRANT ALL ON SCHEMA grt_s TO grt_c;
ALTER DEFAULT PRIVILEGES FOR ROLE grt_c GRANT ALL ON TABLES TO PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE grt_a IN SCHEMA grt_s GRANT ALL ON SEQUENCES TO grt_c;
DROP ROLE grt_c;
DROP TABLE c;
DROP OWNED BY grt_c;
DROP ROLE grt_c;
ALTER TABLE t OWNER TO grt_b;
ALTER SEQUENCE s_n_seq OWNER TO grt_b;
ALTER TABLE s OWNER TO grt_b;
ALTER VIEW v OWNER TO grt_b;
ALTER VIEW t OWNER TO grt_b;
ALTER SCHEMA grt_s OWNER TO grt_b;
ALTER TABLE nothing OWNER TO grt_b;
ALTER TABLE t OWNER TO nobody_there;
SELECT relname, relowner::regrole, relacl FROM pg_class WHERE relnamespace = 'grt_s'::regnamespace AND relkind <> 'i' ORDER BY relname;
SET ROLE grt_b;
ALTER TABLE t OWNER TO grt_a;
ALTER TABLE t RENAME TO u;
ALTER TABLE u RENAME TO t;
RESET ROLE;
REASSIGN OWNED BY grt_b TO grt_a;
REASSIGN OWNED BY postgres TO grt_a;
SELECT relname, relowner::regrole FROM pg_class WHERE relnamespace = 'grt_s'::regnamespace AND relkind <> 'i' ORDER BY relname;
-- In a transaction that is taken back nothing is granted.
BEGIN;
REVOKE ALL ON t FROM grt_group;
SELECT has_table_privilege('grt_group', 't', 'select');
SAVEPOINT one;
GRANT ALL ON t TO PUBLIC;
SELECT has_table_privilege('grt_group', 't', 'delete');
ROLLBACK TO one;
SELECT has_table_privilege('grt_group', 't', 'select');
ROLLBACK;
SELECT has_table_privilege('grt_group', 't', 'select');
-- A plan made before is asked again.
GRANT USAGE ON SCHEMA grt_s TO grt_b;
GRANT SELECT ON t TO grt_b;
SET ROLE grt_b;
PREPARE p AS SELECT count(*) FROM t;
EXECUTE p;
RESET ROLE;
REVOKE SELECT ON t FROM grt_b;
SET ROLE grt_b;
EXECUTE p;
RESET ROLE;
EXECUTE p;
DEALLOCATE p;
-- Away with it.
DROP OWNED BY grt_b, grt_group;
DROP OWNED BY grt_owner;
DROP OWNED BY grt_a;
DROP OWNED BY grt_a CASCADE;
SELECT count(*) FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'grt_s');
RESET search_path;
DROP ROLE grt_owner, grt_a, grt_b, grt_group, grt_member, grt_quiet;
