//! The views of `information_schema`: columns as in PostgreSQL 15, and the function that gives the rows.

use crate::pg_catalog::none;
use crate::pg_catalog::virtual_tables;
use logstead_sql_catalog::VirtualTable;

/// Every view.
pub(super) static VIEWS: &[VirtualTable] = virtual_tables! {
    "information_schema";
    13241 administrable_role_authorizations = none {
        grantee NAME, role_name NAME, is_grantable VARCHAR,
    }
    13236 applicable_roles = crate::pg_catalog::roles::applicable_roles {
        grantee NAME, role_name NAME, is_grantable VARCHAR,
    }
    13245 attributes = super::composites::attributes {
        udt_catalog NAME, udt_schema NAME, udt_name NAME, attribute_name NAME, ordinal_position INT4,
        attribute_default VARCHAR, is_nullable VARCHAR, data_type VARCHAR, character_maximum_length INT4,
        character_octet_length INT4, character_set_catalog NAME, character_set_schema NAME, character_set_name NAME,
        collation_catalog NAME, collation_schema NAME, collation_name NAME, numeric_precision INT4,
        numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4, interval_type VARCHAR,
        interval_precision INT4, attribute_udt_catalog NAME, attribute_udt_schema NAME, attribute_udt_name NAME,
        scope_catalog NAME, scope_schema NAME, scope_name NAME, maximum_cardinality INT4, dtd_identifier NAME,
        is_derived_reference_attribute VARCHAR,
    }
    13250 character_sets = none {
        character_set_catalog NAME, character_set_schema NAME, character_set_name NAME, character_repertoire NAME,
        form_of_use NAME, default_collate_catalog NAME, default_collate_schema NAME, default_collate_name NAME,
    }
    13255 check_constraint_routine_usage = none {
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME, specific_catalog NAME,
        specific_schema NAME, specific_name NAME,
    }
    13260 check_constraints = super::rows::check_constraints {
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME, check_clause VARCHAR,
    }
    13270 collation_character_set_applicability = none {
        collation_catalog NAME, collation_schema NAME, collation_name NAME, character_set_catalog NAME,
        character_set_schema NAME, character_set_name NAME,
    }
    13265 collations = none {
        collation_catalog NAME, collation_schema NAME, collation_name NAME, pad_attribute VARCHAR,
    }
    13275 column_column_usage = super::rows::column_column_usage {
        table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME, dependent_column NAME,
    }
    13280 column_domain_usage = super::domains::column_domain_usage {
        domain_catalog NAME, domain_schema NAME, domain_name NAME, table_catalog NAME, table_schema NAME,
        table_name NAME, column_name NAME,
    }
    13503 column_options = none {
        table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME, option_name NAME,
        option_value VARCHAR,
    }
    13285 column_privileges = super::privileges::column_privileges {
        grantor NAME, grantee NAME, table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME,
        privilege_type VARCHAR, is_grantable VARCHAR,
    }
    13290 column_udt_usage = none {
        udt_catalog NAME, udt_schema NAME, udt_name NAME, table_catalog NAME, table_schema NAME, table_name NAME,
        column_name NAME,
    }
    13295 columns = super::rows::columns {
        table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME, ordinal_position INT4,
        column_default VARCHAR, is_nullable VARCHAR, data_type VARCHAR, character_maximum_length INT4,
        character_octet_length INT4, numeric_precision INT4, numeric_precision_radix INT4, numeric_scale INT4,
        datetime_precision INT4, interval_type VARCHAR, interval_precision INT4, character_set_catalog NAME,
        character_set_schema NAME, character_set_name NAME, collation_catalog NAME, collation_schema NAME,
        collation_name NAME, domain_catalog NAME, domain_schema NAME, domain_name NAME, udt_catalog NAME,
        udt_schema NAME, udt_name NAME, scope_catalog NAME, scope_schema NAME, scope_name NAME,
        maximum_cardinality INT4, dtd_identifier NAME, is_self_referencing VARCHAR, is_identity VARCHAR,
        identity_generation VARCHAR, identity_start VARCHAR, identity_increment VARCHAR, identity_maximum VARCHAR,
        identity_minimum VARCHAR, identity_cycle VARCHAR, is_generated VARCHAR, generation_expression VARCHAR,
        is_updatable VARCHAR,
    }
    13300 constraint_column_usage = super::rows::constraint_column_usage {
        table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME, constraint_catalog NAME,
        constraint_schema NAME, constraint_name NAME,
    }
    13305 constraint_table_usage = super::rows::constraint_table_usage {
        table_catalog NAME, table_schema NAME, table_name NAME, constraint_catalog NAME, constraint_schema NAME,
        constraint_name NAME,
    }
    13488 data_type_privileges = none {
        object_catalog NAME, object_schema NAME, object_name NAME, object_type VARCHAR, dtd_identifier NAME,
    }
    13310 domain_constraints = super::domains::domain_constraints {
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME, domain_catalog NAME,
        domain_schema NAME, domain_name NAME, is_deferrable VARCHAR, initially_deferred VARCHAR,
    }
    13315 domain_udt_usage = super::domains::domain_udt_usage {
        udt_catalog NAME, udt_schema NAME, udt_name NAME, domain_catalog NAME, domain_schema NAME, domain_name NAME,
    }
    13320 domains = super::domains::domains {
        domain_catalog NAME, domain_schema NAME, domain_name NAME, data_type VARCHAR, character_maximum_length INT4,
        character_octet_length INT4, character_set_catalog NAME, character_set_schema NAME, character_set_name NAME,
        collation_catalog NAME, collation_schema NAME, collation_name NAME, numeric_precision INT4,
        numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4, interval_type VARCHAR,
        interval_precision INT4, domain_default VARCHAR, udt_catalog NAME, udt_schema NAME, udt_name NAME,
        scope_catalog NAME, scope_schema NAME, scope_name NAME, maximum_cardinality INT4, dtd_identifier NAME,
    }
    13493 element_types = none {
        object_catalog NAME, object_schema NAME, object_name NAME, object_type VARCHAR,
        collection_type_identifier NAME, data_type VARCHAR, character_maximum_length INT4,
        character_octet_length INT4, character_set_catalog NAME, character_set_schema NAME, character_set_name NAME,
        collation_catalog NAME, collation_schema NAME, collation_name NAME, numeric_precision INT4,
        numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4, interval_type VARCHAR,
        interval_precision INT4, domain_default VARCHAR, udt_catalog NAME, udt_schema NAME, udt_name NAME,
        scope_catalog NAME, scope_schema NAME, scope_name NAME, maximum_cardinality INT4, dtd_identifier NAME,
    }
    13325 enabled_roles = crate::pg_catalog::roles::enabled_roles {
        role_name NAME,
    }
    13511 foreign_data_wrapper_options = none {
        foreign_data_wrapper_catalog NAME, foreign_data_wrapper_name NAME, option_name NAME, option_value VARCHAR,
    }
    13515 foreign_data_wrappers = none {
        foreign_data_wrapper_catalog NAME, foreign_data_wrapper_name NAME, authorization_identifier NAME,
        library_name VARCHAR, foreign_data_wrapper_language VARCHAR,
    }
    13524 foreign_server_options = none {
        foreign_server_catalog NAME, foreign_server_name NAME, option_name NAME, option_value VARCHAR,
    }
    13528 foreign_servers = none {
        foreign_server_catalog NAME, foreign_server_name NAME, foreign_data_wrapper_catalog NAME,
        foreign_data_wrapper_name NAME, foreign_server_type VARCHAR, foreign_server_version VARCHAR,
        authorization_identifier NAME,
    }
    13537 foreign_table_options = none {
        foreign_table_catalog NAME, foreign_table_schema NAME, foreign_table_name NAME, option_name NAME,
        option_value VARCHAR,
    }
    13541 foreign_tables = none {
        foreign_table_catalog NAME, foreign_table_schema NAME, foreign_table_name NAME, foreign_server_catalog NAME,
        foreign_server_name NAME,
    }
    13227 information_schema_catalog_name = super::rows::information_schema_catalog_name {
        catalog_name NAME,
    }
    13329 key_column_usage = super::rows::key_column_usage {
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME, table_catalog NAME, table_schema NAME,
        table_name NAME, column_name NAME, ordinal_position INT4, position_in_unique_constraint INT4,
    }
    13334 parameters = super::routines::parameters {
        specific_catalog NAME, specific_schema NAME, specific_name NAME, ordinal_position INT4,
        parameter_mode VARCHAR, is_result VARCHAR, as_locator VARCHAR, parameter_name NAME, data_type VARCHAR,
        character_maximum_length INT4, character_octet_length INT4, character_set_catalog NAME,
        character_set_schema NAME, character_set_name NAME, collation_catalog NAME, collation_schema NAME,
        collation_name NAME, numeric_precision INT4, numeric_precision_radix INT4, numeric_scale INT4,
        datetime_precision INT4, interval_type VARCHAR, interval_precision INT4, udt_catalog NAME, udt_schema NAME,
        udt_name NAME, scope_catalog NAME, scope_schema NAME, scope_name NAME, maximum_cardinality INT4,
        dtd_identifier NAME, parameter_default VARCHAR,
    }
    13339 referential_constraints = super::rows::referential_constraints {
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME, unique_constraint_catalog NAME,
        unique_constraint_schema NAME, unique_constraint_name NAME, match_option VARCHAR, update_rule VARCHAR,
        delete_rule VARCHAR,
    }
    13344 role_column_grants = super::privileges::role_column_grants {
        grantor NAME, grantee NAME, table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME,
        privilege_type VARCHAR, is_grantable VARCHAR,
    }
    13358 role_routine_grants = none {
        grantor NAME, grantee NAME, specific_catalog NAME, specific_schema NAME, specific_name NAME,
        routine_catalog NAME, routine_schema NAME, routine_name NAME, privilege_type VARCHAR, is_grantable VARCHAR,
    }
    13421 role_table_grants = super::privileges::role_table_grants {
        grantor NAME, grantee NAME, table_catalog NAME, table_schema NAME, table_name NAME, privilege_type VARCHAR,
        is_grantable VARCHAR, with_hierarchy VARCHAR,
    }
    13450 role_udt_grants = none {
        grantor NAME, grantee NAME, udt_catalog NAME, udt_schema NAME, udt_name NAME, privilege_type VARCHAR,
        is_grantable VARCHAR,
    }
    13459 role_usage_grants = super::privileges::role_usage_grants {
        grantor NAME, grantee NAME, object_catalog NAME, object_schema NAME, object_name NAME, object_type VARCHAR,
        privilege_type VARCHAR, is_grantable VARCHAR,
    }
    13348 routine_column_usage = none {
        specific_catalog NAME, specific_schema NAME, specific_name NAME, routine_catalog NAME, routine_schema NAME,
        routine_name NAME, table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME,
    }
    13353 routine_privileges = none {
        grantor NAME, grantee NAME, specific_catalog NAME, specific_schema NAME, specific_name NAME,
        routine_catalog NAME, routine_schema NAME, routine_name NAME, privilege_type VARCHAR, is_grantable VARCHAR,
    }
    13362 routine_routine_usage = none {
        specific_catalog NAME, specific_schema NAME, specific_name NAME, routine_catalog NAME, routine_schema NAME,
        routine_name NAME,
    }
    13367 routine_sequence_usage = none {
        specific_catalog NAME, specific_schema NAME, specific_name NAME, routine_catalog NAME, routine_schema NAME,
        routine_name NAME, sequence_catalog NAME, sequence_schema NAME, sequence_name NAME,
    }
    13372 routine_table_usage = none {
        specific_catalog NAME, specific_schema NAME, specific_name NAME, routine_catalog NAME, routine_schema NAME,
        routine_name NAME, table_catalog NAME, table_schema NAME, table_name NAME,
    }
    13377 routines = super::routines::routines {
        specific_catalog NAME, specific_schema NAME, specific_name NAME, routine_catalog NAME, routine_schema NAME,
        routine_name NAME, routine_type VARCHAR, module_catalog NAME, module_schema NAME, module_name NAME,
        udt_catalog NAME, udt_schema NAME, udt_name NAME, data_type VARCHAR, character_maximum_length INT4,
        character_octet_length INT4, character_set_catalog NAME, character_set_schema NAME, character_set_name NAME,
        collation_catalog NAME, collation_schema NAME, collation_name NAME, numeric_precision INT4,
        numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4, interval_type VARCHAR,
        interval_precision INT4, type_udt_catalog NAME, type_udt_schema NAME, type_udt_name NAME, scope_catalog NAME,
        scope_schema NAME, scope_name NAME, maximum_cardinality INT4, dtd_identifier NAME, routine_body VARCHAR,
        routine_definition VARCHAR, external_name VARCHAR, external_language VARCHAR, parameter_style VARCHAR,
        is_deterministic VARCHAR, sql_data_access VARCHAR, is_null_call VARCHAR, sql_path VARCHAR,
        schema_level_routine VARCHAR, max_dynamic_result_sets INT4, is_user_defined_cast VARCHAR,
        is_implicitly_invocable VARCHAR, security_type VARCHAR, to_sql_specific_catalog NAME,
        to_sql_specific_schema NAME, to_sql_specific_name NAME, as_locator VARCHAR, created TIMESTAMPTZ,
        last_altered TIMESTAMPTZ, new_savepoint_level VARCHAR, is_udt_dependent VARCHAR,
        result_cast_from_data_type VARCHAR, result_cast_as_locator VARCHAR, result_cast_char_max_length INT4,
        result_cast_char_octet_length INT4, result_cast_char_set_catalog NAME, result_cast_char_set_schema NAME,
        result_cast_char_set_name NAME, result_cast_collation_catalog NAME, result_cast_collation_schema NAME,
        result_cast_collation_name NAME, result_cast_numeric_precision INT4, result_cast_numeric_precision_radix INT4,
        result_cast_numeric_scale INT4, result_cast_datetime_precision INT4, result_cast_interval_type VARCHAR,
        result_cast_interval_precision INT4, result_cast_type_udt_catalog NAME, result_cast_type_udt_schema NAME,
        result_cast_type_udt_name NAME, result_cast_scope_catalog NAME, result_cast_scope_schema NAME,
        result_cast_scope_name NAME, result_cast_maximum_cardinality INT4, result_cast_dtd_identifier NAME,
    }
    13382 schemata = super::rows::schemata {
        catalog_name NAME, schema_name NAME, schema_owner NAME, default_character_set_catalog NAME,
        default_character_set_schema NAME, default_character_set_name NAME, sql_path VARCHAR,
    }
    13386 sequences = super::rows::sequences {
        sequence_catalog NAME, sequence_schema NAME, sequence_name NAME, data_type VARCHAR, numeric_precision INT4,
        numeric_precision_radix INT4, numeric_scale INT4, start_value VARCHAR, minimum_value VARCHAR,
        maximum_value VARCHAR, increment VARCHAR, cycle_option VARCHAR,
    }
    13411 table_constraints = super::rows::table_constraints {
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME, table_catalog NAME, table_schema NAME,
        table_name NAME, constraint_type VARCHAR, is_deferrable VARCHAR, initially_deferred VARCHAR, enforced VARCHAR,
        nulls_distinct VARCHAR,
    }
    13416 table_privileges = super::privileges::table_privileges {
        grantor NAME, grantee NAME, table_catalog NAME, table_schema NAME, table_name NAME, privilege_type VARCHAR,
        is_grantable VARCHAR, with_hierarchy VARCHAR,
    }
    13425 tables = super::rows::tables {
        table_catalog NAME, table_schema NAME, table_name NAME, table_type VARCHAR, self_referencing_column_name NAME,
        reference_generation VARCHAR, user_defined_type_catalog NAME, user_defined_type_schema NAME,
        user_defined_type_name NAME, is_insertable_into VARCHAR, is_typed VARCHAR, commit_action VARCHAR,
    }
    13430 transforms = none {
        udt_catalog NAME, udt_schema NAME, udt_name NAME, specific_catalog NAME, specific_schema NAME,
        specific_name NAME, group_name NAME, transform_type VARCHAR,
    }
    13435 triggered_update_columns = crate::pg_catalog::triggers::triggered_update_columns {
        trigger_catalog NAME, trigger_schema NAME, trigger_name NAME, event_object_catalog NAME,
        event_object_schema NAME, event_object_table NAME, event_object_column NAME,
    }
    13440 triggers = crate::pg_catalog::triggers::triggers {
        trigger_catalog NAME, trigger_schema NAME, trigger_name NAME, event_manipulation VARCHAR,
        event_object_catalog NAME, event_object_schema NAME, event_object_table NAME, action_order INT4,
        action_condition VARCHAR, action_statement VARCHAR, action_orientation VARCHAR, action_timing VARCHAR,
        action_reference_old_table NAME, action_reference_new_table NAME, action_reference_old_row NAME,
        action_reference_new_row NAME, created TIMESTAMPTZ,
    }
    13445 udt_privileges = none {
        grantor NAME, grantee NAME, udt_catalog NAME, udt_schema NAME, udt_name NAME, privilege_type VARCHAR,
        is_grantable VARCHAR,
    }
    13454 usage_privileges = super::privileges::usage_privileges {
        grantor NAME, grantee NAME, object_catalog NAME, object_schema NAME, object_name NAME, object_type VARCHAR,
        privilege_type VARCHAR, is_grantable VARCHAR,
    }
    13463 user_defined_types = super::composites::user_defined_types {
        user_defined_type_catalog NAME, user_defined_type_schema NAME, user_defined_type_name NAME,
        user_defined_type_category VARCHAR, is_instantiable VARCHAR, is_final VARCHAR, ordering_form VARCHAR,
        ordering_category VARCHAR, ordering_routine_catalog NAME, ordering_routine_schema NAME,
        ordering_routine_name NAME, reference_type VARCHAR, data_type VARCHAR, character_maximum_length INT4,
        character_octet_length INT4, character_set_catalog NAME, character_set_schema NAME, character_set_name NAME,
        collation_catalog NAME, collation_schema NAME, collation_name NAME, numeric_precision INT4,
        numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4, interval_type VARCHAR,
        interval_precision INT4, source_dtd_identifier NAME, ref_dtd_identifier NAME,
    }
    13550 user_mapping_options = none {
        authorization_identifier NAME, foreign_server_catalog NAME, foreign_server_name NAME, option_name NAME,
        option_value VARCHAR,
    }
    13555 user_mappings = none {
        authorization_identifier NAME, foreign_server_catalog NAME, foreign_server_name NAME,
    }
    13468 view_column_usage = none {
        view_catalog NAME, view_schema NAME, view_name NAME, table_catalog NAME, table_schema NAME, table_name NAME,
        column_name NAME,
    }
    13473 view_routine_usage = none {
        table_catalog NAME, table_schema NAME, table_name NAME, specific_catalog NAME, specific_schema NAME,
        specific_name NAME,
    }
    13478 view_table_usage = none {
        view_catalog NAME, view_schema NAME, view_name NAME, table_catalog NAME, table_schema NAME, table_name NAME,
    }
    13483 views = super::rows::views {
        table_catalog NAME, table_schema NAME, table_name NAME, view_definition VARCHAR, check_option VARCHAR,
        is_updatable VARCHAR, is_insertable_into VARCHAR, is_trigger_updatable VARCHAR, is_trigger_deletable VARCHAR,
        is_trigger_insertable_into VARCHAR,
    }
};
