-- bits of bytes
SELECT get_bit('\x00ff10'::bytea, 8), get_bit('\x01'::bytea, 0), get_bit('\x80'::bytea, 7), set_bit('\x0000'::bytea, 9, 1), set_bit('\xff'::bytea, 0, 0), bit_count('\x01ff'::bytea);
SELECT get_bit('\x01'::bytea, 8);
SELECT set_bit('\x01'::bytea, 0, 2);
SELECT set_bit(''::bytea, 0, 1);
SELECT overlay('\x010203'::bytea placing '\xff' from 2), overlay('\x010203'::bytea placing '\xffee' from 1 for 0), overlay('abc'::bytea placing 'Z' from 9 for 3);
SELECT overlay('\x01'::bytea placing '\xff' from 0);
SELECT 'abc'::bytea LIKE 'a%', 'abc'::bytea LIKE '_b_', 'a%c'::bytea LIKE 'a#%c'::bytea ESCAPE '#', '\xff00'::bytea LIKE '%\\x00', 'abc'::bytea NOT LIKE 'x%'::bytea, ''::bytea LIKE '%';
SELECT sha224('abc'), sha384('abc');
SELECT sha512('');
-- encodings
SELECT convert('\xc3a4'::bytea, 'UTF8', 'LATIN1'), convert('\xe4'::bytea, 'latin1', 'utf-8'), convert_to('ä', 'ISO_8859_1'), convert_from('\xe4', 'iso88591'), length('\xc3a4'::bytea, 'utf8'), length('\xc3a4'::bytea, 'latin1');
SELECT convert_to('日', 'LATIN1');
SELECT convert_from('\xff', 'UTF8');
SELECT convert_from('\x41', 'nonsense');
SELECT convert_to('a', 'nonsense');
SELECT to_ascii('a');
SELECT to_ascii('a', 'nonsense');
SELECT pg_encoding_to_char(8), pg_char_to_encoding('win-1252'), pg_char_to_encoding('nonsense');
-- Unicode
SELECT unistr('\0441\043B\043E\043D'), unistr('d\0061t\+000061'), unistr('a\\b'), unistr('\d83d\de00'), unistr('\u00e4\U0001F600');
SELECT unistr('wrong: \db99');
SELECT unistr('wrong: \xyz');
SELECT unistr('wrong: \+110000');
SELECT normalize(U&'\0061\0308bc\0301', NFC) = U&'\00E4b\0107', length(normalize('ä', NFD)), normalize('ﬁ', nfkc), normalize('Å') IS NORMALIZED, U&'\0061\0308' IS NFD NORMALIZED, U&'\0061\0308' IS NOT NFC NORMALIZED, 'a' IS NORMALIZED;
SELECT pg_catalog.normalize('a', 'def');
SELECT parse_ident('Schema1.Table_2'), parse_ident(' "a ""b"" c" . D '), parse_ident('foo.boo[]', false);
SELECT parse_ident('foo.boo[]');
SELECT parse_ident('xxx."');
SELECT parse_ident('a..b');
SELECT parse_ident('a.""');
-- order by bytes, and buckets
SELECT 'a' ~<~ 'b', 'a' ~>=~ 'b', 'a '::char(3) ~<=~ 'a'::char(5), like('abc', 'a%'), notlike('abc', 'a_');
SELECT width_bucket(5, ARRAY[1, 3, 5, 10]), width_bucket(0, ARRAY[1]), width_bucket('b'::text, '{a,c}'), width_bucket('NaN'::float8, ARRAY[1.0, 2.0]::float8[]), width_bucket(1, '{}'::int[]);
SELECT width_bucket(1, ARRAY[1, NULL]);
SELECT width_bucket(1, ARRAY[[1], [2]]);
SELECT pg_size_bytes('1 kB'), pg_size_bytes(' 1.5MB'), pg_size_bytes('-2 gb'), pg_size_bytes('1e3'), pg_size_bytes('.5 tb');
SELECT pg_size_bytes('1 AB');
SELECT pg_size_bytes('x');
-- SIMILAR TO and what it gives a part of
SELECT substring('abcdefg' similar 'a#"(b_d)#"%' escape '#'), substring('abcdefg' from '#"(b_d)#"%' for '#'), substring('Thomas' similar '%#"o_a#"_' escape '#'), substring('abc' similar 'a%' escape '#');
SELECT similar_to_escape('a*#"%#"g*#"x', '#');
SELECT 'ab' SIMILAR TO '(a|b)+', 'a.b' SIMILAR TO 'a.b', 'axb' SIMILAR TO 'a.b', 'ab' SIMILAR TO 'a|ab', 'a' SIMILAR TO '[^b]';
-- spans of time
SELECT (DATE '2001-02-16', DATE '2001-12-21') OVERLAPS (DATE '2001-10-30', DATE '2002-10-30'), (DATE '2001-02-16', INTERVAL '100 days') OVERLAPS (DATE '2001-10-30', DATE '2002-10-30'), (DATE '2001-10-29', DATE '2001-10-30') OVERLAPS (DATE '2001-10-30', DATE '2001-10-31'), (DATE '2001-10-30', DATE '2001-10-30') OVERLAPS (DATE '2001-10-30', DATE '2001-10-31');
SELECT (TIME '10:00', TIME '12:00') OVERLAPS (TIME '11:00', INTERVAL '1 hour'), (TIMESTAMP '2024-01-02', NULL) OVERLAPS (TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-03'), (NULL::timestamp, NULL::timestamp) OVERLAPS (TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-03'), (TIMESTAMP '2024-01-05', NULL) OVERLAPS (TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-03');
SELECT (TIMETZ '10:00+00', TIMETZ '12:00+00') OVERLAPS (TIMETZ '12:30+01', TIMETZ '13:30+01'), NOT (TIME '1:00', TIME '2:00') OVERLAPS (TIME '2:00', TIME '3:00') AS apart;
SELECT (1, 2, 3) OVERLAPS (4, 5);
-- paths that would know of time zones
SELECT jsonb_path_exists_tz('{"a": 1}', '$.a'), jsonb_path_query_first_tz('[1, 2]', '$[*] ? (@ > 1)'), jsonb_path_query_array_tz('[1, 2]', '$[*]'), jsonb_path_match_tz('1', '$ == 1');
SELECT * FROM jsonb_path_query_tz('[1, 2]', '$[*]');
-- What takes values of any type writes them as their types do: a regclass is a name.
CREATE TABLE named_here (id serial PRIMARY KEY);
SELECT 'x' || 'named_here'::regclass, 'named_here'::regclass || 'x', concat('a', 'named_here'::regclass, NULL, true), concat_ws(',', 'int4'::regtype, NULL, 'int8'::regtype);
SELECT format('%s %I %L %s', 'named_here'::regclass, 'named_here'::regclass, 'int4'::regtype, ARRAY['named_here'::regclass]), quote_literal('named_here'::regclass), quote_nullable('int8'::regtype);
SELECT concat(VARIADIC ARRAY['int4'::regtype, 'int8']), format('%s', VARIADIC ARRAY['int4'::regtype]), 'ab'::char(4) || 'x', 'x' || 'ab'::char(4), concat('ab'::char(4), 'x'::name), 1.50 || 'x', 'x' || '{1,2}'::int[]::text, 'x' || date '2026-01-02';
SELECT EXISTS (SELECT FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND pg_get_expr(d.adbin, d.adrelid) = 'nextval(''' || pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass || '''::regclass)') FROM pg_attribute a WHERE a.attrelid = 'named_here'::regclass AND a.attnum = 1;
DROP TABLE named_here;
