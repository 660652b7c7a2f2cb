-- XMLELEMENT and its like, their errors, and how they are shown in views and constraints.
\set VERBOSITY terse
SELECT xmlelement(name a), xmlelement(name "b c", 'x'), xmlelement(name d, xmlattributes(1 AS e, 'f' AS "g:h", NULL AS i)), xmlelement(name j, NULL), xmlelement(name k, '');
SELECT xmlelement(name a, xmlattributes('<>&"''ä' AS b), '<>&"''ä', xml '<c/>', xmlelement(name d, 1), true, 1.50, NULL, ARRAY[1, NULL, 3]);
SELECT xmlelement(name a, xmlattributes(E'1\n2\t3\r4' AS b), E'1\n2\r3');
SELECT xmlelement(name t, date '2020-02-03', timestamp '2020-02-03 04:05:06.789', interval '1 day 02:00', time '01:02:03', row(1, '<'), '{"a": 1}'::jsonb);
SET timezone = 'UTC';
SELECT xmlelement(name t, timestamptz '2020-02-03 04:05:06+01');
SET timezone = 'Asia/Kolkata';
SET datestyle = 'German';
SELECT xmlelement(name t, timestamptz '2020-02-03 04:05:06+01', date '0044-03-15 BC'), xmlforest(date '2020-02-03' AS d);
RESET datestyle;
RESET timezone;
SELECT xmlelement(name t, date 'infinity');
SELECT xmlelement(name t, timestamp '-infinity');
SELECT xmlelement(name b, '\x00ff10'::bytea), length(xmlelement(name b, repeat('x', 200)::bytea)::text), xmlelement(name b, xmlattributes('\xff'::bytea AS c));
SET xmlbinary = hex;
SELECT xmlelement(name b, '\x00ff10'::bytea), xmlforest('\xab'::bytea AS c);
RESET xmlbinary;
SELECT xmlelement(name a, xmlattributes('unnamed'));
SELECT xmlelement(name a, xmlattributes(1 AS b, 2 AS b));
SELECT xmlelement(name a, xmlattributes(x, y AS z), x + 1) FROM (VALUES (1, 'b')) AS t(x, y);
SELECT xmlelement(name a, xmlattributes(t.x)) FROM (VALUES (1)) AS t(x);
SELECT xmlforest(1 AS a, NULL AS b, 'c' AS "d e", x, t.x AS "_x", x AS ":y", x AS "1z", x AS "xml") FROM (VALUES (7)) AS t(x);
SELECT xmlforest(NULL AS a), xmlforest(NULL AS a) IS NULL, xmlforest('' AS b);
SELECT xmlforest(1);
SELECT xmlforest(1 + 1);
SELECT xmlconcat('<a/>', NULL, 'b', xml '<c/>'), xmlconcat(NULL), xmlconcat(NULL, NULL);
SELECT xmlconcat('<?xml version="1.1"?><a/>', '<?xml version="1.1" standalone="no"?><b/>'), xmlconcat('<?xml version="1.0" standalone="yes"?><a/>', '<?xml version="1.0" standalone="yes"?><b/>'),
    xmlconcat('<?xml version="1.0" standalone="yes"?><a/>', '<?xml version="1.0" standalone="no"?><b/>'), xmlconcat('<?xml version="1.1"?><a/>', '<b/>');
SELECT xmlconcat(1, 2);
SELECT xmlconcat('<a');
SELECT xmlcomment('a'), xmlcomment(''), xmlcomment(NULL);
SELECT xmlcomment('a-');
SELECT xmlcomment('a--b');
SELECT xmlparse(DOCUMENT '<a/>'), xmlparse(CONTENT 'a'), xmlparse(CONTENT ' <a> </a> ' STRIP WHITESPACE), xmlparse(DOCUMENT ' <a> </a> ' PRESERVE WHITESPACE), xmlparse(CONTENT NULL);
SELECT xmlparse(DOCUMENT 'a');
SELECT xmlparse(CONTENT '<a');
SELECT xmlparse(DOCUMENT 1);
SELECT xmlpi(name a), xmlpi(name "b c", 'd'), xmlpi(name a, '   b '), xmlpi(name a, NULL);
SELECT xmlpi(name xml);
SELECT xmlpi(name "XML", NULL);
SELECT xmlpi(name a, 'b?>c');
SELECT xmlroot('<a/>', version '1.0'), xmlroot('<a/>', version '1.1', standalone yes), xmlroot('<a/>', version NO VALUE, standalone no), xmlroot(xml '<?xml version="1.1" standalone="yes"?><a/>', version NO VALUE),
    xmlroot('<?xml version="1.1" standalone="yes"?><a/>', version '1.2', standalone NO VALUE), xmlroot(NULL, version '1.0');
