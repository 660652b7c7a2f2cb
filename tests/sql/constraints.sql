-- PRIMARY KEY, UNIQUE, NOT NULL, CHECK, DEFAULT, and their error fields.
CREATE TABLE con_a (
    id int PRIMARY KEY,
    email text NOT NULL UNIQUE,
    age int CHECK (age >= 0 AND age < 150),
    low int DEFAULT 0,
    high int DEFAULT 10,
    note varchar(20) DEFAULT 'n/' || 'a',
    CONSTRAINT con_a_range CHECK (low <= high)
);
INSERT INTO con_a (id, email) VALUES (1, 'a@x');
INSERT INTO con_a (id, email) VALUES (1, 'b@x');
INSERT INTO con_a (id, email) VALUES (2, 'a@x');
INSERT INTO con_a (id) VALUES (2);
INSERT INTO con_a (id, email) VALUES (2, NULL);
INSERT INTO con_a (id, email) VALUES (NULL, 'n@x');
INSERT INTO con_a (id, email, age) VALUES (2, 'b@x', -1);
INSERT INTO con_a (id, email, age) VALUES (2, 'b@x', 200);
INSERT INTO con_a (id, email, low, high) VALUES (2, 'b@x', 5, 4);
INSERT INTO con_a (id, email, age, low) VALUES (2, 'b@x', NULL, NULL);
INSERT INTO con_a VALUES (3, 'c@x', 30, DEFAULT, DEFAULT, DEFAULT);
INSERT INTO con_a (id, email, note) VALUES (4, 'd@x', 'longer than twenty characters');
SELECT * FROM con_a ORDER BY id;
UPDATE con_a SET id = 1 WHERE id = 2;
UPDATE con_a SET email = NULL WHERE id = 2;
UPDATE con_a SET age = 150 WHERE id = 2;
UPDATE con_a SET low = 11 WHERE id = 3;
UPDATE con_a SET low = DEFAULT, note = DEFAULT WHERE id = 2;
UPDATE con_a SET id = id WHERE id = 1;
SELECT * FROM con_a ORDER BY id;
-- A statement that would pass through a duplicate.
INSERT INTO con_a (id, email) VALUES (10, 'k@x'), (11, 'l@x'), (10, 'm@x');
SELECT count(*) FROM con_a WHERE id >= 10;
UPDATE con_a SET id = id + 100;
SELECT id FROM con_a ORDER BY id;
-- Several columns, and NULLs in them.
CREATE TABLE con_b (a int, b text, c int, UNIQUE (a, b), PRIMARY KEY (c));
INSERT INTO con_b VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3), (1, NULL, 4), (1, NULL, 5), (NULL, NULL, 6);
INSERT INTO con_b VALUES (1, 'x', 7);
INSERT INTO con_b VALUES (9, 'z', 1);
SELECT * FROM con_b ORDER BY c;
DELETE FROM con_b WHERE c = 1;
INSERT INTO con_b VALUES (1, 'x', 1);
CREATE TABLE con_c (a int, b int, PRIMARY KEY (a, b));
INSERT INTO con_c VALUES (1, 1), (1, 2), (2, 1);
INSERT INTO con_c VALUES (1, 2);
INSERT INTO con_c VALUES (1, NULL);
UPDATE con_c SET b = 2 WHERE a = 1 AND b = 1;
-- Unique on text, date, numeric, uuid.
CREATE TABLE con_d (t varchar(10) UNIQUE, d date UNIQUE, n numeric UNIQUE, u uuid UNIQUE, y bytea UNIQUE, z timestamptz UNIQUE);
SET timezone = 'UTC';
INSERT INTO con_d VALUES ('x', '2024-01-01', 1.0, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\x01', '2024-01-01 00:00+00');
INSERT INTO con_d (t) VALUES ('x');
INSERT INTO con_d (d) VALUES ('2024-01-01');
INSERT INTO con_d (n) VALUES (1.000);
INSERT INTO con_d (u) VALUES ('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11');
INSERT INTO con_d (y) VALUES ('\x01');
INSERT INTO con_d (z) VALUES ('2024-01-01 01:00+01');
-- Unique violation inside a transaction spoils it; a savepoint saves it.
BEGIN;
INSERT INTO con_c VALUES (5, 5);
INSERT INTO con_c VALUES (5, 5);
SELECT 1;
COMMIT;
SELECT count(*) FROM con_c WHERE a = 5;
BEGIN;
INSERT INTO con_c VALUES (5, 5);
SAVEPOINT s;
INSERT INTO con_c VALUES (5, 5);
ROLLBACK TO SAVEPOINT s;
INSERT INTO con_c VALUES (5, 6);
COMMIT;
SELECT * FROM con_c WHERE a = 5 ORDER BY b;
-- The same key deleted and inserted again in one transaction.
BEGIN;
DELETE FROM con_c WHERE a = 5 AND b = 5;
INSERT INTO con_c VALUES (5, 5);
DELETE FROM con_c WHERE a = 5 AND b = 5;
INSERT INTO con_c VALUES (5, 5);
COMMIT;
SELECT * FROM con_c WHERE a = 5 ORDER BY b;
ALTER TABLE con_b ADD CONSTRAINT con_b_positive CHECK (c > 0);
INSERT INTO con_b VALUES (3, 'q', -1);
ALTER TABLE con_b ADD CHECK (a > 1);
ALTER TABLE con_b DROP CONSTRAINT con_b_positive;
INSERT INTO con_b VALUES (3, 'q', -1);
\set VERBOSITY verbose
INSERT INTO con_c VALUES (1, 2);
INSERT INTO con_a (id) VALUES (2);
INSERT INTO con_a (id, email, age) VALUES (2, 'b@x', -1);
\set VERBOSITY default
DROP TABLE con_a, con_b, con_c, con_d;
