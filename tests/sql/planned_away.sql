-- what nobody asks for is not computed, and so cannot fail
SELECT exists (SELECT 1/0);
SELECT a FROM (SELECT 1 a, 1/0 b) s;
SELECT count(*) FROM (SELECT 1/0) s;
SELECT a FROM (SELECT 1 a, 1/0 b OFFSET 0) s;
CREATE TABLE planned (a int, b int);
INSERT INTO planned VALUES (1, 1), (2, 2);
SELECT exists (SELECT 1/0 FROM planned);
SELECT a FROM planned WHERE exists (SELECT 1/0 FROM planned x WHERE x.a = planned.a) ORDER BY a;
SELECT a FROM (SELECT a, a/(a-a) AS x FROM planned OFFSET 0) s ORDER BY 1;
WITH q AS (SELECT a, 1/0 x FROM planned) SELECT a FROM q ORDER BY 1;
SELECT a, x FROM (SELECT a, a/(a-a) AS x FROM planned OFFSET 0) s ORDER BY 1;
CREATE SEQUENCE planned_seq;
SELECT a FROM (SELECT a, nextval('planned_seq') FROM planned OFFSET 0) s ORDER BY 1;
SELECT last_value FROM planned_seq;
DROP SEQUENCE planned_seq;
-- characteristics of the transaction by set_config
BEGIN;
SELECT set_config('transaction_read_only', 'on', true);
DELETE FROM planned;
ROLLBACK;
BEGIN READ ONLY;
SELECT set_config('transaction_read_only', 'off', false);
ROLLBACK;
BEGIN;
SELECT set_config('transaction_isolation', 'serializable', true);
ROLLBACK;
SELECT set_config('transaction_read_only', 'true', true), set_config('transaction_isolation', 'read committed', true);
DELETE FROM planned WHERE a = 2;
DROP TABLE planned;
-- a transaction's number
BEGIN;
SELECT txid_current_if_assigned() IS NULL AS none, txid_current() > 0 AS drawn, txid_current() = txid_current_if_assigned() AS same;
COMMIT;
-- settings of the planner
SHOW enable_hashagg;
SET enable_sort = off;
SHOW enable_sort;
RESET enable_sort;
SHOW effective_cache_size;
SET effective_cache_size = '2GB';
SELECT setting, unit FROM pg_settings WHERE name = 'effective_cache_size';
RESET effective_cache_size;
SET random_page_cost = 1.1;
SHOW random_page_cost;
RESET random_page_cost;
SHOW min_parallel_index_scan_size;
SET constraint_exclusion = 'maybe';
SET from_collapse_limit = 0;
