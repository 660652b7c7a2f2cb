-- XPath.
\set VERBOSITY terse
SELECT xpath('/a/b', '<a><b>1</b><b c="2"/></a>'), xpath('/a/b/text()', '<a><b>1</b></a>'), xpath('//@c', '<a><b c="&lt;2"/></a>'), xpath('/x', '<a/>'), xpath(NULL, '<a/>'), pg_typeof(xpath('a', '<a/>'));
SELECT xpath('count(//b)', '<a><b/><b/></a>'), xpath('1 div 3', '<a/>'), xpath('1 div 0', '<a/>'), xpath('0 div 0', '<a/>'), xpath('true()', '<a/>'), xpath('"<x>"', '<a/>'), xpath('string(/a)', '<a>x<b>y</b></a>'), xpath('7 mod 4 - 1', '<a/>'), xpath('- 2', '<a/>');
SELECT xpath('/', '<a><b/></a>'), (xpath('/', '<?xml version="1.0" encoding="latin1"?><!-- c --><a/>'))[1]::text;
SELECT xpath('/a/node()', '<a>1<!--2--><?p 3?><![CDATA[<4>]]><b/>5 &amp; 6</a>');
SELECT x, xpath(x, '<r><a i="1">x</a><b i="2"><a i="3">y</a></b><a i="4">z</a><c xml:lang="en-GB"/></r>') FROM unnest(ARRAY[
    '//a', '/r/a', '/r/a[1]', '/r/a[last()]', '(//a)[2]', '//a[2]', '//a[@i>2]', '//a[@i=''3'']/..', '//a[position() mod 2 = 0]', '/r/*[self::b]', '//b/preceding-sibling::a', '//b/following::a/@i',
    '//a[.="y"]/ancestor::*/@i', '//a/ancestor-or-self::a/@i', '//b/descendant::a', '//@i[. > 1 and . < 4]', '//a | //b/@i', '//*[count(*) = 1]/@i', 'name(//b/*)', 'sum(//@i)', '//a[not(text()="x")]/@i',
    'concat("a", 1, true())', 'substring("12345", 2, 3)', 'substring("12345", 1.5, 2.6)', 'substring-before("a=b", "=")', 'substring-after("a=b", "=")', 'translate("abc", "ab", "x")', 'normalize-space("  a  b ")',
    'string-length("äöü")', 'starts-with("abc", "ab")', 'contains("abc", "d")', 'floor(-1.5)', 'ceiling(1.2)', 'round(2.5)', 'round(-2.5)', 'number("x")', 'number(" 1.5 ")', 'boolean(//x)', 'boolean(//a)',
    '//a = "y"', '//a != "y"', '//@i > 3', '//@i = //a', '"1" = 1', 'true() = 1', '//c[lang("en")]', 'local-name(//c/@*)', 'namespace-uri(//c/@*)', '//a[3]', '//b/a[1][@i=3]', '//a[@i="1" or @i="4"]', './/b', 'r/b/a',
    '/r/b/a/../../a', '//text()', '//a/parent::r/@*', 'count(//node())', '/descendant::a[3]', '//a/self::node()/@i', '-(1 + 2) * 3', '2 + 3 = 5', '1 < 2 < 3', '//a[string-length() = 1][2]', 'id("x")[1]']) x
WHERE x NOT LIKE 'id%';
-- Namespaces.
SELECT xpath('//l:p/@id', '<l:d xmlns:l="http://a"><l:p id="1">x</l:p></l:d>', ARRAY[ARRAY['l', 'http://a']]), xpath('//m:p', '<l:d xmlns:l="http://a"><l:p id="1">x</l:p></l:d>', ARRAY[ARRAY['m', 'http://a']]),
    xpath('//p', '<d xmlns="http://a"><p/></d>'), xpath('//x:*', '<d xmlns="http://a" xmlns:b="http://b"><b:p q="1"><r/></b:p></d>', '{{x,http://a}}'), xpath('//*[local-name()="r"]', '<d xmlns="http://a" xmlns:b="http://b"><r b:q="é"><b:s/></r></d>');
SELECT xpath('//x:a', '<a/>', '{}'), xpath('//a', '<a/>', '{}');
SELECT xpath('//x:a', '<a/>');
SELECT xpath('//a', '<a/>', '{{a,b,c}}');
SELECT xpath('//a', '<a/>', '{a,b}');
SELECT xpath('//a', '<a/>', ARRAY[['a', NULL]]);
SELECT xpath('/*', '<x:a/>');
SELECT xpath('/*', '<a xmlns=''&lt;''/>');
SELECT xpath('/*', '<a x:b=""/>');
-- Errors.
SELECT xpath('', '<a/>');
SELECT xpath('//[', '<a/>');
SELECT xpath('a b', '<a/>');
SELECT xpath('a[', '<a/>');
SELECT xpath('foo()', '<a/>');
SELECT xpath('count(1, 2)', '<a/>');
SELECT xpath('$v', '<a/>');
SELECT xpath('/a', 'a');
SELECT xpath('/a', '<a/><b/>');
SELECT xpath('/a', '<a');
SELECT xpath_exists('//b', '<a><b/></a>'), xpath_exists('//c', '<a><b/></a>'), xpath_exists('count(//c)', '<a/>'), xpath_exists('//x:b', '<a xmlns="http://a"><b/></a>', '{{x,http://a}}');
SELECT xmlexists('//b' PASSING '<a><b/></a>'), xmlexists('//c' PASSING BY REF '<a><b/></a>'), xmlexists('//b' PASSING BY VALUE xml '<a/>' BY REF), xmlexists('//b' PASSING NULL);
SELECT xmlexists('//b' PASSING 1);
-- Values with entities.
SELECT xpath('string(/a)', '<!DOCTYPE a [<!ENTITY x "y&#38;lt;z">]><a>1&x;2</a>'), xpath('string(/a/@b)', E'<a b="1\n2&#10;3"/>');
-- In views and constraints, and in an index.
CREATE TABLE xml_paths (id int, x xml, CHECK (xmlexists('/a' PASSING x)), CHECK (NOT xpath_exists('//wrong', x)));
INSERT INTO xml_paths VALUES (1, '<a><k>one</k></a>'), (2, '<a><k>two</k></a>');
INSERT INTO xml_paths VALUES (3, '<b/>');
INSERT INTO xml_paths VALUES (3, '<a><wrong/></a>');
CREATE VIEW xml_paths_view AS SELECT id, (xpath('/a/k/text()', x))[1]::text AS k, xmlexists('//k[.="two"]' PASSING BY REF x) AS two FROM xml_paths WHERE xmlexists('//k' PASSING x);
CREATE INDEX xml_paths_k ON xml_paths (((xpath('/a/k/text()', x))[1]::text));
SELECT * FROM xml_paths_view ORDER BY id;
SELECT id FROM xml_paths WHERE (xpath('/a/k/text()', x))[1]::text = 'two';
\d xml_paths
SELECT pg_get_viewdef('xml_paths_view'::regclass);
DROP TABLE xml_paths CASCADE;
