-- INSERT: several rows, column lists, DEFAULT, SELECT, RETURNING, ON CONFLICT.
CREATE TABLE ins_a (id int PRIMARY KEY, name text UNIQUE, n int DEFAULT 7);
INSERT INTO ins_a VALUES (1, 'one', 1);
INSERT INTO ins_a VALUES (2, 'two');
INSERT INTO ins_a (name, id) VALUES ('three', 3), ('four', 4);
INSERT INTO ins_a DEFAULT VALUES;
INSERT INTO ins_a (id, nothing) VALUES (5, 1);
INSERT INTO ins_a (id, id) VALUES (5, 5);
INSERT INTO ins_a (id) VALUES (5, 6);
INSERT INTO ins_a (id, name) VALUES (5);
INSERT INTO ins_a VALUES (5, 'a', 1, 2);
INSERT INTO ins_missing VALUES (1);
INSERT INTO ins_a (id, n) VALUES (5, 'x');
INSERT INTO ins_a (id, name) VALUES ('5', 55) RETURNING *;
INSERT INTO ins_a (id, name, n) VALUES (6, 'six', DEFAULT), (7, 'seven', 70) RETURNING id, n * 2 AS twice, upper(name);
INSERT INTO ins_a SELECT id + 100, name || '+', n FROM ins_a WHERE id < 3 RETURNING id, name;
INSERT INTO ins_a (id, name) SELECT 200, NULL RETURNING *;
SELECT * FROM ins_a ORDER BY id;
-- ON CONFLICT
INSERT INTO ins_a VALUES (1, 'uno', 0) ON CONFLICT DO NOTHING;
INSERT INTO ins_a VALUES (300, 'one', 0) ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO ins_a VALUES (1, 'uno', 0) ON CONFLICT (id) DO NOTHING;
INSERT INTO ins_a VALUES (300, 'one', 0) ON CONFLICT (id) DO NOTHING;
INSERT INTO ins_a VALUES (1, 'uno', 11) ON CONFLICT (id) DO UPDATE SET name = excluded.name, n = ins_a.n + excluded.n RETURNING *;
INSERT INTO ins_a VALUES (1, 'x', 5), (301, 'new', 5) ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING id, name, n;
INSERT INTO ins_a VALUES (302, 'two', 5) ON CONFLICT (name) DO UPDATE SET n = -1 WHERE ins_a.n > 100 RETURNING *;
INSERT INTO ins_a VALUES (302, 'two', 5) ON CONFLICT (name) DO UPDATE SET n = -1 WHERE ins_a.n = 7 RETURNING *;
INSERT INTO ins_a VALUES (303, 'two', 5) ON CONFLICT ON CONSTRAINT ins_a_name_key DO UPDATE SET n = -2 RETURNING id, n;
INSERT INTO ins_a VALUES (1, 'two', 0) ON CONFLICT (id) DO UPDATE SET name = excluded.name;
INSERT INTO ins_a VALUES (1, 'q', 0) ON CONFLICT (n) DO NOTHING;
INSERT INTO ins_a VALUES (400, 'dup', 0), (400, 'dup2', 0) ON CONFLICT (id) DO UPDATE SET n = 1;
INSERT INTO ins_a VALUES (400, 'dup', 0), (400, 'dup2', 0) ON CONFLICT (id) DO NOTHING RETURNING id, name;
INSERT INTO ins_a AS t VALUES (400, 'z', 9) ON CONFLICT (id) DO UPDATE SET n = t.n + 1 RETURNING t.id, t.n;
INSERT INTO ins_a VALUES (401, NULL, 1), (402, NULL, 2) ON CONFLICT (name) DO NOTHING RETURNING id;
INSERT INTO ins_a VALUES (1, 'q', 0) ON CONFLICT DO UPDATE SET n = 1;
SELECT * FROM ins_a ORDER BY id;
-- A counter table, the common upsert.
CREATE TABLE ins_hits (page text, day date, hits int NOT NULL DEFAULT 1, PRIMARY KEY (page, day));
INSERT INTO ins_hits VALUES ('/', '2024-01-01') ON CONFLICT (page, day) DO UPDATE SET hits = ins_hits.hits + 1;
INSERT INTO ins_hits VALUES ('/', '2024-01-01') ON CONFLICT (page, day) DO UPDATE SET hits = ins_hits.hits + 1;
INSERT INTO ins_hits VALUES ('/', '2024-01-02') ON CONFLICT (page, day) DO UPDATE SET hits = ins_hits.hits + 1;
INSERT INTO ins_hits VALUES ('/', '2024-01-01') ON CONFLICT (day, page) DO UPDATE SET (hits, page) = (0, '/reset') RETURNING *;
SELECT * FROM ins_hits ORDER BY page, day;
-- Rows of VALUES on their own.
VALUES (1, 'a'), (2, 'b');
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS v (n, t) ORDER BY n DESC;
VALUES (1), (2, 3);
DROP TABLE ins_a, ins_hits;
