-- Whole rows to the left of operators.
CREATE TABLE whole(a int, b int);
INSERT INTO whole VALUES (1, 2), (3, NULL), (NULL, NULL);
SELECT w.a FROM whole w WHERE w.* IN (VALUES (w.*::whole)) ORDER BY 1;
SELECT a, (w.*) IS NULL, (w.*) IS NOT NULL FROM whole w ORDER BY 1;
SELECT a, w.* = w.* FROM whole w WHERE a = 1;
SELECT a FROM whole w WHERE (w.*) = ROW(1, 2);
SELECT a FROM whole w WHERE w.* IS DISTINCT FROM ROW(1, 2) ORDER BY 1;
SELECT (w.*) FROM whole w WHERE a = 1;
SELECT a FROM whole w WHERE ROW(w.*) IS NOT DISTINCT FROM ROW(1, 2);
SELECT a, ROW(w.*) IS NULL FROM whole w ORDER BY 1;
-- Queries that begin the list of IN.
SELECT 1 IN ((SELECT 1), 2), 3 IN ((SELECT 1), 2), 3 IN ((SELECT 1) + 2, 5), 1 NOT IN ((SELECT 2), (SELECT 3));
SELECT 1 IN ((SELECT 1)), 1 IN ((SELECT 1) UNION (SELECT 2));
CREATE VIEW whole_v AS SELECT a IN ((SELECT max(b) FROM whole), 3) AS x FROM whole;
SELECT * FROM whole_v;
DROP VIEW whole_v;
DROP TABLE whole;
