-- Back references and lookaround in regular expressions.
SELECT 'abab' ~ '^(ab)\1$' AS a, 'abac' ~ '^(ab)\1$' AS b, 'xAax' ~* '(a)\1' AS c, 'xAbx' ~* '(a)\1' AS d, 'aa bb' ~ '(\w)\1 (\w)\2' AS e, 'aa ba' ~ '(\w)\1 (\w)\2' AS f;
SELECT regexp_replace('hello wood', '(.)\1', '<\1>', 'g') AS a, regexp_replace('aabbc', '(.)\1', '', 'g') AS b, substring('one two two three' from '\m(\w+) \1\M') AS c;
SELECT regexp_match('abcabc-', '(a)(bc)\1\2') AS a, regexp_count('aabbcdd', '(.)\1') AS b, regexp_instr('abccd', '(.)\1') AS c, regexp_substr('xyzzy', '(.)\1') AS d, regexp_split_to_array('oneXXtwoYYthree', '([XY])\1') AS e;
SELECT regexp_matches('aa-bb-cc', '(\w)\1', 'g');
SELECT 'foobar' ~ 'foo(?=bar)' AS a, 'foobaz' ~ 'foo(?=bar)' AS b, 'foobaz' ~ 'foo(?!bar)' AS c, 'foobar' ~ 'foo(?!bar)' AS d, 'foobar' ~ '(?<=foo)bar' AS e, 'fozbar' ~ '(?<=foo)bar' AS f, 'fozbar' ~ '(?<!foo)bar' AS g;
SELECT regexp_replace('price 100 200', '\d+(?= )', 'n') AS a, regexp_match('key=value', '(?<=(k)ey=)(\w+)') AS b, regexp_replace('1234567', '(\d)(?=(\d{3})+$)', '\1,', 'g') AS c;
SELECT regexp_split_to_array('aXbXc', '(?=X)') AS a, 'ab' ~ '^(?:(a)|b)\1' AS b, regexp_match('aXbbX', '(X|b)\1') AS c;
SELECT 'a' ~ '\1';
SELECT 'a' ~ '(a)\2';
SELECT 'a' ~ '(a(?=\1))';
SELECT 'a' ~ '(a)\1(';
CREATE TABLE rex (a text CHECK (a !~ '(.)\1\1'));
INSERT INTO rex VALUES ('aab'), ('abab');
INSERT INTO rex VALUES ('xaaax');
SELECT a FROM rex WHERE a ~ '^(.+)\1$';
BEGIN READ ONLY;
ANALYZE rex;
DELETE FROM rex;
ROLLBACK;
BEGIN;
ANALYZE rex;
ROLLBACK;
DROP TABLE rex;
-- A type that a view names in a constant.
CREATE TYPE rex_mood AS ENUM ('ok');
CREATE VIEW rex_v AS SELECT 'rex_mood'::regtype AS r;
DROP TYPE rex_mood;
ALTER TYPE rex_mood RENAME TO "Rex mood";
SELECT * FROM rex_v;
SELECT pg_get_viewdef('rex_v');
DROP VIEW rex_v;
DROP TYPE "Rex mood";
-- which of several matches: the longest, or the shortest if the first quantifier says so; then the groups
SELECT regexp_match('xyz', '.|...'), substring('foobar' from 'o|oob|oo'), regexp_replace('foobarfoo', 'fo|foo', 'X', 'g'), regexp_split_to_array('a--b-c', '-|--'), regexp_count('aaa', 'a|aa'), regexp_match('aab', 'a*(ab)?');
SELECT substring('XY1234Z', 'Y*([0-9]{1,3})'), substring('XY1234Z', 'Y*?([0-9]{1,3})'), regexp_match('abc01234xyz', '(.*)(\d+)(.*)'), regexp_match('abc01234xyz', '(.*?)(\d+)(.*)'), regexp_match('abc01234xyz', '(?:(.*?)(\d+)(.*)){1,1}');
SELECT regexp_match('llmmmfff', '^(l*){1,1}?(.*)(f*)$'), regexp_match('llmmmfff', '^(l*){1,1}?(.*){1,1}?(f*)$'), regexp_match('llmmmfff', '^(l*?){1,1}(.*)(f*)$'), regexp_match('llmmmfff', '^(l*)(.*?)(f*)$');
SELECT regexp_match('<b>x</b><b>y</b>', '<b>(.*?)</b>'), regexp_match('key: value here', '^(.*?):\s*(.*)$'), regexp_matches('ab12cd345', '[a-z]+?\d+', 'g'), regexp_match('word boundary', '\y\w+\y|\y\w+ \w+\y'), substring('abcabc' similar '%#"b%#"c' escape '#');
SELECT 'abc' ~ 'a**';
SELECT 'a{x' ~ 'a{x', 'aa' ~ '^a{2}$', 'a}' ~ 'a}', length(regexp_replace(repeat('abc ', 200), '(a|ab)(c|bc)', 'x', 'g'));
-- what is no expression, and what is told of it
SELECT 'a' ~ '^*';
SELECT 'a' ~ '\y{2}';
SELECT 'a' ~ 'a|*';
SELECT 'a' ~ 'a{2}{3}';
SELECT 'a' ~ 'a{2,1}';
SELECT 'a' ~ 'a{256}';
SELECT 'a' ~ 'a{1';
SELECT 'a' ~ '[a';
SELECT 'a' ~ '[b-a]';
SELECT 'a' ~ '[a-\d]';
SELECT 'a' ~ '[[:foo:]]';
SELECT 'a' ~ '[[.foo.]]';
SELECT 'a' ~ '(a';
SELECT 'a' ~ 'a)';
SELECT 'a' ~ '(?<a)';
SELECT 'a' ~ '(?=a)*';
SELECT 'a' ~ '\q';
SELECT 'a' ~ 'a\';
SELECT 'a' ~ '\u12';
SELECT 'a' ~ '(a\1)';
SELECT 'a' ~ '(?z)a';
SELECT 'a' ~ '***?a';
SELECT regexp_match('a', 'a', 'qx');
-- classes, escapes, basic and extended expressions, white space and comments
SELECT 'Ä' ~ '[[:alpha:]]' AS a, 'ä' ~ '[[:upper:]]' AS b, 'ä' ~* '[[:upper:]]' AS c, '٣' ~ '\d' AS d, '٣' ~ '[[:alnum:]]' AS e, chr(160) ~ '\s' AS f, chr(8195) ~ '\s' AS g, '€' ~ '[[:punct:]]' AS h, 'x' ~ '[\W\d]' AS i, '-' ~ '[[.hyphen.]]' AS j, 'a' ~ '[[=a=]]' AS k, 'ö' ~ '\ö' AS l;
SELECT regexp_match('aa', '\x61\141\0141?'), regexp_match('é', '[a-\U7ffffffe]'), regexp_match('a-b~c&d[e]', '[-~&\[\]]+b[~]c[&&]d[[]e[]]'), regexp_match('foo bar', '[[:<:]]b.*[[:>:]]'), regexp_match('abc', '(?#foo)b(?#bar)c'), regexp_match('b{', 'b{'), regexp_match('a1a0', '(a)1\10');
SELECT regexp_match('a b', E'a[ ]b # foo', 'x'), regexp_match('abab', '\(ab\)*\1', 'b'), regexp_match('a+', 'a+', 'e'), regexp_match('a)', '(?e)a)'), regexp_replace('foo.bar', 'o.b', '<\&>', 'q'), regexp_match('A.B', '***=.b', 'i');
SELECT ('ab'||chr(10)||'c') ~ '(?n)b\Dc' AS a, ('ab'||chr(10)||'c') ~ '(?n)b[^x]c' AS b, ('ab'||chr(10)||'c') ~ '(?p)b$' AS c, ('ab'||chr(10)||'c') ~ '(?w)b$' AS d;
-- a group that is repeated has what its last repetition is left with
SELECT regexp_match('foobar', '([a-o]+)*b'), regexp_match('abcd', '(\w+)+'), regexp_match('abcd', '((\w)\w*)+'), regexp_match('aaa', '(a*){2}'), regexp_match('aaa', '(a*?){2,3}'), regexp_match('abab', '(ab|a|b)+'), substring('x=1;y=22' from '\w{1,2}?(.*)+\d|b');
-- groups that are repeated no times have their numbers, and what matches nothing may be repeated
SELECT regexp_matches('ab', 'b(a){0}'), regexp_match('bca', '(?:b|(c)(a){0})*'), substring('ab' from 'b(a){0}'), regexp_match('b', '(a*){0}b');
SELECT 'x' ~ '()+(?=x)' AS a, 'a' ~ '(){1,}a(?!b)' AS b, regexp_match('a', '()*a'), regexp_match('a', '(^)*a'), regexp_match('a', '(^){0}a'), regexp_match('ab', '(b{0})?(?=a)'), regexp_match('ab', '(?:)*(?:){0}(a)(?!c)');
-- many groups
SELECT 'x' ~ string_agg('b' || n || '(bc)', '|' ORDER BY n) AS a, 'b77bc' ~ string_agg('b' || n || '(bc)', '|' ORDER BY n) AS b FROM generate_series(1, 1500) n;
