-- A literal behind a type's name, whoever has made the type.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE "Odd Name" AS ENUM ('a', 'b');
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (a int, b text);
SELECT mood 'ok';
SELECT public.mood 'happy' > mood 'sad' AS happier, "Odd Name" 'b', public."Odd Name" 'a';
SELECT posint '7' + 1 AS eight, pair '(1,x)', (pair '(2,y)').b;
SELECT posint '-1';
SELECT mood 'none';
SELECT nosuchtype 'x';
SELECT pg_catalog.int4 '5' + 1 AS six, - posint '3' AS minus, mood E'ok', ARRAY[mood 'sad', 'ok'];
CREATE TABLE people (name text, current mood DEFAULT mood 'ok', CHECK (current <> mood 'sad'));
INSERT INTO people VALUES ('Ann', DEFAULT), ('Bob', mood 'happy');
INSERT INTO people VALUES ('Cy', mood 'sad');
SELECT * FROM people WHERE current >= mood 'ok' ORDER BY name;
UPDATE people SET current = mood 'ok' WHERE current = public.mood 'happy';
CREATE VIEW fine AS SELECT name FROM people WHERE current = mood 'ok';
SELECT pg_get_viewdef('fine'::regclass);
SELECT * FROM fine ORDER BY name;
PREPARE p(mood) AS SELECT $1 < mood 'happy' AS less;
EXECUTE p(mood 'ok');
SELECT CASE WHEN current = mood 'ok' THEN mood 'sad' ELSE mood 'happy' END FROM people ORDER BY name;
SELECT name 'aName';
-- Neither is one of these.
SELECT name mood 'ok' FROM people;
SELECT 1 mood 'ok';

-- A whole row that is cast.
SELECT (people.*::text) FROM people ORDER BY name;
SELECT row(people.*::people) FROM people ORDER BY name;

-- A column in the notation of functions, even if there is a type of its name.
CREATE TABLE owners (id int, name text, text text);
INSERT INTO owners VALUES (1, 'x', 'y');
SELECT name(owners), text(owners), owners.name, id(owners) FROM owners;
SELECT name(o) FROM owners o;
SELECT bpchar(people) FROM people;

-- No table has others below it: ONLY says nothing.
CREATE INDEX people_only ON ONLY people (name);
CREATE UNIQUE INDEX owners_only ON ONLY owners (id);
SELECT indexdef FROM pg_indexes WHERE tablename IN ('people', 'owners') ORDER BY indexdef;

-- What is dropped was never there.
DROP TABLESPACE nosuch;
DROP TABLESPACE IF EXISTS nosuch;
DROP LANGUAGE nosuch;
DROP LANGUAGE IF EXISTS nosuch;

SELECT make_timestamptz(1973, 07, 15, 08, 15, 55.33, '+2') = '1973-07-15 08:15:55.33+2' AS same;
SELECT make_timestamptz(1973, 07, 15, 08, 15, 55.33, '2');
SELECT make_timestamptz(2014, 12, 10, 10, 10, 10, '+16');
SELECT make_timestamptz(2014, 12, 10, 10, 10, 10, '-16');
SELECT make_timestamptz(2014, 12, 10, 10, 10, 10, '-15:59') = '2014-12-10 10:10:10-15:59' AS same;

DROP VIEW fine;
DROP TABLE people, owners;
DROP TYPE mood, "Odd Name", pair;
DROP DOMAIN posint;

SELECT to_regrole('foo.bar');
SELECT to_regnamespace('foo.bar');
SELECT 'a.b'::regrole;
SELECT to_regrole('nosuchrole') IS NULL AS none, to_regnamespace('"no.such"') IS NULL AS none;
