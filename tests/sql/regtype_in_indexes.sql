-- Types of users named in constants of regtype: in predicates of indexes, defaults and checks, whatever the path is later.
CREATE SCHEMA kept;
SET search_path = kept;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE kinds (
    id int PRIMARY KEY,
    kind regtype DEFAULT 'mood'::regtype CHECK (kind <> 'mood[]'::regtype),
    other regtype DEFAULT 'pg_catalog.int4'::regtype
);
CREATE INDEX kinds_of_mood ON kinds (id) WHERE kind = 'mood'::regtype;
CREATE INDEX kinds_of_arrays ON kinds (other) WHERE other = 'mood[]'::regtype;
INSERT INTO kinds (id) VALUES (1), (2);
INSERT INTO kinds VALUES (3, 'text', 'mood[]');
SET search_path = public;
INSERT INTO kept.kinds (id) VALUES (4);
INSERT INTO kept.kinds VALUES (5, 'kept.mood[]', 'text');
INSERT INTO kept.kinds VALUES (6, 'text', 'kept.mood[]');
SELECT id, kind, other FROM kept.kinds WHERE kind = 'kept.mood'::regtype ORDER BY id;
ALTER TYPE kept.mood RENAME TO feeling;
INSERT INTO kept.kinds (id) VALUES (7);
INSERT INTO kept.kinds VALUES (8, 'text', 'kept.feeling[]');
SELECT id, kind, other FROM kept.kinds WHERE kind = 'kept.feeling'::regtype ORDER BY id;
UPDATE kept.kinds SET kind = 'text' WHERE id = 2;
SELECT id, kind FROM kept.kinds ORDER BY id;
SELECT 'mood'::regtype;
SELECT 'kept.mood'::regtype;
SELECT 'nowhere.mood'::regtype;
SELECT to_regtype('kept.feeling'), to_regtype('feeling'), to_regtype('nowhere.feeling');
DROP TABLE kept.kinds;
DROP SCHEMA kept CASCADE;