SELECT xmlserialize(CONTENT xml '<a/>' AS text), xmlserialize(DOCUMENT '<a/>' AS varchar), xmlserialize(CONTENT 'abc' AS char(5)), pg_typeof(xmlserialize(CONTENT 'abc' AS char(5)));
SELECT xmlserialize(DOCUMENT 'abc' AS text);
SELECT xmlserialize(CONTENT 'abcdef' AS varchar(3));
SELECT xmlserialize(CONTENT 'abc' AS int);
SELECT xml '<a/>' IS DOCUMENT, xml 'a' IS DOCUMENT, xml '<a/>' IS NOT DOCUMENT, xml 'a' IS NOT DOCUMENT, NOT xml '<a/>' IS DOCUMENT, NULL::xml IS DOCUMENT, '<a/>' IS DOCUMENT AND true;
SELECT '<' IS DOCUMENT;
SELECT 1 IS DOCUMENT;
SELECT xmlvalidate('<a/>', 'b');
SELECT xmlagg(x), xmlagg(x ORDER BY x::text DESC), xmlagg(x) FILTER (WHERE x::text <> 'b') FROM (VALUES (xml '<a/>'), ('b'), (NULL), ('<c/>')) AS t(x);
SELECT xmlagg(x) FROM (VALUES (xml '<?xml version="1.1"?><a/>'), ('<?xml version="1.1"?><b/>')) AS t(x);
SELECT xmlagg(x) FROM (VALUES (xml '<?xml version="1.0" standalone="yes"?><a/>')) AS t(x);
SELECT xmlagg(x) IS NULL FROM (VALUES (xml '<a/>')) AS t(x) WHERE false;
SELECT n, xmlagg(xmlelement(name i, i)) OVER (ORDER BY n, i) FROM (VALUES (1, 2), (1, 3), (2, 4)) AS t(n, i);
-- Words of the grammar are no functions, and names like others.
SELECT "xmlelement"(1);
SELECT pg_catalog.xmlconcat('a');
SELECT xmlelement(a);
SELECT xmlparse('a');
SELECT xmlserialize(CONTENT 'a');
SELECT xmlroot('a');
SELECT content, document, name, version, standalone FROM (VALUES (1, 2, 3, 4, 5)) AS t(content, document, name, version, standalone);

-- Shown.
CREATE TABLE xml_shown (x xml DEFAULT xmlelement(name a, xmlattributes(1 AS b), 'c'), t text, n int, CHECK (x IS DOCUMENT), CHECK (x IS NOT DOCUMENT OR n > 0));
CREATE VIEW xml_view AS
SELECT xmlelement(name "a b", xmlattributes(n, t AS "c:d", 'lit' AS l), x, 'lit', n + 1, NULL) AS a, xmlforest(n, t AS "_x", n * 2 AS z) AS b,
    xmlparse(DOCUMENT t PRESERVE WHITESPACE) AS c, xmlparse(CONTENT 'x') AS d, xmlpi(name foo) AS e, xmlpi(name "F-o", t) AS f,
    xmlroot(x, version '1.0', standalone NO VALUE) AS g, xmlroot(x, version NO VALUE) AS h, xmlroot(x, version t, standalone yes) AS i,
    xmlserialize(DOCUMENT x AS varchar(10)) AS j, xmlserialize(CONTENT x AS text) AS k, x IS DOCUMENT AS l, x IS NOT DOCUMENT AS m,
    xmlconcat(x, '<a/>', NULL), xmlcomment('a'), t::xml AS n, xmlelement(name o, xmlelement(name p, xmlagg(x) OVER ())) AS o
FROM xml_shown WHERE x IS DOCUMENT AND n > 0 OR t IS NULL;
\d xml_shown
\d+ xml_view
SELECT pg_get_viewdef('xml_view'::regclass);
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'xml_shown'::regclass ORDER BY conname;
INSERT INTO xml_shown (t, n) VALUES ('<t/>', 1);
INSERT INTO xml_shown VALUES ('b', 't', 1);
INSERT INTO xml_shown VALUES ('b', 't', 0);
SELECT * FROM xml_view;
ALTER TABLE xml_shown RENAME n TO "N N";
SELECT pg_get_viewdef('xml_view'::regclass, true);
SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'xml_view' ORDER BY ordinal_position LIMIT 3;
CREATE INDEX xml_as_text ON xml_shown (xmlserialize(CONTENT x AS text));
CREATE INDEX xml_as_text ON xml_shown ((xmlserialize(CONTENT x AS text)));
SELECT pg_get_indexdef('xml_as_text'::regclass);
DROP TABLE xml_shown CASCADE;
SELECT xmlelement(name r, t.*), xmlforest(t.*), xmlforest(t.*, t.x) FROM (VALUES (1, 'a')) AS t(x, y);
