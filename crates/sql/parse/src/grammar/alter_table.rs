//! ALTER TABLE and its like.

use super::Parser;
use super::create_table::option;
use crate::ast::{
    AlterColumnType, AlterTableCmd as Cmd, AlterTableMoveAllStmt, AlterTableStmt, AnyName,
    ColumnTarget, DropBehavior, FiringMode, IdentityOption, Name, ObjectRef, ObjectType, RangeVar,
    RelationKind as Kind, RenameStmt, ReplicaIdentity, Stmt, TriggerTarget,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;
use logstead_types::SqlState;

fn object_type(kind: Kind) -> ObjectType {
    match kind {
        Kind::Table => ObjectType::Table,
        Kind::Index => ObjectType::Index,
        Kind::Sequence => ObjectType::Sequence,
        Kind::View => ObjectType::View,
        Kind::MaterializedView => ObjectType::MatView,
        Kind::ForeignTable => ObjectType::ForeignTable,
        Kind::Type => ObjectType::Type,
    }
}

impl Parser<'_> {
    /// ALTER of a relation, behind the words of its kind.
    pub(super) fn alter_relation(&mut self, word: K) -> Result<Stmt> {
        let kind = match word {
            K::Table => Kind::Table,
            K::Index => Kind::Index,
            K::Sequence => Kind::Sequence,
            K::View => Kind::View,
            K::Materialized => Kind::MaterializedView,
            _ => Kind::ForeignTable,
        };
        let moves = matches!(kind, Kind::Table | Kind::Index | Kind::MaterializedView);
        if moves && self.take(K::All) {
            return self.move_all(kind);
        }
        let missing_ok = self.opt_if_exists_before_name();
        let relation = match kind {
            Kind::Table | Kind::ForeignTable => self.relation_expr()?,
            _ => self.qualified_name()?,
        };
        if self.is(K::Rename) {
            return self.rename_in_relation(kind, relation, missing_ok);
        }
        if kind != Kind::Index && self.are(&[K::Set, K::Schema]) {
            self.pass_all(2);
            return self.set_schema(object_type(kind), ObjectRef::Relation(relation), missing_ok);
        }
        let may_depend = matches!(kind, Kind::MaterializedView | Kind::Index) && !missing_ok;
        if may_depend && (self.is(K::Depends) || self.are(&[K::No, K::Depends])) {
            return self.depends_on_extension(object_type(kind), ObjectRef::Relation(relation));
        }
        let is_of_table = self.is(K::No) && (self.is_at(1, K::Inherit) || self.is_at(1, K::Force));
        if kind == Kind::Sequence && self.at_seq_opt_elem() && !is_of_table {
            return self.alter_seq(relation, missing_ok);
        }
        let cmds = match self.kind() {
            T::Keyword(K::Attach)
                if kind == Kind::Table || (kind == Kind::Index && !missing_ok) =>
            {
                vec![self.attach_partition(kind)?]
            }
            T::Keyword(K::Detach) if kind == Kind::Table => vec![self.detach_partition()?],
            _ => self.list(Self::alter_table_cmd)?,
        };
        Ok(Stmt::AlterTable(Box::new(AlterTableStmt {
            objtype: kind,
            relation,
            missing_ok,
            cmds,
        })))
    }

    /// `ALL IN_P TABLESPACE ...`, behind ALL.
    fn move_all(&mut self, objtype: Kind) -> Result<Stmt> {
        self.expect_all(&[K::In, K::Tablespace])?;
        let orig_tablespacename = self.col_id()?;
        let roles = match self.take(K::Owned) {
            true => {
                self.expect(K::By)?;
                self.role_list()?
            }
            false => Vec::new(),
        };
        self.expect_all(&[K::Set, K::Tablespace])?;
        let new_tablespacename = self.col_id()?;
        let nowait = self.take(K::Nowait);
        Ok(Stmt::AlterTableMoveAll(Box::new(AlterTableMoveAllStmt {
            objtype,
            orig_tablespacename,
            roles,
            new_tablespacename,
            nowait,
        })))
    }

    /// RENAME of a relation, a column or a constraint.
    fn rename_in_relation(
        &mut self,
        kind: Kind,
        relation: RangeVar,
        missing_ok: bool,
    ) -> Result<Stmt> {
        self.pass();
        let mut rename_type = object_type(kind);
        let (mut relation_type, mut subname) = (None, None);
        if !self.take(K::To) {
            if matches!(kind, Kind::Index | Kind::Sequence) {
                return self.unexpected();
            }
            if kind == Kind::Table && self.take(K::Constraint) {
                rename_type = ObjectType::TabConstraint;
            } else {
                self.take(K::Column);
                relation_type = Some(rename_type);
                rename_type = ObjectType::Column;
            }
            subname = Some(self.col_id()?);
            self.expect(K::To)?;
        }
        let newname = self.col_id()?;
        Ok(Stmt::Rename(Box::new(RenameStmt {
            rename_type,
            relation_type,
            object: ObjectRef::Relation(relation),
            subname,
            newname,
            behavior: DropBehavior::Restrict,
            missing_ok,
        })))
    }

    /// ATTACH PARTITION
    fn attach_partition(&mut self, kind: Kind) -> Result<Cmd> {
        self.pass();
        self.expect(K::Partition)?;
        let name = self.qualified_name()?;
        let bound = match kind {
            Kind::Table => Some(Box::new(self.partition_bound_spec()?)),
            _ => None,
        };
        Ok(Cmd::AttachPartition { name, bound })
    }

    /// DETACH PARTITION
    fn detach_partition(&mut self) -> Result<Cmd> {
        self.pass();
        self.expect(K::Partition)?;
        let name = self.qualified_name()?;
        if self.take(K::Finalize) {
            return Ok(Cmd::DetachPartitionFinalize(name));
        }
        let concurrent = self.take(K::Concurrently);
        Ok(Cmd::DetachPartition { name, concurrent })
    }

    /// `alter_table_cmd`
    fn alter_table_cmd(&mut self) -> Result<Cmd> {
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        if word == K::Options {
            return Ok(Cmd::GenericOptions(self.alter_generic_options()?));
        }
        self.pass();
        Ok(match word {
            K::Add => return self.add_to_table(),
            K::Alter => return self.alter_in_table(),
            K::Drop => return self.drop_in_table(),
            K::Set => return self.set_of_table(),
            K::Enable | K::Disable => return self.enable_in_table(word == K::Enable),
            K::Validate => {
                self.expect(K::Constraint)?;
                Cmd::ValidateConstraint(self.col_id()?)
            }
            K::Cluster => {
                self.expect(K::On)?;
                Cmd::ClusterOn(self.col_id()?)
            }
            K::Inherit => Cmd::AddInherit(self.qualified_name()?),
            K::No if self.take(K::Inherit) => Cmd::DropInherit(self.qualified_name()?),
            K::No => {
                self.expect(K::Force)?;
                self.expect_all(&[K::Row, K::Level, K::Security])?;
                Cmd::NoForceRowSecurity
            }
            K::Force => {
                self.expect_all(&[K::Row, K::Level, K::Security])?;
                Cmd::ForceRowSecurity
            }
            K::Of => Cmd::AddOf(self.any_name()?),
            K::Not => {
                self.expect(K::Of)?;
                Cmd::DropOf
            }
            K::Owner => {
                self.expect(K::To)?;
                Cmd::ChangeOwner(self.role_spec()?)
            }
            K::Reset => Cmd::ResetRelOptions(self.reloptions()?),
            K::Replica => {
                self.expect(K::Identity)?;
                Cmd::ReplicaIdentity(self.replica_identity()?)
            }
            _ => {
                self.at -= 1;
                return self.unexpected();
            }
        })
    }

    /// `replica_identity`
    fn replica_identity(&mut self) -> Result<ReplicaIdentity> {
        if self.take(K::Using) {
            self.expect(K::Index)?;
            return Ok(ReplicaIdentity::Index(self.col_id()?));
        }
        let identity = match self.kind() {
            T::Keyword(K::Nothing) => ReplicaIdentity::Nothing,
            T::Keyword(K::Full) => ReplicaIdentity::Full,
            T::Keyword(K::Default) => ReplicaIdentity::Default,
            _ => return self.unexpected(),
        };
        self.pass();
        Ok(identity)
    }

    /// ADD, behind the word.
    fn add_to_table(&mut self) -> Result<Cmd> {
        let is_column = self.take(K::Column);
        if !is_column && self.at_table_constraint() {
            return Ok(Cmd::AddConstraint(Box::new(self.table_constraint()?)));
        }
        let missing_ok = self.opt_if_not_exists_before_name()?;
        let def = Box::new(self.column_def()?);
        Ok(Cmd::AddColumn { def, missing_ok })
    }

    /// DROP, behind the word.
    fn drop_in_table(&mut self) -> Result<Cmd> {
        let is_constraint = self.take(K::Constraint);
        if !is_constraint {
            self.take(K::Column);
        }
        let missing_ok = self.opt_if_exists_before_name();
        let name = self.col_id()?;
        let behavior = self.opt_drop_behavior();
        Ok(match is_constraint {
            true => Cmd::DropConstraint {
                name,
                missing_ok,
                behavior,
            },
            false => Cmd::DropColumn {
                name,
                missing_ok,
                behavior,
            },
        })
    }

    /// SET, behind the word.
    fn set_of_table(&mut self) -> Result<Cmd> {
        let T::Keyword(word) = self.kind() else {
            return Ok(Cmd::SetRelOptions(self.reloptions()?));
        };
        self.pass();
        Ok(match word {
            K::Without if self.take(K::Oids) => Cmd::DropOids,
            K::Without => {
                self.expect(K::Cluster)?;
                Cmd::DropCluster
            }
            K::Logged => Cmd::SetLogged,
            K::Unlogged => Cmd::SetUnlogged,
            K::Access => {
                self.expect(K::Method)?;
                Cmd::SetAccessMethod(self.col_id()?)
            }
            K::Tablespace => Cmd::SetTableSpace(self.col_id()?),
            _ => {
                self.at -= 1;
                return self.unexpected();
            }
        })
    }

    /// ENABLE, DISABLE, behind the word.
    fn enable_in_table(&mut self, enables: bool) -> Result<Cmd> {
        if self.take(K::Row) {
            self.expect_all(&[K::Level, K::Security])?;
            return Ok(match enables {
                true => Cmd::EnableRowSecurity,
                false => Cmd::DisableRowSecurity,
            });
        }
        let mut mode = match enables {
            true => FiringMode::Origin,
            false => FiringMode::Disabled,
        };
        if enables && self.take(K::Always) {
            mode = FiringMode::Always;
        } else if enables && self.take(K::Replica) {
            mode = FiringMode::Replica;
        }
        if self.take(K::Rule) {
            return Ok(Cmd::Rule {
                name: self.col_id()?,
                mode,
            });
        }
        self.expect(K::Trigger)?;
        let may_be_all = matches!(mode, FiringMode::Origin | FiringMode::Disabled);
        let target = match self.kind() {
            T::Keyword(K::All) if may_be_all => {
                self.pass();
                TriggerTarget::All
            }
            T::Keyword(K::User) if may_be_all => {
                self.pass();
                TriggerTarget::User
            }
            _ => TriggerTarget::Named(self.col_id()?),
        };
        Ok(Cmd::Trigger { target, mode })
    }

    /// ALTER, behind the word.
    fn alter_in_table(&mut self) -> Result<Cmd> {
        if self.take(K::Constraint) {
            let location = self.here();
            let name = self.col_id()?;
            let attributes = self.constraint_attributes()?;
            self.check_attributes(
                attributes,
                "FOREIGN KEY",
                super::constraint::ONLY_DEFERRABLE,
            )?;
            return Ok(Cmd::AlterConstraint {
                name,
                deferrable: attributes.deferrable || attributes.initially_deferred,
                initdeferred: attributes.initially_deferred,
                location,
            });
        }
        self.take(K::Column);
        let location = self.here();
        if self.at(T::IConst) {
            let number = self.iconst()?;
            self.expect_all(&[K::Set, K::Statistics])?;
            let target = self.signed_iconst()?;
            if !(1..=i32::from(i16::MAX)).contains(&number) {
                let message = "column number must be in range from 1 to 32767";
                return Err(self.error(SqlState::INVALID_PARAMETER_VALUE, message, location));
            }
            return Ok(Cmd::SetStatistics {
                column: ColumnTarget::Number(number),
                target,
            });
        }
        let name = self.col_id()?;
        self.alter_column(name, location)
    }

    /// A change to a column, behind its name.
    fn alter_column(&mut self, name: Name, location: crate::ast::Location) -> Result<Cmd> {
        let next = self.kind_at(1);
        let at = self.here();
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        match (word, next) {
            (K::Drop, _) => {
                self.pass();
                self.drop_of_column(name)
            }
            (K::Options, _) => {
                let options = self.alter_generic_options()?;
                Ok(Cmd::AlterColumnGenericOptions { name, options })
            }
            (K::Reset, _) => {
                self.pass();
                let options = self.reloptions()?;
                Ok(Cmd::ResetOptions { name, options })
            }
            (K::Add, _) => {
                self.pass();
                self.expect(K::Generated)?;
                let by_default = self.generated_when()?;
                self.expect_all(&[K::As, K::Identity])?;
                let options = self.opt_parenthesized_seq_opt_list()?;
                Ok(Cmd::AddIdentity {
                    name,
                    by_default,
                    options,
                    location: at,
                })
            }
            (K::Type, _) | (K::Set, T::Keyword(K::Data)) => {
                if self.take(K::Set) {
                    self.pass();
                }
                self.expect(K::Type)?;
                let type_name = self.type_name()?;
                let coll_clause = self.opt_collate_clause()?;
                // `alter_using`
                let raw_default = match self.take(K::Using) {
                    true => Some(self.a_expr()?),
                    false => None,
                };
                Ok(Cmd::AlterColumnType(Box::new(AlterColumnType {
                    name,
                    type_name,
                    coll_clause,
                    raw_default,
                    behavior: DropBehavior::Restrict,
                    location,
                })))
            }
            (K::Set, T::Keyword(K::Default)) => {
                self.pass_all(2);
                Ok(Cmd::ColumnDefault {
                    name,
                    default: Some(self.a_expr()?),
                })
            }
            (K::Set, T::Keyword(K::Not)) => {
                self.pass_all(2);
                self.expect(K::Null)?;
                Ok(Cmd::SetNotNull(name))
            }
            (K::Set, T::Keyword(K::Statistics)) => {
                self.pass_all(2);
                let target = self.signed_iconst()?;
                Ok(Cmd::SetStatistics {
                    column: ColumnTarget::Name(name),
                    target,
                })
            }
            (K::Set, T::Keyword(K::Storage)) => {
                self.pass_all(2);
                Ok(Cmd::SetStorage {
                    name,
                    storage: self.col_id()?,
                })
            }
            (K::Set, T::Keyword(K::Compression)) => {
                self.pass();
                Ok(Cmd::SetCompression {
                    name,
                    method: self.column_compression()?,
                })
            }
            (K::Set, T::LParen) => {
                self.pass();
                let options = self.reloptions()?;
                Ok(Cmd::SetOptions { name, options })
            }
            (K::Set | K::Restart, _) => {
                let mut options = Vec::new();
                while self.is_any(&[K::Set, K::Restart]) {
                    options.push(self.alter_identity_column_option()?);
                }
                Ok(Cmd::SetIdentity { name, options })
            }
            _ => self.unexpected(),
        }
    }

    /// DROP of what a column has, behind the word.
    fn drop_of_column(&mut self, name: Name) -> Result<Cmd> {
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        self.pass();
        match word {
            K::Default => Ok(Cmd::ColumnDefault {
                name,
                default: None,
            }),
            K::Not => {
                self.expect(K::Null)?;
                Ok(Cmd::DropNotNull(name))
            }
            K::Expression => Ok(Cmd::DropExpression {
                name,
                missing_ok: self.opt_if_exists()?,
            }),
            K::Identity => Ok(Cmd::DropIdentity {
                name,
                missing_ok: self.opt_if_exists()?,
            }),
            _ => {
                self.at -= 1;
                self.unexpected()
            }
        }
    }

    /// `alter_identity_column_option`
    fn alter_identity_column_option(&mut self) -> Result<IdentityOption> {
        let location = self.here();
        if self.take(K::Restart) {
            let value = self.restart_value()?;
            return Ok(IdentityOption::Sequence(option("restart", value, location)));
        }
        self.expect(K::Set)?;
        if self.take(K::Generated) {
            let by_default = self.generated_when()?;
            return Ok(IdentityOption::Generated {
                by_default,
                location,
            });
        }
        if !self.at_seq_opt_elem() {
            return self.unexpected();
        }
        let elem = self.seq_opt_elem()?;
        if matches!(&*elem.name, "as" | "restart" | "owned_by") {
            let message = format!("sequence option \"{}\" not supported here", elem.name);
            return Err(self.syntax_error(message, elem.location));
        }
        Ok(IdentityOption::Sequence(elem))
    }

    /// `AlterCompositeTypeStmt`, behind the type's name.
    pub(super) fn alter_composite_type(&mut self, name: AnyName) -> Result<Stmt> {
        let cmds = self.list(Self::alter_type_cmd)?;
        let relation = match self.at(T::Error) {
            true => return self.unexpected(),
            false => self.range_var(name.names, name.location)?,
        };
        Ok(Stmt::AlterTable(Box::new(AlterTableStmt {
            objtype: Kind::Type,
            relation,
            missing_ok: false,
            cmds,
        })))
    }

    /// `alter_type_cmd`
    fn alter_type_cmd(&mut self) -> Result<Cmd> {
        let T::Keyword(word @ (K::Add | K::Drop | K::Alter)) = self.kind() else {
            return self.unexpected();
        };
        self.pass();
        self.expect(K::Attribute)?;
        if word == K::Add {
            let def = Box::new(self.table_func_element()?);
            let behavior = self.opt_drop_behavior();
            return Ok(Cmd::AddAttribute { def, behavior });
        }
        if word == K::Drop {
            let missing_ok = self.opt_if_exists_before_name();
            let name = self.col_id()?;
            let behavior = self.opt_drop_behavior();
            return Ok(Cmd::DropColumn {
                name,
                missing_ok,
                behavior,
            });
        }
        let location = self.here();
        let name = self.col_id()?;
        if self.take(K::Set) {
            self.expect(K::Data)?;
        }
        self.expect(K::Type)?;
        let type_name = self.type_name()?;
        let coll_clause = self.opt_collate_clause()?;
        let behavior = self.opt_drop_behavior();
        Ok(Cmd::AlterColumnType(Box::new(AlterColumnType {
            name,
            type_name,
            coll_clause,
            raw_default: None,
            behavior,
            location,
        })))
    }
}
