-- PostgreSQL's settings that tools ask for are all there; what an application sets for itself keeps its place.
\set VERBOSITY verbose
\set SHOW_CONTEXT never
SELECT name FROM unnest(string_to_array('allow_in_place_tablespaces,allow_system_table_mods,archive_cleanup_command,archive_command,archive_library,archive_mode,archive_timeout,array_nulls,autovacuum_freeze_max_age,autovacuum_max_workers,autovacuum_multixact_freeze_max_age,autovacuum_vacuum_cost_delay,autovacuum_vacuum_cost_limit,autovacuum_vacuum_insert_scale_factor,autovacuum_vacuum_insert_threshold,autovacuum_vacuum_scale_factor,autovacuum_vacuum_threshold,autovacuum_work_mem,backtrace_functions,bgwriter_delay,bgwriter_flush_after,bgwriter_lru_maxpages,bgwriter_lru_multiplier,bonjour,bonjour_name,checkpoint_completion_target,checkpoint_flush_after,checkpoint_timeout,checkpoint_warning,client_connection_check_interval,cluster_name,commit_delay,compute_query_id,config_file,data_checksums,data_sync_retry,db_user_namespace,debug_assertions,debug_discard_caches,debug_pretty_print,debug_print_parse,debug_print_plan,debug_print_rewritten,dynamic_library_path,dynamic_shared_memory_type,event_source,exit_on_error,external_pid_file,fsync,full_page_writes,hba_file,hot_standby,hot_standby_feedback,huge_page_size,huge_pages,ident_file,ignore_checksum_failure,ignore_invalid_pages,ignore_system_indexes,jit_debugging_support,jit_dump_bitcode,jit_profiling_support,jit_provider,krb_caseins_users,krb_server_keyfile,listen_addresses,lo_compat_privileges,local_preload_libraries,log_autovacuum_min_duration,log_checkpoints,log_connections,log_destination,log_directory,log_disconnections,log_duration,log_error_verbosity,log_executor_stats,log_file_mode,log_filename,log_hostname,log_line_prefix,log_lock_waits,log_min_duration_sample,log_min_error_statement,log_min_messages,log_parameter_max_length,log_parameter_max_length_on_error,log_parser_stats,log_planner_stats,log_recovery_conflict_waits,log_replication_commands,log_rotation_age,log_rotation_size,log_startup_progress_interval,log_statement,log_statement_sample_rate,log_statement_stats,log_temp_files,log_timezone,log_transaction_sample_rate,log_truncate_on_rotation,logging_collector,max_files_per_process,max_function_args,max_locks_per_transaction,max_logical_replication_workers,max_pred_locks_per_page,max_pred_locks_per_relation,max_pred_locks_per_transaction,max_prepared_transactions,max_replication_slots,max_slot_wal_keep_size,max_standby_archive_delay,max_standby_streaming_delay,max_sync_workers_per_subscription,max_wal_senders,max_wal_size,max_worker_processes,min_dynamic_shared_memory,min_wal_size,old_snapshot_threshold,port,post_auth_delay,pre_auth_delay,primary_conninfo,primary_slot_name,promote_trigger_file,recovery_end_command,recovery_init_sync_method,recovery_min_apply_delay,recovery_prefetch,recovery_target,recovery_target_action,recovery_target_inclusive,recovery_target_lsn,recovery_target_name,recovery_target_time,recovery_target_timeline,recovery_target_xid,remove_temp_files_after_crash,restart_after_crash,restore_command,session_preload_libraries,shared_buffers,shared_memory_size,shared_memory_size_in_huge_pages,shared_memory_type,shared_preload_libraries,ssl_ca_file,ssl_ciphers,ssl_crl_dir,ssl_crl_file,ssl_dh_params_file,ssl_ecdh_curve,ssl_library,ssl_max_protocol_version,ssl_min_protocol_version,ssl_passphrase_command,ssl_passphrase_command_supports_reload,ssl_prefer_server_ciphers,superuser_reserved_connections,synchronous_standby_names,syslog_facility,syslog_ident,syslog_sequence_numbers,syslog_split_messages,tcp_keepalives_count,tcp_keepalives_idle,tcp_keepalives_interval,tcp_user_timeout,temp_tablespaces,timezone_abbreviations,trace_notify,trace_recovery_messages,trace_sort,track_activity_query_size,track_commit_timestamp,track_wal_io_timing,transform_null_equals,unix_socket_directories,unix_socket_group,unix_socket_permissions,vacuum_defer_cleanup_age,wal_block_size,wal_buffers,wal_consistency_checking,wal_decode_buffer_size,wal_init_zero,wal_keep_size,wal_level,wal_log_hints,wal_receiver_create_temp_slot,wal_receiver_status_interval,wal_receiver_timeout,wal_recycle,wal_retrieve_retry_interval,wal_segment_size,wal_sender_timeout,wal_sync_method,wal_writer_delay,wal_writer_flush_after,xmlbinary,zero_damaged_pages', ',')) name
WHERE current_setting(name, true) IS NULL OR NOT EXISTS (SELECT FROM pg_settings s WHERE s.name = name);
-- What is the same here.
SHOW fsync;
SHOW max_prepared_transactions;
SHOW autovacuum_vacuum_scale_factor;
SHOW array_nulls;
SHOW log_statement;
SHOW superuser_reserved_connections;
SHOW max_function_args;
SHOW track_activity_query_size;
SHOW unix_socket_permissions;
SHOW log_file_mode;
SHOW max_wal_size;
SHOW old_snapshot_threshold;
SELECT current_setting('xmlbinary'), current_setting('wal_block_size');
SELECT name, vartype, unit, min_val, max_val, enumvals FROM pg_settings
WHERE name IN ('log_statement', 'max_wal_size', 'log_rotation_age', 'unix_socket_permissions', 'wal_writer_delay', 'array_nulls', 'track_activity_query_size') ORDER BY name;
-- Saying what holds is no promise.
SET log_statement = 'none';
SET exit_on_error = off;
SET xmlbinary = 'hex';
SHOW xmlbinary;
RESET xmlbinary;
SET wal_sender_timeout = '1min';
SHOW wal_sender_timeout;
RESET wal_sender_timeout;
SET log_statement = 'most';
SET wal_level = 'logical';
SET wal_block_size = 1;
SET port = 1;
-- An application's own values.
SHOW custom.x;
SET custom.x = '1';
SHOW custom.x;
RESET custom.x;
SHOW custom.x;
BEGIN;
SET custom.y = '2';
ROLLBACK;
SHOW custom.y;
SELECT current_setting('custom.y', true) = '' AS empty, current_setting('custom.z', true) IS NULL AS unknown;
SET custom.x = 'again';
RESET ALL;
SHOW custom.x;
SET LOCAL custom.w = '3';
BEGIN;
SET LOCAL custom.w = '3';
SHOW custom.w;
COMMIT;
SHOW custom.w;
