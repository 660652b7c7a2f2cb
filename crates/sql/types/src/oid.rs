//! Numbers of objects that say what they are the number of.
//!
//! PostgreSQL numbers objects of all classes with one type, `oid`, and so can take a role's number for a relation's.
//! Here each class that has a newtype has numbers that only it takes.
//!
//! Invariant: a newtype is made from a number, or gives it away, at a border only: stored rows, system relations,
//! values of type `oid` and its aliases, and the protocol. What is between two borders hands on the newtype.

/// Makes newtypes of `u32` for the numbers of one class of objects each.
macro_rules! object_numbers {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            /// The object that has this number.
            pub const fn new(oid: u32) -> $name {
                $name(oid)
            }

            /// Its number.
            pub const fn get(self) -> u32 {
                self.0
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    )+};
}

object_numbers! {
    /// `pg_authid.oid`: a role.
    RoleId;
    /// `pg_database.oid`: a database of a server. `logstead_types::DatabaseId` is another thing: the
    /// identity of the directory or log that holds all databases of a server.
    DatabaseOid;
    /// `pg_namespace.oid`: a schema.
    SchemaId;
    /// `pg_class.oid`: a table, view, sequence, index or composite type as a relation.
    /// `logstead_types::TableId` is another thing: where a relation's rows are stored, which changes with TRUNCATE.
    RelationId;
    /// `pg_type.oid`: a type.
    TypeId;
    /// `pg_proc.oid`: a function, procedure or aggregate, a user's or the server's own.
    FunctionId;
}
