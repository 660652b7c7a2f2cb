-- The client's encoding: its names, what functions convert, and what a client cannot be told.
\set VERBOSITY verbose
\set SHOW_CONTEXT never
SHOW client_encoding;
SET client_encoding = 'LATIN1';
SHOW client_encoding;
SELECT pg_client_encoding(), current_setting('client_encoding');
SELECT name, setting FROM pg_settings WHERE name = 'client_encoding';
SET client_encoding TO 'iso-8859-15';
SHOW client_encoding;
SET NAMES 'win1251';
SHOW client_encoding;
SET client_encoding = 'Shift_JIS';
SHOW client_encoding;
SET client_encoding = 'SQL_ASCII';
SHOW client_encoding;
RESET client_encoding;
SHOW client_encoding;
BEGIN;
SET LOCAL client_encoding = 'KOI8R';
SHOW client_encoding;
COMMIT;
SHOW client_encoding;
BEGIN;
SET client_encoding = 'GBK';
ROLLBACK;
SHOW client_encoding;
SELECT set_config('client_encoding', 'euc_jp', false);
SHOW client_encoding;
RESET client_encoding;
-- What is told is in it or is an error; the session goes on.
\set VERBOSITY default
SET client_encoding = 'LATIN1';
SELECT 'plain' AS a;
SELECT chr(8364) AS euro;
SELECT 1 AS goes_on;
SELECT 'x' AS a, chr(8364) AS b FROM generate_series(1, 3);
DO $$ BEGIN RAISE EXCEPTION 'costs 5 %', chr(8364); END $$;
COPY (SELECT chr(8364)) TO STDOUT;
RESET client_encoding;
-- No encodings, and none of others.
SET client_encoding = 'LATIN11';
SET client_encoding = '';
SELECT convert_from('\x41', 'nonsense');
-- Every encoding there is a table of, there and back.
SELECT e, convert_to(t, e), convert_from(convert_to(t, e), e) = t AS same
FROM (VALUES ('LATIN1', 'Gr' || chr(252) || 'n'), ('LATIN2', chr(322)), ('LATIN3', chr(295)), ('LATIN4', chr(312)), ('LATIN5', chr(287)),
    ('LATIN6', chr(331)), ('LATIN7', chr(371)), ('LATIN8', chr(7777)), ('LATIN9', chr(8364)), ('LATIN10', chr(537)),
    ('WIN1250', chr(8364)), ('WIN1251', chr(1046)), ('WIN1252', chr(8364)), ('WIN1253', chr(955)), ('WIN1254', chr(351)), ('WIN1255', chr(1488)),
    ('WIN1256', chr(1575)), ('WIN1257', chr(371)), ('WIN1258', chr(8363)), ('WIN866', chr(1046)), ('WIN874', chr(3585)), ('KOI8R', chr(1046)),
    ('KOI8U', chr(1111)), ('ISO_8859_5', chr(1046)), ('ISO_8859_6', chr(1575)), ('ISO_8859_7', chr(955)), ('ISO_8859_8', chr(1488)),
    ('EUC_JP', chr(26085) || chr(65393) || chr(19970)), ('SJIS', chr(34920) || chr(65393)), ('EUC_KR', chr(54620)), ('UHC', chr(44034)),
    ('EUC_CN', chr(27721) || chr(8213)), ('GBK', chr(19970)), ('GB18030', chr(252) || chr(27721) || chr(119070)), ('BIG5', chr(21151))) v (e, t);
-- A table of all that one byte is.
SELECT e, md5(string_agg(convert_from(decode(to_hex(b), 'hex'), e), '' ORDER BY b))
FROM unnest(ARRAY['LATIN1', 'LATIN2', 'LATIN4', 'LATIN5', 'LATIN6', 'LATIN7', 'LATIN8', 'LATIN9', 'LATIN10', 'WIN1256', 'WIN866', 'KOI8R', 'KOI8U', 'ISO_8859_5']) e,
    generate_series(128, 255) b GROUP BY e ORDER BY e;
-- And of what several bytes are.
SELECT md5(string_agg(convert_from(set_byte(set_byte('\x0000', 0, a), 1, b), 'EUC_CN'), '' ORDER BY a, b)) FROM generate_series(176, 214) a, generate_series(161, 254) b;
SELECT md5(string_agg(convert_from(set_byte(set_byte('\x0000', 0, a), 1, b), 'EUC_KR'), '' ORDER BY a, b)) FROM generate_series(176, 200) a, generate_series(161, 254) b;
SELECT md5(string_agg(convert_from(set_byte(set_byte('\x0000', 0, a), 1, b), 'UHC'), '' ORDER BY a, b)) FROM generate_series(129, 160) a, generate_series(145, 254) b;
SELECT md5(string_agg(convert_from(set_byte(set_byte('\x0000', 0, a), 1, b), 'SJIS'), '' ORDER BY a, b)) FROM generate_series(137, 151) a, generate_series(64, 126) b;
SELECT md5(string_agg(convert_from(set_byte(set_byte('\x0000', 0, a), 1, b), 'BIG5'), '' ORDER BY a, b)) FROM generate_series(164, 197) a, generate_series(64, 126) b;
SELECT md5(string_agg(convert_to(chr(c), 'GB18030')::text, '' ORDER BY c)) FROM generate_series(128, 55295) c;
SELECT md5(string_agg(convert_to(chr(c), 'GBK')::text, '' ORDER BY c)) FROM generate_series(19968, 40869) c;
SELECT md5(string_agg(convert_to(chr(c), 'EUC_JP')::text, '' ORDER BY c)) FROM generate_series(8544, 8553) c;
SELECT md5(string_agg(convert_to(chr(c), 'SJIS')::text, '' ORDER BY c)) FROM generate_series(8544, 8553) c;
-- What is no character, and what the other side does not have.
SELECT convert_from('\x81', 'WIN1252');
SELECT convert_from('\x95', 'SJIS');
SELECT convert_from('\x9520', 'SJIS');
SELECT convert_from('\xc620', 'EUC_JP');
SELECT convert_from('\x8fa1', 'EUC_JP');
SELECT convert_from('\xa200', 'BIG5');
SELECT convert_from('\x4100', 'LATIN2');
SELECT convert_to(chr(8364), 'LATIN1');
SELECT convert_to(chr(26085), 'KOI8R');
SELECT convert('\xfc', 'LATIN1', 'UTF8'), convert('\xe282ac', 'UTF8', 'LATIN9');
SELECT length('\xc6fccbdc'::bytea, 'EUC_JP'), length('\x955cb1'::bytea, 'SJIS');
SELECT pg_char_to_encoding('mskanji'), pg_encoding_to_char(35), pg_encoding_to_char(99);
