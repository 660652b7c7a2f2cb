-- XMLTABLE
\set VERBOSITY terse
CREATE TABLE xml_data (id int, data xml);
INSERT INTO xml_data VALUES (1, '<rows><row id="1"><name>one</name><n>1.5</n></row><row id="2"><name>two</name><size unit="km">7</size></row></rows>'), (2, '<rows><row id="3"/></rows>'), (3, NULL), (4, '<other/>');
SELECT d.id, t.* FROM xml_data d, XMLTABLE('/rows/row' PASSING d.data COLUMNS id int PATH '@id', nr FOR ORDINALITY, name text, n numeric(10, 1) PATH 'n' DEFAULT -1, unit text PATH 'size/@unit', size float8 PATH 'size') AS t ORDER BY 1, 2;
SELECT d.id, t.* FROM xml_data d LEFT JOIN LATERAL XMLTABLE('/rows/row' PASSING BY REF d.data COLUMNS id int PATH '@id', x xml PATH '.', y xml PATH '*', has boolean PATH 'boolean(name)', has_n int PATH 'boolean(name)', c int PATH 'count(*)', s text PATH 'concat("a", "<")', sx xml PATH 'concat("a", "<")') AS t ON true ORDER BY d.id, t.id;
SELECT * FROM XMLTABLE('/a/b' PASSING '<a><b>1</b><b>2</b></a>' COLUMNS v int PATH '.') AS t(w);
SELECT * FROM XMLTABLE(('/a/' || 'b') PASSING '<a><b>1</b></a>' COLUMNS v text PATH ('.' || ''), d text PATH 'x' DEFAULT upper('d') NOT NULL, e text DEFAULT 'e' PATH 'x', f text NULL) t;
SELECT xmltable.* FROM XMLTABLE('/a' PASSING '<a>x</a>' COLUMNS "A" text PATH '.') WHERE "A" = 'x';
SELECT * FROM XMLTABLE(XMLNAMESPACES('http://x' AS z, 'http://y' AS "Q"), '/z:a/Q:b' PASSING '<a xmlns="http://x"><b xmlns="http://y" c="1">2</b></a>' COLUMNS c int PATH '@c', v int PATH '.');
SELECT count(*) FROM XMLTABLE('/a/b' PASSING xmlelement(name a, (SELECT xmlagg(xmlelement(name b, i)) FROM generate_series(1, 1000) i)) COLUMNS v int PATH '.') WHERE v > 500;
SELECT (SELECT string_agg(v, ',') FROM XMLTABLE('//v' PASSING data COLUMNS v text PATH '.')) FROM (VALUES (xml '<r><v>1</v><v>2</v></r>')) AS t(data);
PREPARE xml_rows(xml, text) AS SELECT * FROM XMLTABLE('//v' PASSING $1 COLUMNS v text PATH $2);
EXECUTE xml_rows('<r><v w="5">1</v></r>', '@w');
DEALLOCATE xml_rows;
-- Errors.
SELECT * FROM XMLTABLE('/a' PASSING '<a><b>1</b><b>2</b></a>' COLUMNS b text);
SELECT * FROM XMLTABLE('/a' PASSING '<a/>' COLUMNS b text NOT NULL);
SELECT * FROM XMLTABLE('/a' PASSING '<a>x</a>' COLUMNS b int PATH '.');
SELECT * FROM XMLTABLE('' PASSING '<a/>' COLUMNS b text);
SELECT * FROM XMLTABLE(NULL PASSING '<a/>' COLUMNS b text);
SELECT * FROM XMLTABLE('/a' PASSING '<a/>' COLUMNS b text PATH '');
SELECT * FROM XMLTABLE('/a' PASSING '<a/>' COLUMNS b text PATH NULL::text);
SELECT * FROM XMLTABLE('/a' PASSING 'a' COLUMNS b text);
SELECT * FROM XMLTABLE('/a[' PASSING '<a/>' COLUMNS b text);
SELECT * FROM XMLTABLE('/a' PASSING '<a/>' COLUMNS b text, b int);
SELECT * FROM XMLTABLE(XMLNAMESPACES(DEFAULT 'http://x'), '/a' PASSING '<a/>' COLUMNS b text);
SELECT * FROM XMLTABLE('/a' PASSING NULL COLUMNS b text);
-- Shown.
CREATE VIEW xml_tables_view AS SELECT d.id AS d, t.* FROM xml_data d, LATERAL XMLTABLE('/rows/row' PASSING d.data COLUMNS id int PATH '@id', nr FOR ORDINALITY, name text NOT NULL DEFAULT 'none', n numeric(10, 1) PATH 'n' DEFAULT -1, "U u" varchar(5) PATH 'size/@unit') t WHERE t.id > 1;
CREATE VIEW xml_tables_names AS SELECT * FROM XMLTABLE(XMLNAMESPACES('http://x' AS "Zz"), '/Zz:a' PASSING '<a xmlns="http://x">1</a>' COLUMNS a int PATH '.');
SELECT * FROM xml_tables_view ORDER BY id;
SELECT * FROM xml_tables_names;
SELECT pg_get_viewdef('xml_tables_view'::regclass);
SELECT pg_get_viewdef('xml_tables_view'::regclass, true);
SELECT pg_get_viewdef('xml_tables_names'::regclass);
DROP TABLE xml_data CASCADE;
DROP VIEW xml_tables_names;
SELECT * FROM XMLTABLE('/a' PASSING '<a/>' COLUMNS b text) AS t(c, d);
