-- Objects by what they are called: pg_get_object_address.
SET client_min_messages TO 'warning';
CREATE SCHEMA ad;
CREATE TABLE ad.t(a int PRIMARY KEY CONSTRAINT ck CHECK (a > 0), b text DEFAULT 'x');
CREATE VIEW ad.v AS SELECT 1 x;
CREATE SEQUENCE ad.s;
CREATE FUNCTION ad.f(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE PROCEDURE ad.p(int) LANGUAGE sql AS '';
CREATE DOMAIN ad.d AS int CONSTRAINT dc CHECK (value > 0);
CREATE MATERIALIZED VIEW ad.mv AS SELECT 1 x;
CREATE FUNCTION ad.trg() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE TRIGGER tr BEFORE INSERT ON ad.t FOR EACH ROW EXECUTE FUNCTION ad.trg();
CREATE INDEX ix ON ad.t(b);

SELECT pg_get_object_address('stone', '{}', '{}');
SELECT pg_get_object_address('table', '{}', '{}');
SELECT pg_get_object_address('table', '{NULL}', '{}');
SELECT pg_get_object_address('toast table', '{a}', '{}');
SELECT * FROM pg_get_object_address('operator of access method', '{btree,integer_ops,1}', '{int4,bool}');
SELECT * FROM pg_get_object_address('function of access method', '{btree,integer_ops,99}', '{int4,int4}');
SELECT pg_get_object_address('language', '{one}', '{}');
SELECT pg_get_object_address('language', '{one,two}', '{}');
SELECT pg_get_object_address('large object', '{123}', '{}');
SELECT pg_get_object_address('large object', '{blargh}', '{}');
SELECT pg_get_object_address('schema', '{one}', '{}');
SELECT pg_get_object_address('role', '{one}', '{}');
SELECT pg_get_object_address('database', '{one}', '{}');
SELECT pg_get_object_address('foreign-data wrapper', '{one}', '{}');
SELECT pg_get_object_address('publication', '{one}', '{}');

-- Each kind with names and arguments that fit no object of it.
DO $$
DECLARE
  kind text;
  names text[];
  args text[];
BEGIN
  FOR kind IN VALUES ('table'), ('index'), ('sequence'), ('view'), ('materialized view'), ('foreign table'),
    ('table column'), ('foreign table column'), ('aggregate'), ('function'), ('procedure'), ('type'), ('cast'),
    ('table constraint'), ('domain constraint'), ('conversion'), ('default value'), ('operator'), ('operator class'),
    ('operator family'), ('rule'), ('trigger'), ('text search parser'), ('text search dictionary'),
    ('text search template'), ('text search configuration'), ('policy'), ('user mapping'), ('default acl'), ('transform'),
    ('operator of access method'), ('function of access method'), ('publication namespace'), ('publication relation')
  LOOP
    FOR names IN VALUES ('{eins}'), ('{ad, zwei}'), ('{eins, zwei, drei}'), ('{ad,t}'), ('{ad,v,x}'), ('{ad,t,y}') LOOP
      FOR args IN VALUES ('{}'), ('{integer}') LOOP
        BEGIN
          PERFORM pg_get_object_address(kind, names, args);
        EXCEPTION WHEN OTHERS THEN
          RAISE WARNING '%,%,%: % %', kind, names, args, sqlstate, sqlerrm;
        END;
      END LOOP;
    END LOOP;
  END LOOP;
END;
$$;

SELECT o.*, classid::regclass, objsubid, pg_describe_object(classid, objid, objsubid)
  FROM (VALUES ('table', '{ad,t}'::text[], '{}'::text[]), ('index', '{ad,ix}', '{}'), ('sequence', '{ad,s}', '{}'),
    ('view', '{ad,v}', '{}'), ('materialized view', '{ad,mv}', '{}'), ('table column', '{ad,t,b}', '{}'),
    ('function', '{ad,f}', '{int4}'), ('procedure', '{ad,p}', '{integer}'), ('type', '{ad.d}', '{}'),
    ('type', '{pg_catalog._int4}', '{}'), ('table constraint', '{ad,t,ck}', '{}'), ('domain constraint', '{ad.d}', '{dc}'),
    ('default value', '{ad,t,b}', '{}'), ('trigger', '{ad,t,tr}', '{}'), ('rule', '{ad,v,_RETURN}', '{}'),
    ('schema', '{ad}', '{}'), ('function', '{pg_catalog,pg_identify_object}', '{pg_catalog.oid,pg_catalog.oid,int4}')
  ) o(kind, names, args), pg_get_object_address(kind, names, args);
SELECT o.*, classid::regclass, objid, objsubid
  FROM (VALUES ('aggregate', '{sum}'::text[], '{int4}'::text[]), ('collation', '{default}', '{}'), ('language', '{sql}', '{}'),
    ('operator', '{+}', '{int4,int4}'), ('operator family', '{btree,integer_ops}', '{}'), ('access method', '{btree}', '{}')
  ) o(kind, names, args), pg_get_object_address(kind, names, args);
DROP SCHEMA ad CASCADE;
