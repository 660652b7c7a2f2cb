-- Constants of views, defaults and checks mean what they meant when they were written, whoever reads them with whatever settings.
CREATE SCHEMA vc_other;
CREATE SEQUENCE vc_s;
CREATE SEQUENCE vc_other.vc_s START 100;
CREATE TABLE vc_t (a int PRIMARY KEY, b int);
SET timezone = 'UTC';
CREATE VIEW vc_v AS SELECT nextval('vc_s') AS n, 'vc_s'::regclass AS r, 'vc_t'::regclass::text AS t, timestamptz '2020-01-01 00:00' AS at,
  '2020-06-01 12:00'::timestamptz AS too, date '2020-02-29' AS d, 'pg_class'::regclass AS k, 'int4'::regtype AS ty, E'vc_t'::regclass AS e,
  $$vc_t$$::regclass AS dollar;
SELECT pg_get_viewdef('vc_v');
SELECT * FROM vc_v;
SET timezone = 'Asia/Tokyo';
SET search_path = vc_other;
SELECT pg_get_viewdef('public.vc_v');
SELECT * FROM public.vc_v;
DROP SEQUENCE public.vc_s;
DROP TABLE public.vc_t;
RESET search_path;
RESET timezone;
ALTER SEQUENCE vc_s RENAME TO "vc S";
ALTER TABLE vc_t RENAME TO vc_u;
SELECT * FROM vc_v;
SELECT pg_get_viewdef('vc_v');
DROP SEQUENCE "vc S";
DROP VIEW vc_v;
DROP SEQUENCE "vc S";
CREATE VIEW vc_role AS SELECT 'postgres'::regrole;
-- A literal in a condition, in a subquery, in a list of values.
SET timezone = 'America/New_York';
CREATE VIEW vc_w AS SELECT a FROM vc_u WHERE now() > '2020-01-01' AND a IN (SELECT 1 WHERE now() > '2021-01-01 10:00')
  AND now() IN ('2022-01-01', '2023-01-01') OR now() BETWEEN '2024-01-01' AND '2025-01-01';
SET timezone = 'UTC';
SELECT pg_get_viewdef('vc_w');
DROP VIEW vc_w;
CREATE VIEW vc_now AS SELECT 'now'::timestamptz AS t;
SELECT t < now() FROM vc_now;
DROP VIEW vc_now;
-- Arrays of what is of the moment.
CREATE VIEW vc_arrays AS SELECT '{today}'::date[] AS d, '{now,now}'::timestamp[] AS t, '{allballs}'::time[] AS o, '{vc_u,NULL}'::regclass[] AS r,
  '{int4}'::regtype[] AS ty, '{2020-01-01 00:00}'::timestamptz[] AS z;
SELECT pg_get_viewdef('vc_arrays') LIKE '%today%' OR pg_get_viewdef('vc_arrays') LIKE '%now%' AS moment;
SELECT d = ARRAY[current_date] AS d, t[1] < clock_timestamp()::timestamp AS t, o, r, ty, z FROM vc_arrays;
ALTER TABLE vc_u RENAME TO vc_w;
SET search_path = vc_other;
SET timezone = 'Asia/Tokyo';
SELECT o, r, ty, z FROM public.vc_arrays;
RESET search_path;
RESET timezone;
ALTER TABLE vc_w RENAME TO vc_u;
SELECT r FROM vc_arrays;
DROP VIEW vc_arrays;
SELECT '{now}'::timestamp[] AS v \gset
\set first :v
SELECT count(pg_sleep(0.01));
SELECT '{now}'::timestamp[] AS v \gset
SELECT :'first' = :'v' AS same;
CREATE VIEW vc_moment AS SELECT '{now}'::timestamp[] AS t;
CREATE TABLE vc_then AS SELECT t FROM vc_moment;
SELECT v.t = h.t AS same FROM vc_moment v, vc_then h;
DROP TABLE vc_then;
DROP VIEW vc_moment;
-- Defaults and checks.
CREATE TABLE vc_c (r regclass, d text DEFAULT 'vc_other.vc_s'::regclass::text, n bigint DEFAULT nextval('vc_other.vc_s'), l int DEFAULT lastval());
ALTER SEQUENCE vc_other.vc_s RENAME TO renamed;
SELECT column_default FROM information_schema.columns WHERE table_name = 'vc_c' ORDER BY ordinal_position;
INSERT INTO vc_c (r) VALUES ('vc_u') RETURNING *;
SET search_path = vc_other, public;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'vc_c'::regclass ORDER BY adnum;
RESET search_path;
DROP TABLE vc_c;
-- A table's own sequence goes with it, unless a view names it.
CREATE TABLE vc_serial (a serial, b int);
CREATE VIEW vc_next AS SELECT nextval('vc_serial_a_seq');
DROP TABLE vc_serial;
ALTER TABLE vc_serial DROP COLUMN a;
DROP TABLE vc_serial CASCADE;
-- A primary key on which GROUP BY relies.
CREATE TABLE vc_g (a int PRIMARY KEY, b int, c int);
CREATE VIEW vc_gv AS SELECT a, b, count(*) FROM vc_g GROUP BY a;
CREATE VIEW vc_gw AS SELECT a, count(*) FROM vc_g GROUP BY a;
CREATE VIEW vc_gx AS SELECT * FROM (SELECT a, max(c) + b AS m FROM vc_g GROUP BY a HAVING b > 0) x;
ALTER TABLE vc_g DROP CONSTRAINT vc_g_pkey;
ALTER TABLE vc_g DROP CONSTRAINT vc_g_pkey CASCADE;
SELECT * FROM vc_gv;
SELECT * FROM vc_gw;
DROP TABLE vc_g CASCADE;
DROP TABLE vc_u;
DROP SCHEMA vc_other CASCADE;
