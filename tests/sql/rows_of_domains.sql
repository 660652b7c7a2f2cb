-- Functions that give rows of a table whose columns are of domains: whoever makes such a row asks the domains.

CREATE DOMAIN mail AS text CHECK (value ~ '@');
CREATE TABLE member (id int PRIMARY KEY GENERATED ALWAYS AS IDENTITY, name text, mail mail);
CREATE FUNCTION loud(m member) RETURNS text LANGUAGE sql STABLE AS $$ SELECT upper(m.name) $$;
CREATE FUNCTION join_one(n text, m text) RETURNS member LANGUAGE plpgsql AS
    $$ DECLARE r member; BEGIN INSERT INTO member (name, mail) VALUES (n, m) RETURNING * INTO r; RETURN r; END $$;
CREATE FUNCTION join_many(n text, m text) RETURNS SETOF member LANGUAGE plpgsql AS
    $$ BEGIN RETURN QUERY INSERT INTO member (name, mail) VALUES (n, m), (n || '2', m) RETURNING *; END $$;
CREATE FUNCTION join_sql(n text, m text) RETURNS member LANGUAGE sql AS $$ INSERT INTO member (name, mail) VALUES (n, m) RETURNING * $$;
CREATE FUNCTION all_sql() RETURNS SETOF member LANGUAGE sql STABLE AS $$ SELECT * FROM member ORDER BY id $$;
CREATE FUNCTION made_sql(m text) RETURNS member LANGUAGE sql AS $$ SELECT 1, 'made', m::mail $$;
CREATE FUNCTION cast_sql(m text) RETURNS member LANGUAGE sql AS $$ SELECT 1, 'cast', m $$;
CREATE FUNCTION whole_sql(i int) RETURNS member LANGUAGE sql AS $$ SELECT x FROM member x WHERE id = i $$;
CREATE FUNCTION made_row(m text) RETURNS member LANGUAGE plpgsql AS $$ BEGIN RETURN row(1, 'row'::text, m::mail); END $$;
CREATE FUNCTION made_record(m text) RETURNS member LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN SELECT 1, 'record'::text, m::mail INTO r; RETURN r; END $$;
CREATE FUNCTION made_next(m text) RETURNS SETOF member LANGUAGE plpgsql AS
    $$ DECLARE r member; s record; BEGIN r.id := 1; r.mail := m; RETURN NEXT r; SELECT 2, 'next'::text, m::mail INTO s; RETURN NEXT s; END $$;
CREATE FUNCTION of_other_type() RETURNS SETOF member LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 1, 'a'::text, 'b@c'::text; END $$;

SELECT * FROM join_one('a', 'a@b');
SELECT m.mail, loud(m), m FROM join_one('b', 'b@b') AS m;
SELECT loud(join_one('c', 'c@b')), (join_one('d', 'd@b')).mail;
SELECT m.*, loud(m) FROM join_many('f', 'f@b') AS m;
SELECT join_many('g', 'g@b');
SELECT m.mail, loud(m), to_json(m) FROM join_sql('h', 'h@b') AS m;
SELECT id, mail FROM all_sql() WHERE id < 3;
SELECT loud(m) FROM all_sql() AS m WHERE m.mail = 'a@b';
SELECT whole_sql(1), (whole_sql(2)).mail;
SELECT * FROM whole_sql(1000);

-- What is not one is refused, wherever it comes from.
\set SHOW_CONTEXT never
SELECT join_one('e', 'none');
SELECT * FROM made_sql('a@b');
SELECT * FROM made_sql('none');
SELECT made_sql('none');
SELECT * FROM cast_sql('a@b');
SELECT * FROM cast_sql('none');
SELECT * FROM made_row('a@b');
SELECT * FROM made_row('none');
SELECT made_row('none');
SELECT * FROM made_record('a@b');
SELECT * FROM made_record('none');
SELECT * FROM made_next('a@b');
SELECT * FROM made_next('none');
SELECT * FROM of_other_type();
DO $$ DECLARE m member; BEGIN m := row(1, 'x', 'a@b'); RAISE NOTICE '%', m; m := row(1, 'x', 'none'); END $$;
DO $$ DECLARE m member; BEGIN SELECT 1, 'x', 'none' INTO m; END $$;

-- A view over it, and a join.
CREATE VIEW joined AS SELECT a.name, b.mail FROM member AS a, LATERAL whole_sql(a.id) AS b WHERE a.id < 3;
SELECT * FROM joined ORDER BY name;
DROP VIEW joined;
DROP FUNCTION loud, join_one, join_many, join_sql, all_sql, made_sql, cast_sql, whole_sql, made_row, made_record, made_next, of_other_type;
DROP TABLE member;
DROP DOMAIN mail;
