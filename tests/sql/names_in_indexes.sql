-- What indexes, conditions and generated columns are kept as survives other names of what they speak of.
CREATE TABLE whole (id int, a int, CHECK (whole IS NOT NULL), CHECK (whole.a > 0));
CREATE INDEX whole_null ON whole ((whole IS NULL));
CREATE INDEX whole_part ON whole (a) WHERE (whole IS NOT NULL AND whole.id > 0);
INSERT INTO whole VALUES (1, 1), (2, NULL);
INSERT INTO whole VALUES (1, 1), (2, 2);
ALTER TABLE whole RENAME TO "Other One";
INSERT INTO "Other One" VALUES (3, 3);
INSERT INTO "Other One" VALUES (3, NULL);
INSERT INTO "Other One" VALUES (3, -3);
UPDATE "Other One" SET a = 4 WHERE id = 2;
SELECT * FROM "Other One" WHERE ("Other One" IS NULL) = false ORDER BY id;
SELECT * FROM "Other One" WHERE a > 0 AND "Other One" IS NOT NULL AND id > 0 ORDER BY id;
ALTER TABLE "Other One" RENAME COLUMN a TO b;
INSERT INTO "Other One" VALUES (4, 4);
SELECT * FROM "Other One" ORDER BY id;
DROP TABLE "Other One";
-- VARIADIC
CREATE FUNCTION many(VARIADIC int[]) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT cardinality($1)';
CREATE TABLE numbers (a int, b int);
CREATE INDEX numbers_many ON numbers (many(VARIADIC ARRAY[a, b]));
ALTER TABLE numbers ADD CHECK (many(VARIADIC ARRAY[a, b]) = 2);
INSERT INTO numbers VALUES (1, 2);
ALTER TABLE numbers RENAME a TO c;
INSERT INTO numbers VALUES (3, 4);
SELECT * FROM numbers WHERE many(VARIADIC ARRAY[c, b]) = 2 ORDER BY c;
DROP TABLE numbers;
DROP FUNCTION many;
