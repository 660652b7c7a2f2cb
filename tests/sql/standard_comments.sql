-- Comments that are there from the beginning, by both forms of obj_description and in pg_description.
SELECT nspname, obj_description(oid), obj_description(oid, 'pg_namespace'), obj_description(oid, 'pg_class')
FROM pg_namespace WHERE nspname IN ('public', 'pg_catalog', 'pg_toast') ORDER BY nspname;
SELECT obj_description(oid), obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'plpgsql';
CREATE EXTENSION hstore;
SELECT obj_description(oid), obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'hstore';
SELECT description FROM pg_description WHERE classoid = 'pg_extension'::regclass ORDER BY 1;
DROP EXTENSION hstore;
COMMENT ON SCHEMA public IS 'ours';
SELECT obj_description(2200), obj_description(2200, 'pg_namespace');
COMMENT ON SCHEMA public IS 'standard public schema';
