//! Tests of the catalog.

mod cost;
mod databases;
mod ddl;
mod sequences;
mod stored_form;
mod system_relations;
mod world;
