//! Tests of the catalog.

mod system_relations;
