-- What is said of tables, columns and indexes and told again: REPLICA IDENTITY, SET STATISTICS, SET STORAGE, collations, operator classes.
CREATE TABLE ka (a int NOT NULL, b varchar(20), c text, UNIQUE (a));
ALTER TABLE ka REPLICA IDENTITY FULL;
ALTER TABLE ka ALTER a SET STATISTICS 500, ALTER COLUMN c SET STORAGE EXTERNAL;
ALTER TABLE ka ALTER b SET STATISTICS 20000;
ALTER TABLE ka ALTER b SET STATISTICS -2;
ALTER TABLE ka ALTER a SET STORAGE EXTERNAL;
CREATE INDEX ka_b ON ka (b varchar_pattern_ops);
CREATE INDEX ka_c ON ka (c text_pattern_ops DESC, lower(c) text_pattern_ops, b);
CREATE INDEX ka_d ON ka (c COLLATE "C", b COLLATE "default", (c || b) COLLATE "POSIX" text_pattern_ops NULLS FIRST) WITH (fillfactor = 70);
CREATE INDEX ON ka (c text_ops);
\d+ ka
SELECT relreplident FROM pg_class WHERE oid = 'ka'::regclass;
SELECT attname, attstattarget, attstorage, attcompression FROM pg_attribute WHERE attrelid = 'ka'::regclass AND attnum > 0 ORDER BY attnum;
SELECT pg_get_indexdef('ka_d'::regclass), pg_get_indexdef('ka_c'::regclass);
SELECT i.indexrelid::regclass, array_agg(o.opcname ORDER BY k.n) FROM pg_index i, unnest(i.indclass::oid[]) WITH ORDINALITY k(oid, n), pg_opclass o
  WHERE i.indrelid = 'ka'::regclass AND o.oid = k.oid GROUP BY i.indexrelid ORDER BY i.indexrelid;
SELECT indexrelid::regclass, indcollation FROM pg_index WHERE indrelid = 'ka'::regclass ORDER BY indexrelid;
SELECT reloptions FROM pg_class WHERE relname IN ('ka', 'ka_d') ORDER BY relname;
SELECT * FROM ka WHERE b LIKE 'x%' OR c COLLATE "C" < 'a';
ALTER TABLE ka REPLICA IDENTITY USING INDEX ka_a_key;
SELECT relreplident, indisreplident FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid WHERE i.indexrelid = 'ka_a_key'::regclass;
\d ka
ALTER TABLE ka REPLICA IDENTITY USING INDEX ka_b;
ALTER TABLE ka REPLICA IDENTITY USING INDEX nosuch;
ALTER TABLE ka REPLICA IDENTITY NOTHING;
SELECT relreplident FROM pg_class WHERE oid = 'ka'::regclass;
ALTER TABLE ka REPLICA IDENTITY DEFAULT, ALTER a SET STATISTICS -1, ALTER c SET STORAGE EXTENDED;
SELECT relreplident FROM pg_class WHERE oid = 'ka'::regclass;
SELECT attname, attstattarget, attstorage FROM pg_attribute WHERE attrelid = 'ka'::regclass AND attnum > 0 ORDER BY attnum;
-- Collations of columns.
ALTER TABLE ka ALTER COLUMN b TYPE varchar(30) COLLATE "C";
ALTER TABLE ka ALTER c TYPE text COLLATE pg_catalog."POSIX" USING c || '', ALTER a SET DATA TYPE bigint;
ALTER TABLE ka ADD COLUMN d text COLLATE "C", ADD e int;
ALTER TABLE ka ALTER b TYPE varchar(40) COLLATE "nosuch";
ALTER TABLE ka ALTER a TYPE int COLLATE "C";
CREATE TABLE kb (x text COLLATE "POSIX", y text COLLATE "default", z name);
SELECT attrelid::regclass, attname, attcollation FROM pg_attribute WHERE attrelid IN ('ka'::regclass, 'kb'::regclass) AND attnum > 0 ORDER BY attrelid, attnum;
\d kb
CREATE INDEX ON ka (d);
CREATE INDEX ON ka (d COLLATE "C", c COLLATE "C");
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'ka'::regclass ORDER BY indexrelid::regclass::text;
DROP INDEX ka_d;
ALTER TABLE ka ALTER b TYPE varchar(50);
SELECT attname, attcollation FROM pg_attribute WHERE attrelid = 'ka'::regclass AND attname = 'b';
CREATE TABLE kc (LIKE ka INCLUDING ALL);
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'kc'::regclass ORDER BY indexrelid::regclass::text;
SELECT attname, attcollation FROM pg_attribute WHERE attrelid = 'kc'::regclass AND attnum > 0 ORDER BY attnum;
ALTER TABLE kc DROP COLUMN d, ADD COLUMN f text;
SELECT attname, attcollation FROM pg_attribute WHERE attrelid = 'kc'::regclass AND attname = 'f';
DROP TABLE kc, kb, ka;
-- RESET of storage parameters, and comments in dollars.
CREATE TABLE kd (a int) WITH (fillfactor = 80, autovacuum_enabled = false);
ALTER TABLE kd RESET (fillfactor);
SELECT reloptions FROM pg_class WHERE relname = 'kd';
ALTER TABLE kd SET (fillfactor = 60), RESET (autovacuum_enabled, autovacuum_vacuum_threshold);
SELECT reloptions FROM pg_class WHERE relname = 'kd';
ALTER TABLE kd RESET (fillfactor);
SELECT reloptions FROM pg_class WHERE relname = 'kd';
COMMENT ON TABLE kd IS $lit$it's$lit$;
COMMENT ON COLUMN kd.a IS $$x "y"$$;
SELECT obj_description('kd'::regclass, 'pg_class'), col_description('kd'::regclass, 1);
SELECT interval $$1 day$$, date $q$2020-02-03$q$, $$a$$ || 'b';
DROP TABLE kd;
CREATE MATERIALIZED VIEW ke AS SELECT 'x'::text AS a;
ALTER MATERIALIZED VIEW ke ALTER COLUMN a SET STATISTICS 7;
SELECT attstattarget FROM pg_attribute WHERE attrelid = 'ke'::regclass AND attname = 'a';
DROP MATERIALIZED VIEW ke;
