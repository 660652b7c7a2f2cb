-- UNION, INTERSECT, EXCEPT, and WITH.
CREATE TABLE set_a (id int, v text);
CREATE TABLE set_b (id int, v text);
INSERT INTO set_a VALUES (1, 'x'), (2, 'y'), (2, 'y'), (3, NULL);
INSERT INTO set_b VALUES (2, 'y'), (3, NULL), (4, 'z');
SELECT id FROM set_a UNION SELECT id FROM set_b ORDER BY id;
SELECT id FROM set_a UNION ALL SELECT id FROM set_b ORDER BY id;
SELECT * FROM set_a INTERSECT SELECT * FROM set_b ORDER BY 1;
SELECT * FROM set_a EXCEPT SELECT * FROM set_b ORDER BY 1;
SELECT id, v FROM set_a UNION SELECT id, v FROM set_b ORDER BY id DESC LIMIT 2;
SELECT 1 UNION SELECT 2.5 ORDER BY 1;
SELECT 1 UNION SELECT 'x';
SELECT 1, 2 UNION SELECT 1;
WITH both_of AS (SELECT id FROM set_a UNION ALL SELECT id FROM set_b) SELECT id, count(*) FROM both_of GROUP BY id ORDER BY id;
WITH a AS (SELECT id FROM set_a WHERE id > 1), b AS (SELECT id FROM a WHERE id < 3) SELECT count(*) FROM b;
SELECT count(*) FROM (SELECT id FROM set_a UNION SELECT id FROM set_b) u;
CREATE TABLE set_c AS SELECT id, v FROM set_a WHERE v IS NOT NULL;
SELECT * FROM set_c ORDER BY id;
DROP TABLE set_a, set_b, set_c;
