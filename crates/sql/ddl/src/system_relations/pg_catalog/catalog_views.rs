//! The views of `pg_catalog`: names, OIDs and columns as in PostgreSQL 15, and the function that gives the rows.

use super::none;
use logstead_sql_catalog::VirtualTable;

/// Every view.
pub(super) static VIEWS: &[VirtualTable] = virtual_tables! {
    "pg_catalog";
    12085 pg_available_extension_versions = none {
        name NAME, version TEXT, installed BOOL, superuser BOOL, trusted BOOL, relocatable BOOL, schema NAME,
        requires NAME_ARRAY, comment TEXT,
    }
    12081 pg_available_extensions = super::extensions::pg_available_extensions {
        name NAME, default_version TEXT, installed_version TEXT, comment TEXT,
    }
    12138 pg_backend_memory_contexts = none {
        name TEXT, ident TEXT, parent TEXT, level INT4, total_bytes INT8, total_nblocks INT8, free_bytes INT8,
        free_chunks INT8, used_bytes INT8,
    }
    12130 pg_config = none {
        name TEXT, setting TEXT,
    }
    12077 pg_cursors = super::session_views::pg_cursors {
        name TEXT, statement TEXT, is_holdable BOOL, is_binary BOOL, is_scrollable BOOL, creation_time TIMESTAMPTZ,
    }
    12110 pg_file_settings = super::session_views::pg_file_settings {
        sourcefile TEXT, sourceline INT4, seqno INT4, name TEXT, setting TEXT, applied BOOL, error TEXT,
    }
    12010 pg_group = super::roles::pg_group {
        groname NAME, grosysid OID, grolist OID_ARRAY,
    }
    12114 pg_hba_file_rules = none {
        line_number INT4, type TEXT, database TEXT_ARRAY, user_name TEXT_ARRAY, address TEXT, netmask TEXT,
        auth_method TEXT, options TEXT_ARRAY, error TEXT,
    }
    12118 pg_ident_file_mappings = none {
        line_number INT4, map_name TEXT, sys_name TEXT, pg_username TEXT, error TEXT,
    }
    12043 pg_indexes = super::views::pg_indexes {
        schemaname NAME, tablename NAME, indexname NAME, tablespace NAME, indexdef TEXT,
    }
    12073 pg_locks = super::session_views::pg_locks {
        locktype TEXT, database OID, relation OID, page INT4, tuple INT2, virtualxid TEXT, transactionid XID,
        classid OID, objid OID, objsubid INT2, virtualtransaction TEXT, pid INT4, mode TEXT, granted BOOL,
        fastpath BOOL, waitstart TIMESTAMPTZ,
    }
    12038 pg_matviews = super::views::pg_matviews {
        schemaname NAME, matviewname NAME, matviewowner NAME, tablespace NAME, hasindexes BOOL, ispopulated BOOL,
        definition TEXT,
    }
    12018 pg_policies = super::policies::pg_policies {
        schemaname NAME, tablename NAME, policyname NAME, permissive TEXT, roles NAME_ARRAY, cmd TEXT, qual TEXT,
        with_check TEXT,
    }
    12095 pg_prepared_statements = super::session_views::pg_prepared_statements {
        name TEXT, statement TEXT, prepare_time TIMESTAMPTZ, parameter_types REGTYPE_ARRAY, from_sql BOOL, generic_plans INT8,
        custom_plans INT8,
    }
    12090 pg_prepared_xacts = none {
        transaction XID, gid TEXT, prepared TIMESTAMPTZ, owner NAME, database NAME,
    }
    12068 pg_publication_tables = none {
        pubname NAME, schemaname NAME, tablename NAME, attnames NAME_ARRAY, rowfilter TEXT,
    }
    12332 pg_replication_origin_status = none {
        local_id OID, external_id TEXT, remote_lsn TEXT, local_lsn TEXT,
    }
    12257 pg_replication_slots = super::views::pg_replication_slots {
        slot_name NAME, plugin NAME, slot_type TEXT, datoid OID, database NAME, temporary BOOL, active BOOL,
        active_pid INT4, xmin XID, catalog_xmin XID, restart_lsn PG_LSN, confirmed_flush_lsn PG_LSN, wal_status TEXT,
        safe_wal_size INT8, two_phase BOOL,
    }
    12000 pg_roles = super::roles::pg_roles {
        rolname NAME, rolsuper BOOL, rolinherit BOOL, rolcreaterole BOOL, rolcreatedb BOOL, rolcanlogin BOOL,
        rolreplication BOOL, rolconnlimit INT4, rolpassword TEXT, rolvaliduntil TIMESTAMPTZ, rolbypassrls BOOL,
        rolconfig TEXT_ARRAY, oid OID,
    }
    12023 pg_rules = none {
        schemaname NAME, tablename NAME, rulename NAME, definition TEXT,
    }
    12099 pg_seclabels = none {
        objoid OID, classoid OID, objsubid INT4, objtype TEXT, objnamespace OID, objname TEXT, provider TEXT,
        label TEXT,
    }
    12048 pg_sequences = super::views::pg_sequences {
        schemaname NAME, sequencename NAME, sequenceowner NAME, data_type REGTYPE, start_value INT8, min_value INT8,
        max_value INT8, increment_by INT8, cycle BOOL, cache_size INT8, last_value INT8,
    }
    12104 pg_settings = super::session_views::pg_settings {
        name TEXT, setting TEXT, unit TEXT, category TEXT, short_desc TEXT, extra_desc TEXT, context TEXT,
        vartype TEXT, source TEXT, min_val TEXT, max_val TEXT, enumvals TEXT_ARRAY, boot_val TEXT, reset_val TEXT,
        sourcefile TEXT, sourceline INT4, pending_restart BOOL,
    }
    12005 pg_shadow = super::roles::pg_shadow {
        usename NAME, usesysid OID, usecreatedb BOOL, usesuper BOOL, userepl BOOL, usebypassrls BOOL, passwd TEXT,
        valuntil TIMESTAMPTZ, useconfig TEXT_ARRAY,
    }
    12134 pg_shmem_allocations = none {
        name TEXT, off INT8, size INT8, allocated_size INT8,
    }
    12222 pg_stat_activity = super::views::pg_stat_activity {
        datid OID, datname NAME, pid INT4, leader_pid INT4, usesysid OID, usename NAME, application_name TEXT,
        client_addr INET, client_hostname TEXT, client_port INT4, backend_start TIMESTAMPTZ, xact_start TIMESTAMPTZ,
        query_start TIMESTAMPTZ, state_change TIMESTAMPTZ, wait_event_type TEXT, wait_event TEXT, state TEXT,
        backend_xid XID, backend_xmin XID, query_id INT8, query TEXT, backend_type TEXT,
    }
    12183 pg_stat_all_indexes = super::views::pg_stat_all_indexes {
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME, idx_scan INT8, idx_tup_read INT8,
        idx_tup_fetch INT8,
    }
    12142 pg_stat_all_tables = super::views::pg_stat_all_tables {
        relid OID, schemaname NAME, relname NAME, seq_scan INT8, seq_tup_read INT8, idx_scan INT8, idx_tup_fetch INT8,
        n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8, n_tup_hot_upd INT8, n_live_tup INT8, n_dead_tup INT8,
        n_mod_since_analyze INT8, n_ins_since_vacuum INT8, last_vacuum TIMESTAMPTZ, last_autovacuum TIMESTAMPTZ,
        last_analyze TIMESTAMPTZ, last_autoanalyze TIMESTAMPTZ, vacuum_count INT8, autovacuum_count INT8,
        analyze_count INT8, autoanalyze_count INT8,
    }
    12285 pg_stat_archiver = none {
        archived_count INT8, last_archived_wal TEXT, last_archived_time TIMESTAMPTZ, failed_count INT8,
        last_failed_wal TEXT, last_failed_time TIMESTAMPTZ, stats_reset TIMESTAMPTZ,
    }
    12289 pg_stat_bgwriter = none {
        checkpoints_timed INT8, checkpoints_req INT8, checkpoint_write_time FLOAT8, checkpoint_sync_time FLOAT8,
        buffers_checkpoint INT8, buffers_clean INT8, maxwritten_clean INT8, buffers_backend INT8,
        buffers_backend_fsync INT8, buffers_alloc INT8, stats_reset TIMESTAMPTZ,
    }
    12266 pg_stat_database = super::views::pg_stat_database {
        datid OID, datname NAME, numbackends INT4, xact_commit INT8, xact_rollback INT8, blks_read INT8,
        blks_hit INT8, tup_returned INT8, tup_fetched INT8, tup_inserted INT8, tup_updated INT8, tup_deleted INT8,
        conflicts INT8, temp_files INT8, temp_bytes INT8, deadlocks INT8, checksum_failures INT8,
        checksum_last_failure TIMESTAMPTZ, blk_read_time FLOAT8, blk_write_time FLOAT8, session_time FLOAT8,
        active_time FLOAT8, idle_in_transaction_time FLOAT8, sessions INT8, sessions_abandoned INT8,
        sessions_fatal INT8, sessions_killed INT8, stats_reset TIMESTAMPTZ,
    }
    12271 pg_stat_database_conflicts = none {
        datid OID, datname NAME, confl_tablespace INT8, confl_lock INT8, confl_snapshot INT8, confl_bufferpin INT8,
        confl_deadlock INT8,
    }
    12253 pg_stat_gssapi = none {
        pid INT4, gss_authenticated BOOL, principal TEXT, encrypted BOOL,
    }
    12297 pg_stat_progress_analyze = none {
        pid INT4, datid OID, datname NAME, relid OID, phase TEXT, sample_blks_total INT8, sample_blks_scanned INT8,
        ext_stats_total INT8, ext_stats_computed INT8, child_tables_total INT8, child_tables_done INT8,
        current_child_table_relid OID,
    }
    12317 pg_stat_progress_basebackup = none {
        pid INT4, phase TEXT, backup_total INT8, backup_streamed INT8, tablespaces_total INT8,
        tablespaces_streamed INT8,
    }
    12307 pg_stat_progress_cluster = none {
        pid INT4, datid OID, datname NAME, relid OID, command TEXT, phase TEXT, cluster_index_relid OID,
        heap_tuples_scanned INT8, heap_tuples_written INT8, heap_blks_total INT8, heap_blks_scanned INT8,
        index_rebuild_count INT8,
    }
    12322 pg_stat_progress_copy = none {
        pid INT4, datid OID, datname NAME, relid OID, command TEXT, type TEXT, bytes_processed INT8, bytes_total INT8,
        tuples_processed INT8, tuples_excluded INT8,
    }
    12312 pg_stat_progress_create_index = none {
        pid INT4, datid OID, datname NAME, relid OID, index_relid OID, command TEXT, phase TEXT, lockers_total INT8,
        lockers_done INT8, current_locker_pid INT8, blocks_total INT8, blocks_done INT8, tuples_total INT8,
        tuples_done INT8, partitions_total INT8, partitions_done INT8,
    }
    12302 pg_stat_progress_vacuum = none {
        pid INT4, datid OID, datname NAME, relid OID, phase TEXT, heap_blks_total INT8, heap_blks_scanned INT8,
        heap_blks_vacuumed INT8, index_vacuum_count INT8, max_dead_tuples INT8, num_dead_tuples INT8,
    }
    12240 pg_stat_recovery_prefetch = none {
        stats_reset TIMESTAMPTZ, prefetch INT8, hit INT8, skip_init INT8, skip_new INT8, skip_fpw INT8, skip_rep INT8,
        wal_distance INT4, block_distance INT4, io_depth INT4,
    }
    12227 pg_stat_replication = super::views::pg_stat_replication {
        pid INT4, usesysid OID, usename NAME, application_name TEXT, client_addr INET, client_hostname TEXT,
        client_port INT4, backend_start TIMESTAMPTZ, backend_xmin XID, state TEXT, sent_lsn PG_LSN, write_lsn PG_LSN,
        flush_lsn PG_LSN, replay_lsn PG_LSN, write_lag INTERVAL, flush_lag INTERVAL, replay_lag INTERVAL,
        sync_priority INT4, sync_state TEXT, reply_time TIMESTAMPTZ,
    }
    12262 pg_stat_replication_slots = none {
        slot_name TEXT, spill_txns INT8, spill_count INT8, spill_bytes INT8, stream_txns INT8, stream_count INT8,
        stream_bytes INT8, total_txns INT8, total_bytes INT8, stats_reset TIMESTAMPTZ,
    }
    12232 pg_stat_slru = none {
        name TEXT, blks_zeroed INT8, blks_hit INT8, blks_read INT8, blks_written INT8, blks_exists INT8, flushes INT8,
        truncates INT8, stats_reset TIMESTAMPTZ,
    }
    12249 pg_stat_ssl = none {
        pid INT4, ssl BOOL, version TEXT, cipher TEXT, bits INT4, client_dn TEXT, client_serial NUMERIC,
        issuer_dn TEXT,
    }
    12950 pg_stat_statements = super::views::pg_stat_statements {
        userid OID, dbid OID, toplevel BOOL, queryid INT8, query TEXT, plans INT8, total_plan_time FLOAT8,
        min_plan_time FLOAT8, max_plan_time FLOAT8, mean_plan_time FLOAT8, stddev_plan_time FLOAT8, calls INT8,
        total_exec_time FLOAT8, min_exec_time FLOAT8, max_exec_time FLOAT8, mean_exec_time FLOAT8, stddev_exec_time FLOAT8,
        rows INT8, shared_blks_hit INT8, shared_blks_read INT8, shared_blks_dirtied INT8, shared_blks_written INT8,
        local_blks_hit INT8, local_blks_read INT8, local_blks_dirtied INT8, local_blks_written INT8, temp_blks_read INT8,
        temp_blks_written INT8, blk_read_time FLOAT8, blk_write_time FLOAT8, temp_blk_read_time FLOAT8,
        temp_blk_write_time FLOAT8, wal_records INT8, wal_fpi INT8, wal_bytes NUMERIC, jit_functions INT8,
        jit_generation_time FLOAT8, jit_inlining_count INT8, jit_inlining_time FLOAT8, jit_optimization_count INT8,
        jit_optimization_time FLOAT8, jit_emission_count INT8, jit_emission_time FLOAT8,
    }
    12244 pg_stat_subscription = none {
        subid OID, subname NAME, pid INT4, relid OID, received_lsn TEXT, last_msg_send_time TIMESTAMPTZ,
        last_msg_receipt_time TIMESTAMPTZ, latest_end_lsn TEXT, latest_end_time TIMESTAMPTZ,
    }
    12336 pg_stat_subscription_stats = none {
        subid OID, subname NAME, apply_error_count INT8, sync_error_count INT8, stats_reset TIMESTAMPTZ,
    }
    12188 pg_stat_sys_indexes = none {
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME, idx_scan INT8, idx_tup_read INT8,
        idx_tup_fetch INT8,
    }
    12152 pg_stat_sys_tables = none {
        relid OID, schemaname NAME, relname NAME, seq_scan INT8, seq_tup_read INT8, idx_scan INT8, idx_tup_fetch INT8,
        n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8, n_tup_hot_upd INT8, n_live_tup INT8, n_dead_tup INT8,
        n_mod_since_analyze INT8, n_ins_since_vacuum INT8, last_vacuum TIMESTAMPTZ, last_autovacuum TIMESTAMPTZ,
        last_analyze TIMESTAMPTZ, last_autoanalyze TIMESTAMPTZ, vacuum_count INT8, autovacuum_count INT8,
        analyze_count INT8, autoanalyze_count INT8,
    }
    12275 pg_stat_user_functions = none {
        funcid OID, schemaname NAME, funcname NAME, calls INT8, total_time FLOAT8, self_time FLOAT8,
    }
    12192 pg_stat_user_indexes = super::views::pg_stat_user_indexes {
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME, idx_scan INT8, idx_tup_read INT8,
        idx_tup_fetch INT8,
    }
    12161 pg_stat_user_tables = super::views::pg_stat_user_tables {
        relid OID, schemaname NAME, relname NAME, seq_scan INT8, seq_tup_read INT8, idx_scan INT8, idx_tup_fetch INT8,
        n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8, n_tup_hot_upd INT8, n_live_tup INT8, n_dead_tup INT8,
        n_mod_since_analyze INT8, n_ins_since_vacuum INT8, last_vacuum TIMESTAMPTZ, last_autovacuum TIMESTAMPTZ,
        last_analyze TIMESTAMPTZ, last_autoanalyze TIMESTAMPTZ, vacuum_count INT8, autovacuum_count INT8,
        analyze_count INT8, autoanalyze_count INT8,
    }
    12293 pg_stat_wal = none {
        wal_records INT8, wal_fpi INT8, wal_bytes NUMERIC, wal_buffers_full INT8, wal_write INT8, wal_sync INT8,
        wal_write_time FLOAT8, wal_sync_time FLOAT8, stats_reset TIMESTAMPTZ,
    }
    12236 pg_stat_wal_receiver = super::replica::pg_stat_wal_receiver {
        pid INT4, status TEXT, receive_start_lsn PG_LSN, receive_start_tli INT4, written_lsn PG_LSN, flushed_lsn PG_LSN,
        received_tli INT4, last_msg_send_time TIMESTAMPTZ, last_msg_receipt_time TIMESTAMPTZ, latest_end_lsn PG_LSN,
        latest_end_time TIMESTAMPTZ, slot_name TEXT, sender_host TEXT, sender_port INT4, conninfo TEXT,
    }
    12147 pg_stat_xact_all_tables = none {
        relid OID, schemaname NAME, relname NAME, seq_scan INT8, seq_tup_read INT8, idx_scan INT8, idx_tup_fetch INT8,
        n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8, n_tup_hot_upd INT8,
    }
    12157 pg_stat_xact_sys_tables = none {
        relid OID, schemaname NAME, relname NAME, seq_scan INT8, seq_tup_read INT8, idx_scan INT8, idx_tup_fetch INT8,
        n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8, n_tup_hot_upd INT8,
    }
    12280 pg_stat_xact_user_functions = none {
        funcid OID, schemaname NAME, funcname NAME, calls INT8, total_time FLOAT8, self_time FLOAT8,
    }
    12166 pg_stat_xact_user_tables = none {
        relid OID, schemaname NAME, relname NAME, seq_scan INT8, seq_tup_read INT8, idx_scan INT8, idx_tup_fetch INT8,
        n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8, n_tup_hot_upd INT8,
    }
    12196 pg_statio_all_indexes = none {
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME, idx_blks_read INT8,
        idx_blks_hit INT8,
    }
    12209 pg_statio_all_sequences = none {
        relid OID, schemaname NAME, relname NAME, blks_read INT8, blks_hit INT8,
    }
    12170 pg_statio_all_tables = none {
        relid OID, schemaname NAME, relname NAME, heap_blks_read INT8, heap_blks_hit INT8, idx_blks_read INT8,
        idx_blks_hit INT8, toast_blks_read INT8, toast_blks_hit INT8, tidx_blks_read INT8, tidx_blks_hit INT8,
    }
    12201 pg_statio_sys_indexes = none {
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME, idx_blks_read INT8,
        idx_blks_hit INT8,
    }
    12214 pg_statio_sys_sequences = none {
        relid OID, schemaname NAME, relname NAME, blks_read INT8, blks_hit INT8,
    }
    12175 pg_statio_sys_tables = none {
        relid OID, schemaname NAME, relname NAME, heap_blks_read INT8, heap_blks_hit INT8, idx_blks_read INT8,
        idx_blks_hit INT8, toast_blks_read INT8, toast_blks_hit INT8, tidx_blks_read INT8, tidx_blks_hit INT8,
    }
    12205 pg_statio_user_indexes = none {
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME, idx_blks_read INT8,
        idx_blks_hit INT8,
    }
    12218 pg_statio_user_sequences = none {
        relid OID, schemaname NAME, relname NAME, blks_read INT8, blks_hit INT8,
    }
    12179 pg_statio_user_tables = none {
        relid OID, schemaname NAME, relname NAME, heap_blks_read INT8, heap_blks_hit INT8, idx_blks_read INT8,
        idx_blks_hit INT8, toast_blks_read INT8, toast_blks_hit INT8, tidx_blks_read INT8, tidx_blks_hit INT8,
    }
    12053 pg_stats = super::statistics::pg_stats {
        schemaname NAME, tablename NAME, attname NAME, inherited BOOL, null_frac FLOAT4, avg_width INT4,
        n_distinct FLOAT4, most_common_vals ANYARRAY, most_common_freqs FLOAT4_ARRAY, histogram_bounds ANYARRAY,
        correlation FLOAT4, most_common_elems ANYARRAY, most_common_elem_freqs FLOAT4_ARRAY,
        elem_count_histogram FLOAT4_ARRAY,
    }
    12058 pg_stats_ext = none {
        schemaname NAME, tablename NAME, statistics_schemaname NAME, statistics_name NAME, statistics_owner NAME,
        attnames NAME_ARRAY, exprs TEXT_ARRAY, kinds CHAR_ARRAY, inherited BOOL, n_distinct TEXT, dependencies TEXT,
        most_common_vals TEXT_ARRAY, most_common_val_nulls BOOL_ARRAY, most_common_freqs FLOAT8_ARRAY,
        most_common_base_freqs FLOAT8_ARRAY,
    }
    12063 pg_stats_ext_exprs = none {
        schemaname NAME, tablename NAME, statistics_schemaname NAME, statistics_name NAME, statistics_owner NAME,
        expr TEXT, inherited BOOL, null_frac FLOAT4, avg_width INT4, n_distinct FLOAT4, most_common_vals ANYARRAY,
        most_common_freqs FLOAT4_ARRAY, histogram_bounds ANYARRAY, correlation FLOAT4, most_common_elems ANYARRAY,
        most_common_elem_freqs FLOAT4_ARRAY, elem_count_histogram FLOAT4_ARRAY,
    }
    12033 pg_tables = super::views::pg_tables {
        schemaname NAME, tablename NAME, tableowner NAME, tablespace NAME, hasindexes BOOL, hasrules BOOL,
        hastriggers BOOL, rowsecurity BOOL,
    }
    12122 pg_timezone_abbrevs = super::time_zones::pg_timezone_abbrevs {
        abbrev TEXT, utc_offset INTERVAL, is_dst BOOL,
    }
    12126 pg_timezone_names = super::time_zones::pg_timezone_names {
        name TEXT, abbrev TEXT, utc_offset INTERVAL, is_dst BOOL,
    }
    12014 pg_user = super::roles::pg_user {
        usename NAME, usesysid OID, usecreatedb BOOL, usesuper BOOL, userepl BOOL, usebypassrls BOOL, passwd TEXT,
        valuntil TIMESTAMPTZ, useconfig TEXT_ARRAY,
    }
    12327 pg_user_mappings = none {
        umid OID, srvid OID, srvname NAME, umuser OID, usename NAME, umoptions TEXT_ARRAY,
    }
    12028 pg_views = super::views::pg_views {
        schemaname NAME, viewname NAME, viewowner NAME, definition TEXT,
    }
};
