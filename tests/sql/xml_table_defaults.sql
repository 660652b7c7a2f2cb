-- DEFAULT of XMLTABLE is computed for the rows that need one, and only for these.
CREATE SEQUENCE xml_s;
SELECT * FROM xmltable('/r/a' PASSING '<r><a><b>1</b></a><a><b>3</b></a></r>' COLUMNS b int PATH 'b' DEFAULT 1/0);
SELECT * FROM xmltable('/r/a' PASSING '<r><a><b>1</b></a><a/></r>' COLUMNS b int PATH 'b' DEFAULT 1/0);
SELECT * FROM xmltable('/r/a' PASSING '<r><a><b>1</b></a><a/><a><b>3</b></a><a/></r>' COLUMNS b int PATH 'b' DEFAULT nextval('xml_s'));
SELECT currval('xml_s');
SELECT * FROM (VALUES (5), (6)) v(n), xmltable('/r/a' PASSING '<r><a><b>1</b></a><a/></r>' COLUMNS b int PATH 'b' DEFAULT n + 1);
SELECT * FROM xmltable('/r/a' PASSING '<r><a><b>1</b></a><a/></r>' COLUMNS b int PATH 'b' DEFAULT 7 NOT NULL, c text PATH 'c' DEFAULT 'x' || 'y');
SELECT * FROM xmltable('/r/a' PASSING '<r><a><b>1</b></a><a/></r>' COLUMNS b int PATH 'b' DEFAULT nullif(1, 1) NOT NULL);
CREATE DOMAIN xml_pos AS int CHECK (value > 0);
SELECT * FROM xmltable('/r/a' PASSING '<r><a><b>1</b></a><a/></r>' COLUMNS b xml_pos PATH 'b' DEFAULT 1 - 2);
SELECT * FROM xmltable('/r/a' PASSING '<r><a><b>1</b></a><a/></r>' COLUMNS b xml_pos PATH 'b' DEFAULT abs(-2));
DROP DOMAIN xml_pos;
DROP SEQUENCE xml_s;
