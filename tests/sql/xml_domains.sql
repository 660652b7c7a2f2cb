-- Columns of XMLTABLE that are of domains are checked, and tables made of them can be read.
CREATE DOMAIN above AS int CHECK (value > 0);
CREATE DOMAIN short AS text CHECK (length(value) < 4);
SELECT * FROM xmltable('/r/a' PASSING '<r><a>7</a><a>8</a></r>' COLUMNS a above PATH '.', t short PATH '.');
SELECT * FROM xmltable('/a' PASSING '<a>-1</a>' COLUMNS a above PATH '.');
SELECT * FROM xmltable('/a' PASSING '<a>long</a>' COLUMNS a short PATH '.');
SELECT a + 1 FROM xmltable('/r/a' PASSING '<r><a>7</a><a/></r>' COLUMNS a above PATH '.' DEFAULT 3);
CREATE TABLE made AS SELECT t.a, 5 AS b FROM xmltable('/r/a' PASSING '<r><a>7</a><a>8</a></r>' COLUMNS a above PATH '.') t;
SELECT * FROM made ORDER BY a;
CREATE TABLE taken (a above);
INSERT INTO taken SELECT t.a FROM xmltable('/r/a' PASSING '<r><a>7</a><a>8</a></r>' COLUMNS a above PATH '.') t;
SELECT * FROM taken ORDER BY a;
DROP TABLE made, taken;
DROP DOMAIN above, short;
