-- CHECKPOINT: allowed everywhere a statement is, without a word of grammar behind it.
CREATE TABLE checkpointed (a int PRIMARY KEY, b text);
INSERT INTO checkpointed SELECT g, 'row ' || g FROM generate_series(1, 1000) AS g;
CHECKPOINT;
checkpoint;
-- In a block, also one that may not write.
BEGIN;
UPDATE checkpointed SET b = 'changed' WHERE a <= 10;
CHECKPOINT;
SELECT count(*) FROM checkpointed WHERE b = 'changed';
ROLLBACK;
BEGIN READ ONLY;
CHECKPOINT;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM checkpointed WHERE b = 'changed';
CHECKPOINT;
SAVEPOINT s;
CHECKPOINT;
ROLLBACK TO s;
COMMIT;
-- Not in a block that has failed.
BEGIN;
SELECT 1 / 0;
CHECKPOINT;
ROLLBACK;
-- Several statements in one message are one transaction.
INSERT INTO checkpointed VALUES (1001, 'b')\; CHECKPOINT\; INSERT INTO checkpointed VALUES (1001, 'twice');
SELECT count(*) FROM checkpointed;
-- No grammar.
CHECKPOINT now;
CHECKPOINT (fast);
PREPARE p AS CHECKPOINT;
-- Nothing of a checkpoint is seen in what it leaves.
DELETE FROM checkpointed WHERE a % 2 = 0;
CHECKPOINT;
SELECT count(*), min(a), max(a) FROM checkpointed;
DROP TABLE checkpointed;
CHECKPOINT;
