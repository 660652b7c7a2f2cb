-- Indexes whose expressions and predicates call functions that users have made.
\set VERBOSITY verbose
\set SHOW_CONTEXT never
CREATE SCHEMA fx; SET search_path = fx;

-- River
CREATE FUNCTION bit_set(b bit(8)) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT get_bit(b, 7) = 1 $$;
CREATE TABLE jobs (id int PRIMARY KEY, k bytea, s bit(8));
INSERT INTO jobs VALUES (1, '\x01', B'00000001'), (2, '\x01', B'00000000'), (3, NULL, B'00000001');
CREATE UNIQUE INDEX jobs_unique ON jobs (k) WHERE k IS NOT NULL AND bit_set(s);
CREATE INDEX ON jobs ((bit_set(s)));
CREATE INDEX ON jobs (bit_set(s), id);
SELECT indexrelid::regclass, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'jobs'::regclass ORDER BY indexrelid;
INSERT INTO jobs VALUES (4, '\x01', B'00000001');
INSERT INTO jobs VALUES (4, '\x01', B'00000000');
UPDATE jobs SET s = B'00000001' WHERE id = 4;
INSERT INTO jobs VALUES (5, '\x01', B'00000001') ON CONFLICT (k) WHERE k IS NOT NULL AND bit_set(s) DO UPDATE SET id = jobs.id + 10 RETURNING *;
INSERT INTO jobs VALUES (5, '\x01', B'00000001') ON CONFLICT (k) WHERE k IS NOT NULL DO NOTHING;
INSERT INTO jobs VALUES (5, '\x01', B'00000001') ON CONFLICT DO NOTHING;
SELECT * FROM jobs ORDER BY id;
\d jobs

-- Kinto: PL/pgSQL
CREATE FUNCTION epoch(ts timestamp) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN (EXTRACT(EPOCH FROM ts) * 1000)::bigint; END; $$;
CREATE TABLE ep (t timestamp, n int);
INSERT INTO ep SELECT timestamp '2020-01-01' + g * interval '1 hour', g FROM generate_series(1, 200) g;
CREATE UNIQUE INDEX ep_epoch ON ep (epoch(t));
ANALYZE ep;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM ep WHERE epoch(t) = 1577840400000;
SELECT * FROM ep WHERE epoch(t) = 1577840400000;
SELECT n FROM ep WHERE epoch(t) > 1577836800000 AND epoch(t) <= 1577851200000 ORDER BY epoch(t) DESC;
RESET enable_seqscan;
INSERT INTO ep VALUES ('2020-01-01 01:00', 0);
INSERT INTO ep VALUES ('2020-01-01 01:00', 0) ON CONFLICT (epoch(t)) DO UPDATE SET n = -1;
UPDATE ep SET t = t - interval '1 hour' WHERE n = 2;
SELECT count(*), min(n) FROM ep;
DELETE FROM ep WHERE epoch(t) = 1577840400000;
INSERT INTO ep VALUES ('2020-01-01 01:00', 1);
COPY ep FROM stdin;
2020-01-01 02:00	7
\.
COPY ep FROM stdin;
2030-01-01 02:00	7
\.
SELECT n FROM ep WHERE epoch(t) = epoch('2030-01-01 02:00');

