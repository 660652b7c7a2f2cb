-- COPY ... FROM ... WHERE.
CREATE DOMAIN small AS int CHECK (VALUE < 1000);
CREATE TABLE cw (id serial PRIMARY KEY, name text NOT NULL, n small DEFAULT 7, d date, g int GENERATED ALWAYS AS (n * 2) STORED, CHECK (n <> 13));
COPY cw (id, name, n, d) FROM STDIN WHERE n > 2 AND name <> 'skip';
1	one	1	2024-01-01
2	two	3	\N
3	skip	5	2024-01-01
4	four	\N	2024-01-01
5	five	9	2024-05-05
\.
SELECT * FROM cw ORDER BY id;
\copy cw (name) FROM STDIN WHERE id <> 2 AND n = 7
a
b
c
\.
COPY cw (id, name) FROM STDIN WITH (FORMAT csv, DELIMITER ';') WHERE name LIKE 'x%' OR (id BETWEEN 20 AND 21);
20;twenty
22;no
23;xyz
\.
COPY cw (id, name, d) FROM STDIN CSV WHERE g IS NULL;
COPY cw (id, name, d) FROM STDIN CSV WHERE d >= DATE '2024-01-01' AND n = 7;
30,thirty,2024-02-02
31,early,2023-12-31
32,none,
\.
SELECT * FROM cw ORDER BY id;
-- What is left out breaks no rule of the table but those of its fields.
COPY cw (id, name, n) FROM STDIN WHERE n <> 13 AND id > 0;
-1	\N	1
40	ok	1
41	checked	13
-5	dup	1
\.
COPY cw (id, name, n) FROM STDIN WHERE id < 0;
42	big	2000
\.
COPY cw (id, name, n) FROM STDIN WHERE 10 / id > 0;
43	fine	1
0	zero	1
\.
COPY cw FROM STDIN WHERE nosuch = 1;
COPY cw FROM STDIN WHERE cw.id = 1 AND name;
COPY cw FROM STDIN WHERE id;
COPY cw FROM STDIN WHERE id = (SELECT 1);
COPY cw FROM STDIN WHERE max(id) > 1;
COPY cw FROM STDIN WHERE row_number() OVER () > 1;
COPY cw FROM STDIN WHERE generate_series(1, 2) > 1;
COPY cw FROM STDIN WHERE id = $1;
COPY cw FROM STDIN WHERE;
COPY cw TO STDOUT WHERE id = 1;
COPY (SELECT * FROM cw) TO STDOUT WHERE id = 1;
CREATE ROLE cw_role;
GRANT INSERT ON cw TO cw_role;
SET ROLE cw_role;
COPY cw (id, name) FROM STDIN WHERE id > 1;
RESET ROLE;
GRANT SELECT (id) ON cw TO cw_role;
SET ROLE cw_role;
COPY cw (id, name) FROM STDIN WHERE name = 'x';
COPY cw (id, name) FROM STDIN WHERE id > 50;
50	no
51	yes
\.
RESET ROLE;
SELECT id, name FROM cw ORDER BY id;
DROP TABLE cw;
DROP DOMAIN small;
DROP ROLE cw_role;
