-- text, varchar, char, bytea, boolean, uuid, and the text functions.
SELECT 'plain', 'it''s', E'tab\there', E'\u00e9\\x', 'a' 'b' AS literal_error;
SELECT 'a'
  'b' AS continued;
SELECT $$dollar 'quoted'$$, $tag$inner $$ stays$tag$, U&'d\0061t\+000061';
SELECT 'abc' || 'def', 'abc' || 1, 'abc' || NULL IS NULL, 1.5 || 'x', concat('a', NULL, 1, true), concat_ws('-', 'a', NULL, 'b');
SELECT length('Stanisław'), char_length(''), octet_length('Stanisław'), bit_length('ab'), length('☃'::text);
SELECT upper('straße ÿ'), lower('ÄÖÜ'), initcap('hello wORLD-wide web');
SELECT substring('Logstead' FROM 4), substring('Logstead' FROM 4 FOR 3), substr('Logstead', 4, 2), substr('Logstead', -1, 4), left('Logstead', 3), right('Logstead', 3), left('Logstead', -3), right('Logstead', -3);
SELECT substring('Logstead' FROM 2 FOR -1);
SELECT position('st' IN 'Logstead'), strpos('Logstead', 'x'), replace('banana', 'an', 'AN'), translate('12345', '143', 'ax'), reverse('héllo'), repeat('ab', 3), repeat('x', -1);
SELECT '[' || trim('  x  ') || ']', '[' || ltrim('  x  ') || ']', '[' || rtrim('  x  ') || ']', trim(BOTH 'x' FROM 'xxaxx'), trim(LEADING 'x' FROM 'xxaxx'), trim(TRAILING 'x' FROM 'xxaxx'), btrim('abcba', 'ab');
SELECT lpad('7', 3, '0'), rpad('ab', 5, 'xy'), lpad('toolong', 3), split_part('a,b,c', ',', 2), split_part('a,b,c', ',', -1), split_part('a', ',', 5);
SELECT ascii('A'), ascii('é'), chr(65), chr(9731), md5('logstead'), to_hex(255), quote_literal('it''s'), quote_ident('Odd'), quote_ident('plain');
SELECT 'abc' LIKE 'a%', 'abc' LIKE '_b_', 'abc' LIKE 'b', 'a%c' LIKE 'a\%c', 'abc' NOT LIKE 'a%', 'ABC' ILIKE 'a%', 'a_c' LIKE 'ax_c' ESCAPE 'x', '' LIKE '%', NULL LIKE 'a' IS NULL;
SELECT 'abc' ~ '^a.c$', 'ABC' ~* 'b', 'abc' !~ 'x', 'abc' !~* 'B', 'foo123' ~ '[0-9]+';
SELECT 'abc' < 'abd', 'a' < 'B', 'Z' < 'a', 'abc' = 'abc ', '' < 'a', 'é' > 'z';
SELECT starts_with('Logstead', 'Log'), greatest('b', 'a', NULL), least('b', 'a'), coalesce(NULL, 'x'), nullif('a', 'a') IS NULL, nullif('a', 'b');
SELECT 'abc'::varchar(2), 'abc'::char(5) || '|', 'abc  '::char(5) = 'abc'::char(3), length('ab   '::char(5));
SELECT 'toolong'::varchar(3)::text || '.', cast('abc' AS character varying), cast('abc' AS character(2));
CREATE TABLE t_txt (id serial PRIMARY KEY, v varchar(5), c char(5), t text, b bytea, f boolean, u uuid);
INSERT INTO t_txt (v, c, t) VALUES ('five5', 'ab', 'any length'), ('', '', ''), (NULL, NULL, NULL);
INSERT INTO t_txt (v) VALUES ('sixsix');
INSERT INTO t_txt (c) VALUES ('sixsix');
INSERT INTO t_txt (v, c) VALUES ('five5   ', 'ab      ');
INSERT INTO t_txt (t) VALUES (12), (true), (1.50);
SELECT id, '[' || v || ']' AS v, '[' || c || ']' AS c, t, length(c), octet_length(c) FROM t_txt ORDER BY id;
SELECT id FROM t_txt WHERE c = 'ab' ORDER BY id;
SELECT id FROM t_txt WHERE v = 'five5' AND t IS NOT NULL;
SELECT string_agg(t, ', ' ORDER BY id) FROM t_txt WHERE t <> '';
-- bytea
SELECT '\xDEADbeef'::bytea, E'\\001a\\\\'::bytea, ''::bytea, 'abc'::bytea;
SELECT '\xabc'::bytea;
SELECT '\xzz'::bytea;
SELECT E'\\9'::bytea;
SELECT length('\x0001ff'::bytea), '\x01'::bytea || '\x02'::bytea, substring('\x010203'::bytea FROM 2 FOR 1), get_byte('\x01ff'::bytea, 1), encode('\x01ff'::bytea, 'hex'), encode('abc'::bytea, 'base64'), decode('YWJj', 'base64'), md5('abc'::bytea);
SELECT '\x01'::bytea < '\x0100'::bytea, '\xff'::bytea > '\x00'::bytea, '\x00'::bytea = '\x00'::bytea;
INSERT INTO t_txt (b) VALUES ('\x00ff00'), ('');
SELECT b, length(b) FROM t_txt WHERE b IS NOT NULL ORDER BY b;
-- boolean
SELECT true, false, 't'::boolean, 'YES'::boolean, 'on'::boolean, '0'::boolean, 'off'::bool, ' tr '::bool, 'n'::bool;
SELECT 'maybe'::boolean;
SELECT true AND NULL, false AND NULL, true OR NULL, false OR NULL, NOT NULL::boolean, true <> false, true > false;
SELECT NULL IS NULL, 1 IS NOT NULL, NULL = NULL, true IS TRUE, NULL::boolean IS NOT TRUE, false IS FALSE, NULL::boolean IS UNKNOWN, 1 IS DISTINCT FROM NULL, NULL IS NOT DISTINCT FROM NULL;
SELECT bool_and(x), bool_or(x), every(x) FROM (VALUES (true), (false), (NULL)) AS v(x);
SELECT true::text, 'true'::text::boolean, 1::boolean, true::int;
INSERT INTO t_txt (f) VALUES ('yes'), (false);
SELECT id, f FROM t_txt WHERE f OR NOT f ORDER BY f;
-- uuid
SELECT 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid, '{a0eebc999c0b4ef8bb6d6bb9bd380a11}'::uuid;
SELECT 'a0eebc99'::uuid;
SELECT '00000000-0000-0000-0000-000000000001'::uuid < 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid, length(gen_random_uuid()::text);
INSERT INTO t_txt (u) VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
SELECT u FROM t_txt WHERE u = 'A0EEBC999C0B4EF8BB6D6BB9BD380A11';
DROP TABLE t_txt;
