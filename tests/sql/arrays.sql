-- The few array expressions that drivers send.
CREATE TABLE arr_a (id int PRIMARY KEY, v text);
INSERT INTO arr_a VALUES (1, 'a'), (2, 'b'), (3, NULL);
SELECT id FROM arr_a WHERE id = ANY (ARRAY[1, 3, 9]) ORDER BY id;
SELECT id FROM arr_a WHERE id = ANY ('{1,2}') ORDER BY id;
SELECT id FROM arr_a WHERE v = ANY ('{b,"c d"}'::text[]) ORDER BY id;
SELECT id FROM arr_a WHERE id <> ALL ('{1,2}'::int[]) ORDER BY id;
SELECT ARRAY[1, 2, NULL], ARRAY['a', 'b c', 'd"e', ''], '{1,2}'::int[];
SELECT array_agg(id ORDER BY id DESC), array_agg(v ORDER BY id) FROM arr_a;
SELECT (ARRAY[10, 20, 30])[2], array_length(ARRAY[1, 2, 3], 1);
DROP TABLE arr_a;
-- ARRAY(SELECT ...) of arrays.
SELECT ARRAY(SELECT ARRAY[i, i / 2] FROM generate_series(1, 5) i ORDER BY i DESC), ARRAY(SELECT ARRAY[1] WHERE false);
SELECT ARRAY(SELECT ARRAY['a', g::text] FROM generate_series(1, x) g) FROM generate_series(1, 2) x ORDER BY x;
SELECT ARRAY(SELECT CASE WHEN i = 1 THEN ARRAY[1] ELSE ARRAY[1, 2] END FROM generate_series(1, 2) i);
SELECT ARRAY(SELECT NULL::int[]);
