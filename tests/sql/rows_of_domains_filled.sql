-- JSON as rows whose columns are of domains, in FROM and elsewhere.
\set VERBOSITY terse

CREATE DOMAIN mail AS text CHECK (value ~ '@');
CREATE DOMAIN short AS varchar(4);
CREATE TABLE member (id int, name text, mail mail, tags short[]);

SELECT * FROM json_to_recordset('[{"a": 1, "m": "a@b"}, {"a": 2}]') AS r (a int, m mail);
SELECT * FROM json_to_recordset('[{"a": 1, "m": "none"}]') AS r (a int, m mail);
SELECT m FROM jsonb_to_record('{"m": "x@y"}') AS r (m mail);
SELECT m FROM jsonb_to_record('{"m": "xy"}') AS r (m mail);
SELECT s FROM jsonb_to_record('{"s": "four"}') AS r (s short);
SELECT s FROM jsonb_to_record('{"s": "five5"}') AS r (s short);
SELECT x.m || '!' AS said FROM json_to_record('{"m": "x@y"}') AS x (m mail) WHERE x.m LIKE 'x%';

SELECT * FROM json_populate_record(NULL::member, '{"id": 1, "name": "q", "mail": "z@y", "tags": ["a", "b"]}');
SELECT * FROM json_populate_record(NULL::member, '{"id": 1, "name": "q", "mail": "zy"}');
SELECT x.mail, x FROM jsonb_populate_recordset(NULL::member, '[{"id": 1, "mail": "z@y"}, {"id": 2}]') AS x;
SELECT * FROM jsonb_populate_recordset(NULL::member, '[{"id": 1, "mail": "z@y"}]') WITH ORDINALITY AS x (i, n, m, t, o);
SELECT json_populate_recordset(NULL::member, '[{"id": 1, "mail": "z@y"}, {"id": 2}]');
SELECT (json_populate_recordset(NULL::member, '[{"id": 1, "mail": "zy"}]')).mail;
INSERT INTO member SELECT * FROM json_populate_recordset(NULL::member, '[{"id": 1, "name": "a", "mail": "a@b"}, {"id": 2, "name": "b"}]') RETURNING *;
INSERT INTO member (id, mail) SELECT id, mail FROM json_to_recordset('[{"id": 3, "mail": "c@d"}]') AS r (id int, mail mail) RETURNING *;
INSERT INTO member (id, mail) SELECT id, mail FROM json_to_recordset('[{"id": 3, "mail": "cd"}]') AS r (id int, mail mail);
SELECT q.* FROM member AS m, jsonb_populate_record(m, '{"name": "z"}') AS q ORDER BY q.id;
SELECT (x).mail, (x).name FROM (SELECT jsonb_populate_record(m, '{"name": "y"}') AS x FROM member AS m) AS q ORDER BY (x).id;
UPDATE member SET (name, mail) = (SELECT name, mail FROM jsonb_populate_record(member, '{"name": "new"}')) WHERE id = 1 RETURNING *;
UPDATE member SET mail = (SELECT mail FROM jsonb_populate_record(member, '{"mail": "no"}')) WHERE id = 1;
CREATE VIEW filled AS SELECT r.a, r.m FROM json_to_recordset('[{"a": 1, "m": "a@b"}]') AS r (a int, m mail);
SELECT * FROM filled;
DROP VIEW filled;
DROP TABLE member;
DROP DOMAIN mail, short;
