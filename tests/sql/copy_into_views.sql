-- COPY into a view whose trigger takes the rows.
CREATE TABLE copied(id serial, name text);
CREATE VIEW copied_v AS SELECT ''::text AS str, 0 AS n;
COPY copied_v FROM STDIN;
\.
CREATE FUNCTION copied_f() RETURNS trigger AS $$
BEGIN
  IF NEW.str = 'no' THEN RETURN NULL; END IF;
  INSERT INTO copied (name) VALUES (NEW.str || coalesce(NEW.n::text, '-'));
  RETURN NEW;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER copied_t INSTEAD OF INSERT ON copied_v FOR EACH ROW EXECUTE FUNCTION copied_f();
COPY copied_v FROM STDIN;
test1	1
no	2
test2	3
\.
COPY copied_v (str) FROM STDIN;
test3
\.
BEGIN;
CREATE VIEW copied_v2 AS SELECT ''::text AS str, 0 AS n;
CREATE TRIGGER copied_t INSTEAD OF INSERT ON copied_v2 FOR EACH ROW EXECUTE FUNCTION copied_f();
COPY copied_v2 FROM STDIN (FORMAT csv);
x,1
\.
SELECT * FROM copied ORDER BY id;
ROLLBACK;
SELECT * FROM copied ORDER BY id;
COPY copied_v FROM STDIN;
y	z
\.
DROP VIEW copied_v;
DROP FUNCTION copied_f();
DROP TABLE copied;
-- Labels of an enum that are not to be used yet.
CREATE TYPE copied_e AS ENUM ('good');
BEGIN;
ALTER TYPE copied_e ADD VALUE 'new';
SAVEPOINT x;
SELECT enum_first(NULL::copied_e);
SELECT enum_last(NULL::copied_e);
ROLLBACK TO x;
SELECT enum_range(NULL::copied_e);
ROLLBACK;
SELECT enum_last(NULL::copied_e);
DROP TYPE copied_e;
