-- Escapes by number in E'...': bytes, code points and pairs of surrogates, and what is wrong with them.
SELECT E'\xc3\xa4\303\244', E'\u00e4\U000000E4', E'\ud83d\ude04 it''s', E'a\\b\n\'c';
SELECT E'\x41\1013' AS "E'\u0041' stays";
SELECT $$E'\xff'$$, 'E''\xff', "a" FROM (SELECT 1 AS "a") t /* E'\xff' */;
SELECT E'wrong: \u061';
SELECT E'wrong: \U0061';
SELECT E'wrong: \udb99';
SELECT E'wrong: \udb99xy';
SELECT E'wrong: \udb99\\';
SELECT E'wrong: \udb99\u0061';
SELECT E'wrong: \ude04';
SELECT E'wrong: \U0000db99\U00000061';
SELECT E'wrong: \U002FFFFF';
SELECT E'wrong: \xff';
SELECT E'wrong: \000';
SELECT U&'wrong: \+2FFFFF';
SELECT U&'wrong: +0061' UESCAPE +;
-- Two literals in one line are no literal and its name.
SELECT 'one' 'two';
SELECT 'one' /* in the way */
  'two' AS x;
SET standard_conforming_strings = off;
SET escape_string_warning = off;
SELECT '\u00e4', unistr('\\0061');
SELECT unistr('wrong: \udb99\u0061');
RESET standard_conforming_strings;
RESET escape_string_warning;
-- Escapes of jsonpath.
SELECT '"\u0041\u{42}\x43\ud83d\ude04"'::jsonpath;
SELECT '"\u"'::jsonpath;
SELECT '$."\u00"'::jsonpath;
SELECT '"\u000g"'::jsonpath;
SELECT '"\u{}"'::jsonpath;
SELECT '"\x4"'::jsonpath;
SELECT '"\ud83d\ud83d"'::jsonpath;
SELECT '$."\ud83dX"'::jsonpath;
SELECT '$."\ude04\ud83d"'::jsonpath;
