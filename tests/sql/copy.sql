-- COPY FROM STDIN and TO STDOUT, text and csv.
CREATE TABLE cop_a (id int PRIMARY KEY, name text, n numeric(6,2) DEFAULT 1.25, d date);
COPY cop_a FROM STDIN;
1	one	1.50	2024-01-01
2	\N	\N	\N
3	tab\there\nand \\ slash	0	2024-02-29
4		-1	1999-12-31
\.
SELECT * FROM cop_a ORDER BY id;
COPY cop_a (name, id) FROM STDIN;
five	5
six\x21\101	6
\.
COPY cop_a TO STDOUT;
COPY cop_a (id, name) TO STDOUT WITH (DELIMITER '|', NULL 'nil');
COPY (SELECT id, upper(name) FROM cop_a WHERE id < 3 ORDER BY id) TO STDOUT;
COPY cop_a FROM STDIN WITH (FORMAT csv);
10,plain,1.5,2024-01-01
11,"quoted, with comma",,
12,"two
lines",3,
13,"say ""hi""",4,2024-05-05
14,"",,
\.
SELECT id, name, n, d, name IS NULL AS name_null FROM cop_a WHERE id >= 10 ORDER BY id;
COPY (SELECT * FROM cop_a WHERE id >= 10 ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER);
COPY (SELECT * FROM cop_a WHERE id >= 10 ORDER BY id) TO STDOUT CSV HEADER;
COPY (SELECT id, name FROM cop_a WHERE id IN (2, 11) ORDER BY id) TO STDOUT WITH (FORMAT csv, DELIMITER ';', NULL 'NULL', FORCE_QUOTE (name));
COPY (SELECT id, name FROM cop_a WHERE id IN (2, 11) ORDER BY id) TO STDOUT WITH (FORMAT csv, QUOTE '''', FORCE_QUOTE *);
COPY cop_a (id, name) FROM STDIN WITH (FORMAT csv, HEADER true, DELIMITER ';', NULL '-');
id;name
20;a;b
\.
COPY cop_a (id, name) FROM STDIN WITH (FORMAT csv, HEADER true, DELIMITER ';', NULL '-');
id;name
20;-
21;"-"
22;' x '
\.
SELECT id, name FROM cop_a WHERE id >= 20 ORDER BY id;
-- Errors name the line; nothing of the statement stays.
COPY cop_a FROM STDIN;
30	ok	1	2024-01-01
31	bad number	x	2024-01-01
\.
COPY cop_a FROM STDIN;
30	too few
\.
COPY cop_a FROM STDIN;
30	a	1	2024-01-01	extra
\.
COPY cop_a FROM STDIN;
30	dup	1	2024-01-01
30	dup	1	2024-01-01
\.
COPY cop_a FROM STDIN;
30	late date	1	2024-13-01
\.
COPY cop_a FROM STDIN;
\N	null key	1	2024-01-01
\.
COPY cop_a (id, nothing) FROM STDIN;
COPY cop_missing FROM STDIN;
COPY cop_missing TO STDOUT;
COPY cop_a TO STDOUT WITH (DELIMITER 'ab');
COPY cop_a FROM STDIN WITH (FORMAT csv);
30,"unterminated
\.
SELECT count(*) FROM cop_a WHERE id = 30;
-- Inside a transaction.
BEGIN;
COPY cop_a (id) FROM STDIN;
40
41
\.
SELECT count(*) FROM cop_a WHERE id >= 40;
ROLLBACK;
SELECT count(*) FROM cop_a WHERE id >= 40;
CREATE TABLE cop_b (t timestamptz, b boolean, y bytea, f float8, u uuid, c char(3));
SET timezone = 'UTC';
COPY cop_b FROM STDIN;
2024-01-01 12:00:00+02	t	\\xdeadbeef	1e10	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	ab
infinity	f	\\x	NaN	\N	abc
\.
COPY cop_b TO STDOUT;
COPY cop_b TO STDOUT (FORMAT csv);
COPY cop_b (c) FROM STDIN;
abcd
\.
DROP TABLE cop_a, cop_b;
