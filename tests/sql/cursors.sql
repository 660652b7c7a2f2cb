-- Cursors inside a transaction: DECLARE, FETCH, MOVE, CLOSE.
CREATE TABLE cur_a (id int PRIMARY KEY, v text);
INSERT INTO cur_a SELECT g, 'v' || g FROM generate_series(1, 10) AS g;
BEGIN;
DECLARE c CURSOR FOR SELECT id, v FROM cur_a ORDER BY id;
FETCH c;
FETCH 2 FROM c;
FETCH FORWARD 1 FROM c;
MOVE 2 IN c;
FETCH NEXT FROM c;
FETCH ALL FROM c;
FETCH NEXT FROM c;
CLOSE c;
FETCH c;
ROLLBACK;
DECLARE c CURSOR FOR SELECT 1;
-- A cursor does not see what comes after it, and does not outlive the transaction.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM cur_a WHERE id > 8 ORDER BY id;
DELETE FROM cur_a WHERE id = 9;
FETCH ALL FROM c;
COMMIT;
FETCH c;
CLOSE c;
DROP TABLE cur_a;
