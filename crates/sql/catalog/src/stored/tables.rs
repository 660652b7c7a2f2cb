//! The numbers of the catalog's own tables. They are part of the log's format: none is ever used for something else.

use logstead_types::TableId;

/// Databases, by (0, 0, name).
pub const DATABASES: TableId = TableId(1262);
/// Schemas, by (database, 0, name).
pub const SCHEMAS: TableId = TableId(2615);
/// Tables, sequences and indexes, by (database, schema, name).
pub const RELATIONS: TableId = TableId(1259);
/// Comments, by (database, class, object and column as text).
pub const COMMENTS: TableId = TableId(2609);
/// Roles, by (0, 0, name); and what roles that are not there are asked, by (0, 1, "").
pub const ROLES: TableId = TableId(1260);
/// Owners and privileges, by (database, class, object), and default privileges.
pub const RIGHTS: TableId = TableId(1214);
/// What ANALYZE has found out, by (database, 0, the table's OID as text).
pub const STATISTICS: TableId = TableId(2619);
/// States of sequences: storage, last value, called.
pub const SEQUENCES: TableId = TableId(2224);
/// One row: the first OID that was never reserved.
pub const COUNTER: TableId = TableId(1);
