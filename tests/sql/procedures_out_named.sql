-- OUT arguments of procedures: by name, and of a type that fits.
CREATE PROCEDURE out_one(OUT a int) LANGUAGE sql AS $$ SELECT 1 $$;
CALL out_one(NULL);
CALL out_one(1/0);
CALL out_one(1./0.);
CREATE PROCEDURE out_three(OUT a int, IN b int, IN c int) LANGUAGE sql AS $$ SELECT b - c $$;
CALL out_three(NULL, 7, 4);
CALL out_three(a => NULL, b => 8, c => 2);
CALL out_three(NULL, 7, c => 2);
CALL out_three(NULL, c => 4, b => 11);
CALL out_three(b => 8, c => 2, a => 0);
CREATE PROCEDURE calls_one(INOUT b int) LANGUAGE sql AS $$ CALL out_one(b); $$;
DROP PROCEDURE out_one;
DROP PROCEDURE out_three;