-- What is not immutable, and what is only said to be
CREATE FUNCTION vol(int) RETURNS int LANGUAGE plpgsql AS 'begin return $1; end';
CREATE FUNCTION stab(int) RETURNS int LANGUAGE plpgsql STABLE AS 'begin return $1; end';
CREATE FUNCTION sqlvol(int) RETURNS int LANGUAGE sql AS 'select $1 + 1';
CREATE FUNCTION sqlrandom(int) RETURNS float LANGUAGE sql AS 'select $1 + random()';
CREATE FUNCTION month(timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT to_char($1, 'YYYY-MM') $$;
CREATE TABLE v (a int, t timestamptz);
CREATE INDEX ON v (vol(a));
CREATE INDEX ON v (stab(a));
CREATE INDEX ON v (sqlvol(a));
CREATE INDEX ON v (sqlrandom(a));
CREATE INDEX ON v (a) WHERE vol(a) > 1;
CREATE INDEX ON v (a) WHERE stab(a) > 1;
CREATE INDEX ON v (month(t));
CREATE INDEX ON v (month(now()));
CREATE INDEX ON v (generate_series(1, a));
CREATE FUNCTION several(int) RETURNS SETOF int LANGUAGE sql IMMUTABLE AS 'select $1';
CREATE INDEX ON v (several(a));
INSERT INTO v VALUES (1, '2020-02-03'), (2, '2021-02-03');
SELECT a FROM v WHERE month(t) = '2021-02';
ALTER TABLE v ADD g text GENERATED ALWAYS AS (stab(a)) STORED;
CREATE TABLE v2 (a int, g int GENERATED ALWAYS AS (vol(a)) STORED);
SELECT indexdef FROM pg_indexes WHERE tablename = 'v' ORDER BY 1;

-- Errors of the function
CREATE FUNCTION inverse(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'begin return 100 / $1; end';
CREATE TABLE e (a int, ok bool);
INSERT INTO e VALUES (1, true), (0, false);
CREATE INDEX e_all ON e (inverse(a));
CREATE INDEX e_ok ON e (inverse(a)) WHERE ok;
INSERT INTO e VALUES (0, true);
INSERT INTO e VALUES (0, false), (5, true);
UPDATE e SET ok = true WHERE a = 0;
SELECT a FROM e WHERE ok AND inverse(a) = 20;
SELECT count(*) FROM e;

-- NULL
CREATE FUNCTION nothing(int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'begin return null; end';
CREATE TABLE nulls (a int);
INSERT INTO nulls VALUES (1), (2), (NULL);
CREATE UNIQUE INDEX ON nulls (nothing(a));
CREATE UNIQUE INDEX nulls_not_distinct ON nulls (nothing(a)) NULLS NOT DISTINCT;
SELECT count(*) FROM nulls WHERE nothing(a) IS NULL;

-- Not unique
CREATE FUNCTION half(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'begin return $1 / 2; end';
CREATE TABLE h (a int, b text);
INSERT INTO h SELECT g, 'x' || g FROM generate_series(1, 6) g;
CREATE UNIQUE INDEX h_half ON h (half(a));
CREATE INDEX h_half ON h (half(a), b);
CREATE INDEX h_half ON h (half(a), b);
CREATE INDEX IF NOT EXISTS h_half ON h (half(a), b);
CREATE INDEX CONCURRENTLY h_con ON h (b, half(a + a));

-- Changes of the table
ALTER TABLE h RENAME a TO aa;
ALTER TABLE h ADD c int DEFAULT 3;
ALTER TABLE h ALTER b TYPE varchar(20);
SELECT pg_get_indexdef('h_half'::regclass);
INSERT INTO h VALUES (9, 'nine', 9);
UPDATE h SET aa = 11 WHERE c = 9;
SET enable_seqscan = off;
SELECT * FROM h WHERE half(aa) = 5;
SELECT * FROM h WHERE half(aa) = 1 ORDER BY aa;
RESET enable_seqscan;
SELECT h FROM h ORDER BY aa LIMIT 1;
SELECT * FROM h ORDER BY aa LIMIT 1;
CREATE TABLE h2 (LIKE h INCLUDING INDEXES);
\d h2
INSERT INTO h2 SELECT * FROM h;
SELECT count(*) FROM h2 WHERE half(aa) = 1;

-- The function: dependencies, replacement
DROP FUNCTION half(int);
ALTER FUNCTION half(int) RENAME TO halved;
SELECT pg_get_indexdef('h_half'::regclass);
CREATE OR REPLACE FUNCTION halved(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'begin return $1 * 2; end';
REINDEX INDEX h_half;
SET enable_seqscan = off;
SELECT aa FROM h WHERE halved(aa) = 22;
RESET enable_seqscan;
REINDEX TABLE h;
SELECT aa FROM h WHERE b = 'x3' AND halved(aa + aa) = 12;
DROP FUNCTION halved(int) CASCADE;
\d h
INSERT INTO h VALUES (12, 'twelve', 1);
SELECT count(*) FROM h;
DROP INDEX jobs_unique;
INSERT INTO jobs VALUES (20, '\x01', B'00000001');
ALTER TABLE jobs DROP s;
SELECT * FROM jobs ORDER BY id;
\d jobs

-- In a transaction, and undone
BEGIN;
CREATE FUNCTION third(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'begin return $1 / 3; end';
CREATE INDEX h_third ON h (third(aa));
INSERT INTO h VALUES (30, 'thirty', 1);
SAVEPOINT s;
CREATE UNIQUE INDEX h_third2 ON h (third(aa));
ROLLBACK TO s;
SELECT count(*) FROM h WHERE third(aa) = 10;
ROLLBACK;
INSERT INTO h VALUES (31, 'thirty-one', 1);
\d h

-- Generated columns, checks and triggers beside it
CREATE FUNCTION twice(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'begin return $1 * 2; end';
CREATE TABLE g (a int, b int GENERATED ALWAYS AS (twice(a)) STORED, CHECK (twice(a) < 1000));
CREATE INDEX g_b ON g (twice(b));
CREATE FUNCTION plus() RETURNS trigger LANGUAGE plpgsql AS 'begin new.a := new.a + 1; return new; end';
INSERT INTO g VALUES (1), (2);
UPDATE g SET a = 10 WHERE a = 1;
SET enable_seqscan = off;
SELECT * FROM g WHERE twice(b) = 40;
CREATE TRIGGER t BEFORE INSERT OR UPDATE ON g FOR EACH ROW EXECUTE FUNCTION plus();
INSERT INTO g VALUES (20);
UPDATE g SET a = 30 WHERE a = 2;
SELECT * FROM g WHERE twice(b) IN (84, 124) ORDER BY a;
RESET enable_seqscan;
INSERT INTO g VALUES (600);
MERGE INTO g USING (VALUES (21), (50)) AS s (x) ON g.a = s.x WHEN MATCHED THEN UPDATE SET a = 70 WHEN NOT MATCHED THEN INSERT VALUES (s.x);
SELECT * FROM g ORDER BY twice(b);

-- Foreign keys change such rows
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int, p int REFERENCES parent ON UPDATE CASCADE ON DELETE SET NULL, note text);
CREATE FUNCTION shout(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'begin return upper($1); end';
CREATE INDEX ON child (shout(note));
INSERT INTO parent VALUES (1), (2);
INSERT INTO child VALUES (1, 1, 'one'), (2, 2, 'two');
UPDATE parent SET id = 10 WHERE id = 1;
DELETE FROM parent WHERE id = 2;
SELECT * FROM child WHERE shout(note) IN ('ONE', 'TWO') ORDER BY id;

-- Several of them, arguments that are more than a column, defaults of arguments
CREATE FUNCTION mix(a int, b text DEFAULT 'z') RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT b || (a + a)::text $$;
CREATE TABLE m (a int, b text);
INSERT INTO m SELECT g, chr(96 + g) FROM generate_series(1, 20) g;
CREATE INDEX m1 ON m (mix(a + 1, lower(b)), b DESC, mix(a) DESC NULLS LAST) WHERE mix(a) > 'z2';
SELECT pg_get_indexdef('m1'::regclass);
SELECT count(*) FROM m WHERE mix(a + 1, lower(b)) = 'c8' AND mix(a) > 'z2';
TRUNCATE m;
INSERT INTO m VALUES (1, 'B');
SELECT * FROM m WHERE mix(a + 1, lower(b)) = 'b4' AND mix(a) >= 'z2';

-- Rights
CREATE ROLE fx_writer;
GRANT USAGE ON SCHEMA fx TO fx_writer;
GRANT ALL ON m TO fx_writer;
CREATE INDEX ON m (twice(a));
REVOKE EXECUTE ON FUNCTION twice FROM PUBLIC;
SET ROLE fx_writer;
INSERT INTO m VALUES (2, 'C');
RESET ROLE;
GRANT EXECUTE ON FUNCTION twice TO fx_writer;
SET ROLE fx_writer;
INSERT INTO m VALUES (2, 'C');
RESET ROLE;
CREATE FUNCTION who(int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'begin return current_user; end';
ALTER TABLE m OWNER TO fx_writer;
GRANT CREATE ON SCHEMA fx TO fx_writer;
CREATE INDEX m_who ON m (who(a));
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT count(*) FROM m WHERE who(a) = 'fx_writer';
RESET enable_seqscan; RESET enable_bitmapscan;
SELECT * FROM m ORDER BY a;

DROP SCHEMA fx CASCADE;
DROP ROLE fx_writer;
