-- The type xml: input, output, casts, storage, and what there is not.
\set VERBOSITY terse
SELECT oid, typname, typlen, typcategory, typarray, typinput, typoutput, typreceive, typsend, typstorage FROM pg_type WHERE typname IN ('xml', '_xml') ORDER BY oid;
SELECT castsource::regtype, casttarget::regtype, castfunc, castcontext, castmethod FROM pg_cast WHERE 'xml'::regtype IN (castsource, casttarget) ORDER BY 1, 2;
SELECT oid, proname, proargtypes::regtype[], prorettype::regtype, proisstrict, provolatile, prokind FROM pg_proc
WHERE proname IN ('xml_in', 'xml_out', 'xml_send', 'xmlcomment', 'xml', 'xmlvalidate', 'xmlconcat2', 'xmlagg', 'xpath_exists', 'xml_is_well_formed',
    'xml_is_well_formed_document', 'xml_is_well_formed_content', 'xmlexists') OR (proname = 'text' AND proargtypes[0] = 'xml'::regtype) ORDER BY oid;

SELECT '<a/>'::xml, xml '<b c="1">text</b>', xml 'text only', xml '', xml '<a/><b/>', 'x'::text::xml, 'y'::varchar(3)::xml, xml('<f/>'), pg_typeof(xml 'a');
SELECT xml '<a>ä &lt; &#228; &#xe4; &quot;</a>', xml '<!-- c --><?pi x?><![CDATA[ <&> ]]>';
-- A declaration is kept, and shown where it says something.
SELECT xml '<?xml version="1.0"?><a/>', xml '<?xml version="1.0" encoding="latin1"?><a/>', xml '<?xml version="1.1"?><a/>',
    xml '<?xml version="1.0" standalone="yes"?><a/>', xml '<?xml version="1.0" encoding="UTF-8" standalone="no"?>' || '<a/>';
SELECT (xml '<?xml version="1.0" encoding="UTF-8"?><a/>')::text, (xml '<?xml version="1.0"?><a/>')::varchar(10), text(xml '<?xml version="1.0"?><a/>');
SELECT xml E'\n<a/>', xml E'<?xml version="1.0"?>\n<a/>', (xml E'\n<a/>')::text;
SELECT format('%s|%I|%L', xml '<?xml version="1.0"?><a/>', xml 'b', xml 'c'), concat(xml '<?xml version="1.0"?><a/>', 1), to_json(xml '<?xml version="1.0"?><a b="1"/>');
SELECT ARRAY[xml '<?xml version="1.0"?><a/>', 'b c', NULL], '{<a/>,"<b c=\"1\"/>"}'::xml[], (ARRAY[xml 'a', 'b'])[2], row(xml '<?xml version="1.0"?><a/>', 1);
SELECT xml '<a/>' || 'x', length((xml '<a/>')::text), (xml '<a/>') IS NULL, coalesce(NULL, xml '<a/>');

-- Not well-formed.
SELECT xml '<a';
SELECT xml '<a>';
SELECT xml '</a>';
SELECT xml '<a></b>';
SELECT xml '<a><b></a></b>';
SELECT xml '<a b/>';
SELECT xml '<a b=1/>';
SELECT xml '<a b="<"/>';
SELECT xml '<a b="1" b="2"/>';
SELECT xml '<a b="1"c="2"/>';
SELECT xml '<1/>';
SELECT xml '< a/>';
SELECT xml '&';
SELECT xml '&lt';
SELECT xml '&x;';
SELECT xml '&#0;';
SELECT xml '&#xD800;';
SELECT xml '&#xFFFF;';
SELECT xml 'a]]>b';
SELECT xml '<!-- a -- b -->';
SELECT xml '<!-- a --->';
SELECT xml '<![CDATA[ a';
SELECT xml '<?xml?>';
SELECT xml '<?xml version="1.0"><a/>';
SELECT xml '<?xml encoding="UTF-8"?><a/>';
SELECT xml '<a/><?xml version="1.0"?>';
SELECT xml '<?XML a?>';
SELECT xml '<? a?>';
SELECT xml E'a\x01b';
SELECT xml '<!DOCTYPE a><a/><b/>';
SELECT xml '<a/><!DOCTYPE a>';
SELECT 1::xml;
SELECT NULL::xml, ''::xml IS NULL;

-- Well-formed, whatever namespaces say.
SELECT xml '<x:a/>', xml '<a x:b="1"/>', xml '<a:b:c/>', xml '<a xmlns=''&lt;''/>', xml '<a xmlns:x="u" xmlns:y="u" x:b="1" y:b="2"/>';
SELECT xml '<a b=''"'' c = "''" />', xml '<a ></a >', xml '<é ü="1"/>';
SELECT xml '<?pi?>', xml '<?p-i.1 a ?>', xml '<?xml-stylesheet href="x"?>';

