-- What predefined roles are members of, and what languages are made of.
SELECT roleid::regrole, member::regrole, admin_option FROM pg_auth_members WHERE member::regrole::text LIKE 'pg\_%' ORDER BY 1::text;
CREATE ROLE watcher;
SELECT pg_has_role('watcher', 'pg_read_all_stats', 'usage');
GRANT pg_monitor TO watcher;
SELECT r, pg_has_role('watcher', r, 'usage') FROM unnest(ARRAY['pg_monitor', 'pg_read_all_stats', 'pg_read_all_settings', 'pg_stat_scan_tables', 'pg_signal_backend']) AS r;
SET ROLE watcher;
SELECT count(*) > 0 AS shown FROM pg_settings WHERE name = 'config_file';
SELECT count(*) AS of_others FROM pg_stat_activity WHERE backend_type = 'client backend' AND query = '<insufficient privilege>';
RESET ROLE;
REVOKE pg_monitor FROM watcher;
SELECT pg_has_role('watcher', 'pg_read_all_settings', 'usage');
DROP ROLE watcher;
SELECT lanname, lanplcallfoid::regprocedure, laninline::regprocedure, lanvalidator::regprocedure FROM pg_language WHERE lanispl;
SELECT lanname, proname, prorettype::regtype, provolatile, proisstrict, prosrc, probin
FROM pg_language JOIN pg_proc AS p ON p.oid IN (lanplcallfoid, laninline, lanvalidator) ORDER BY lanname, p.oid;
SELECT lan.lanname FROM pg_language AS lan JOIN pg_proc AS hp ON hp.oid = lan.lanplcallfoid WHERE lanispl;
