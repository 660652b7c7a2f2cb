-- The position of a wrong type modifier.
CREATE TABLE dif_a (id varchar(0));
CREATE TABLE dif_a (id numeric(2000));
-- A literal continued on the next line, and one that is not.
SELECT 'a'
  'b' AS continued;
SELECT 'a' 'b';