-- Document types.
SELECT xml '<!DOCTYPE a><a/>', xml '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>';
SELECT xml '<!DOCTYPE a [<!ENTITY x "<b>">]><a>&x;</a>';
SELECT xml '<!DOCTYPE a [<!ENTITY x "<b/>">]><a>&x;</a>';
SELECT xml '<!DOCTYPE a [<!ENTITY x "<b/>">]><a c="&x;"/>';
SELECT xml '<!DOCTYPE a [<!ENTITY x "&y;"><!ENTITY y "&x;">]><a>&x;</a>';
SELECT xml '<!DOCTYPE a [<!ELEMENT a (#PCDATA)><!ATTLIST a b CDATA "1"><!NOTATION n SYSTEM "n"><!-- c --><?p i?>]><a/>';
SELECT xml '<!DOCTYPE a [<!ENTITY c SYSTEM "/etc/passwd">]><a>&c;</a>';
SELECT xml '<!DOCTYPE a SYSTEM "http://127.0.0.1:1/a.dtd"><a>&nbsp;</a>';
SELECT xml '<!DOCTYPE a [<!ENTITY x "y"]><a/>';
SELECT xml '<!DOCTYPE';

-- xmloption
SET XML OPTION DOCUMENT;
SHOW xmloption;
SELECT xml '<a/>', xml ' <a/> ', xml '<?xml version="1.0"?><!-- c --><a/><?pi?>';
SELECT xml 'a';
SELECT xml '<a/><b/>';
SELECT xml '<a/>b';
SELECT xml '';
SELECT xml ' ';
SELECT xml ' <?xml version="1.0"?><a/>';
SELECT xml '<?xml version="2.0"?><a/>';
SELECT xml '<?xml version="1.0" encoding="8"?><a/>';
SELECT 'x'::text::xml;
SELECT xml_is_well_formed('a'), xml_is_well_formed('<a/>'), xml_is_well_formed_document('a'), xml_is_well_formed_document('<a/>'), xml_is_well_formed_content('a'), xml_is_well_formed_content('<a>');
SET LOCAL XML OPTION CONTENT;
SET SESSION XML OPTION CONTENT;
SELECT xml 'a', xml_is_well_formed('a'), xml_is_well_formed('&');
RESET xmloption;

\set VERBOSITY default
-- There is no comparison.
SELECT xml '<a/>' = xml '<a/>';
SELECT xml '<a/>' < xml '<a/>';
SELECT DISTINCT xml '<a/>';
SELECT x FROM (VALUES (xml 'a')) t(x) ORDER BY x;
SELECT x FROM (VALUES (xml 'a')) t(x) GROUP BY x;
SELECT xml 'a' UNION SELECT xml 'b';
SELECT xml 'a' UNION ALL SELECT xml 'b';
SELECT max(xml 'a');
SELECT count(xml 'a'), count(DISTINCT (xml 'a')::text);
SELECT count(DISTINCT xml 'a');
SELECT xml 'a' IN (xml 'a', xml 'b');

-- In tables. What is wrong with a text, and where, libxml2 tells in its words.
\set VERBOSITY terse
CREATE TABLE xml_stored (id int PRIMARY KEY, x xml NOT NULL, xs xml[], y xml DEFAULT '<none/>');
INSERT INTO xml_stored VALUES (1, '<a>1</a>', ARRAY[xml '<b/>', 'c']), (2, 'two', '{}');
INSERT INTO xml_stored VALUES (3, '<wrong', NULL);
INSERT INTO xml_stored VALUES (3, NULL, NULL);
INSERT INTO xml_stored SELECT 4, '<a>4</a>'::text;
INSERT INTO xml_stored SELECT 4, '<a>4</a>'::text::xml;
UPDATE xml_stored SET x = '<a>5</a>' WHERE id = 2 RETURNING *;
SELECT * FROM xml_stored ORDER BY id;
SELECT id FROM xml_stored WHERE x::text LIKE '%5%';
COPY (SELECT * FROM xml_stored ORDER BY id) TO STDOUT;
CREATE INDEX ON xml_stored (x);
CREATE TABLE xml_unique (x xml UNIQUE);
CREATE UNIQUE INDEX xml_by_text ON xml_stored ((x::text));
INSERT INTO xml_stored VALUES (6, '<a>5</a>');
ALTER TABLE xml_stored ALTER y TYPE text;
ALTER TABLE xml_stored ALTER y TYPE xml;
ALTER TABLE xml_stored ALTER y DROP DEFAULT, ALTER y TYPE xml USING y::xml;
\d xml_stored
PREPARE xml_given(xml) AS SELECT $1, pg_typeof($1);
EXECUTE xml_given('<a/>');
DEALLOCATE xml_given;
CREATE DOMAIN xml_document AS xml CHECK (VALUE IS DOCUMENT);
SELECT xml_document '<a/>', '<b/>'::xml_document;
SELECT 'b'::xml_document;
CREATE FUNCTION xml_wrapped(x xml) RETURNS xml LANGUAGE plpgsql AS $$ DECLARE y xml := '<w/>'; BEGIN RETURN xmlconcat(x, y); END $$;
SELECT xml_wrapped('<a/>'), xml_wrapped(xml 'b');
DROP FUNCTION xml_wrapped;
DROP DOMAIN xml_document;
DROP TABLE xml_stored;
