-- Composite types in information_schema.
CREATE SCHEMA kept;
CREATE TYPE kept.pair AS (a int, b varchar(8), c numeric(8, 2), d timestamptz(3), e text[], f bytea, g name, h text COLLATE "C");
CREATE TYPE kept.other AS (p kept.pair, j jsonb);
CREATE TABLE kept.tab (a int);
ALTER TYPE kept.pair DROP ATTRIBUTE a;
SELECT * FROM information_schema.attributes WHERE udt_schema = 'kept' ORDER BY udt_name, ordinal_position \gx
SELECT * FROM information_schema.user_defined_types WHERE user_defined_type_schema = 'kept' ORDER BY user_defined_type_name \gx
CREATE ROLE stranger;
REVOKE USAGE ON TYPE kept.pair FROM public;
SET ROLE stranger;
SELECT user_defined_type_name FROM information_schema.user_defined_types WHERE user_defined_type_schema = 'kept';
SELECT udt_name, attribute_name FROM information_schema.attributes WHERE udt_schema = 'kept' ORDER BY 1, 2;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA kept CASCADE;
DROP ROLE stranger;
