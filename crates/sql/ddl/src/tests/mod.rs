//! Tests of the catalog.

mod cost;
mod databases;
mod ddl;
mod invalid_indexes;
mod own_objects;
mod roles;
mod row_types;
mod sequences;
mod stored_form;
mod system_relations;
mod world;
