//! DROP, COMMENT, SECURITY LABEL, and the names of objects by their kinds.

use super::Parser;
use crate::ast::{
    AnyName, CommentStmt, DropBehavior, DropOwnedStmt, DropStmt, Name, ObjectRef, ObjectType,
    ObjectWithArgs, SecLabelStmt, Stmt,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

/// An object that a name alone names.
pub(super) fn by_name(name: Name, location: crate::ast::Location) -> ObjectRef {
    ObjectRef::Name(AnyName {
        names: super::primary::name_only(name),
        location,
    })
}

/// An object that its arguments name.
pub(super) fn by_args(object: ObjectWithArgs) -> ObjectRef {
    ObjectRef::WithArgs(Box::new(object))
}

impl Parser<'_> {
    /// `object_type_any_name`, if it comes next.
    fn object_type_any_name(&mut self) -> Result<Option<ObjectType>> {
        let T::Keyword(word) = self.kind() else {
            return Ok(None);
        };
        let kind = match word {
            K::Table => ObjectType::Table,
            K::Sequence => ObjectType::Sequence,
            K::View => ObjectType::View,
            K::Index => ObjectType::Index,
            K::Collation => ObjectType::Collation,
            K::Conversion => ObjectType::Conversion,
            K::Statistics => ObjectType::StatisticExt,
            K::Materialized => {
                self.pass();
                self.expect(K::View)?;
                return Ok(Some(ObjectType::MatView));
            }
            K::Foreign if !self.is_at(1, K::Data) => {
                self.pass();
                self.expect(K::Table)?;
                return Ok(Some(ObjectType::ForeignTable));
            }
            K::Text => {
                self.pass();
                return self.text_search_kind().map(Some);
            }
            _ => return Ok(None),
        };
        self.pass();
        Ok(Some(kind))
    }

    /// `drop_type_name`, if it comes next.
    fn drop_type_name(&mut self) -> Result<Option<ObjectType>> {
        let T::Keyword(word) = self.kind() else {
            return Ok(None);
        };
        let (kind, more): (_, &[K]) = match word {
            K::Access => (ObjectType::AccessMethod, &[K::Method]),
            K::Event => (ObjectType::EventTrigger, &[K::Trigger]),
            K::Extension => (ObjectType::Extension, &[]),
            K::Foreign => (ObjectType::Fdw, &[K::Data, K::Wrapper]),
            K::Procedural => (ObjectType::Language, &[K::Language]),
            K::Language => (ObjectType::Language, &[]),
            K::Publication => (ObjectType::Publication, &[]),
            K::Schema => (ObjectType::Schema, &[]),
            K::Server => (ObjectType::ForeignServer, &[]),
            _ => return Ok(None),
        };
        self.pass();
        self.expect_all(more)?;
        Ok(Some(kind))
    }

    /// `object_type_name`, if it comes next.
    fn object_type_name(&mut self) -> Result<Option<ObjectType>> {
        let kind = match self.kind() {
            T::Keyword(K::Database) => ObjectType::Database,
            T::Keyword(K::Role) => ObjectType::Role,
            T::Keyword(K::Subscription) => ObjectType::Subscription,
            T::Keyword(K::Tablespace) => ObjectType::Tablespace,
            _ => return self.drop_type_name(),
        };
        self.pass();
        Ok(Some(kind))
    }

    /// `object_type_name_on_any_name`, if it comes next.
    fn object_type_name_on_any_name(&mut self) -> Option<ObjectType> {
        let kind = match self.kind() {
            T::Keyword(K::Policy) => ObjectType::Policy,
            T::Keyword(K::Rule) => ObjectType::Rule,
            T::Keyword(K::Trigger) => ObjectType::Trigger,
            _ => return None,
        };
        self.pass();
        Some(kind)
    }

    /// `name`, as an object.
    fn object_name(&mut self) -> Result<ObjectRef> {
        let location = self.here();
        Ok(by_name(self.col_id()?, location))
    }

    /// `name ON any_name`
    fn name_on_any_name(&mut self) -> Result<ObjectRef> {
        let name = self.col_id()?;
        self.expect(K::On)?;
        let relation = self.any_name()?;
        Ok(ObjectRef::OnRelation { name, relation })
    }

    /// CLASS or FAMILY behind OPERATOR, if that comes next: an operator's schema may have that name.
    pub(super) fn operator_group(&mut self) -> Option<ObjectType> {
        let kind = match self.kind() {
            T::Keyword(K::Class) => ObjectType::OpClass,
            T::Keyword(K::Family) => ObjectType::OpFamily,
            _ => return None,
        };
        let is_schema = self.kind_at(1) == T::Dot;
        match is_schema {
            true => None,
            false => {
                self.pass();
                Some(kind)
            }
        }
    }

    /// `any_name USING name`, as an object.
    pub(super) fn object_of_method(&mut self) -> Result<ObjectRef> {
        let (name, method) = self.name_of_method()?;
        Ok(ObjectRef::OfMethod { name, method })
    }

    /// DROP
    pub(super) fn drop(&mut self) -> Result<Stmt> {
        self.expect(K::Drop)?;
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        match word {
            K::Database => {
                self.pass();
                return self.dropdb_stmt();
            }
            K::User
                if self.is_at(1, K::Mapping) && (self.is_at(2, K::For) || self.is_at(2, K::If)) =>
            {
                self.pass_all(2);
                return self.drop_user_mapping();
            }
            K::Role | K::User | K::Group => {
                self.pass();
                return self.drop_role_stmt();
            }
            K::Owned => {
                self.pass();
                self.expect(K::By)?;
                let roles = self.role_list()?;
                let behavior = self.opt_drop_behavior();
                return Ok(Stmt::DropOwned(Box::new(DropOwnedStmt { roles, behavior })));
            }
            _ => {}
        }
        let mut concurrent = false;
        let (remove_type, missing_ok, objects) = if let Some(kind) = self.object_type_any_name()? {
            concurrent = kind == ObjectType::Index && self.take(K::Concurrently);
            self.dropped(kind, |parser| Ok(ObjectRef::Name(parser.any_name()?)))?
        } else if let Some(kind) = self.drop_type_name()? {
            self.dropped(kind, Self::object_name)?
        } else if let Some(kind) = self.object_type_name_on_any_name() {
            let missing_ok = self.opt_if_exists_before_name();
            (kind, missing_ok, vec![self.name_on_any_name()?])
        } else {
            self.pass();
            self.drop_other(word)?
        };
        // These are gone without CASCADE.
        let behavior = match remove_type == ObjectType::Tablespace {
            true => DropBehavior::Restrict,
            false => self.opt_drop_behavior(),
        };
        Ok(Stmt::Drop(Box::new(DropStmt {
            remove_type,
            objects,
            missing_ok,
            behavior,
            concurrent,
        })))
    }

    /// A list of objects of a kind, with IF EXISTS.
    fn dropped(
        &mut self,
        kind: ObjectType,
        object: impl FnMut(&mut Self) -> Result<ObjectRef>,
    ) -> Result<(ObjectType, bool, Vec<ObjectRef>)> {
        let missing_ok = self.opt_if_exists_before_name();
        Ok((kind, missing_ok, self.list(object)?))
    }

    /// Kinds of objects that have rules of their own, behind the word.
    fn drop_other(&mut self, word: K) -> Result<(ObjectType, bool, Vec<ObjectRef>)> {
        let types = |parser: &mut Self| Ok(ObjectRef::Type(Box::new(parser.type_name()?)));
        let functions = |parser: &mut Self| Ok(by_args(parser.function_with_argtypes()?));
        match word {
            K::Type => self.dropped(ObjectType::Type, types),
            K::Domain => self.dropped(ObjectType::Domain, types),
            K::Function => self.dropped(ObjectType::Function, functions),
            K::Procedure => self.dropped(ObjectType::Procedure, functions),
            K::Routine => self.dropped(ObjectType::Routine, functions),
            K::Aggregate => self.dropped(ObjectType::Aggregate, |parser| {
                Ok(by_args(parser.aggregate_with_argtypes()?))
            }),
            K::Operator => match self.operator_group() {
                Some(kind) => {
                    let missing_ok = self.opt_if_exists_before_name();
                    Ok((kind, missing_ok, vec![self.object_of_method()?]))
                }
                None => self.dropped(ObjectType::Operator, |parser| {
                    Ok(by_args(parser.operator_with_argtypes()?))
                }),
            },
            K::Cast => {
                let missing_ok = self.opt_if_exists()?;
                let (source, target) = self.cast_types()?;
                let cast = ObjectRef::Cast {
                    source: Box::new(source),
                    target: Box::new(target),
                };
                Ok((ObjectType::Cast, missing_ok, vec![cast]))
            }
            K::Transform => {
                let missing_ok = self.opt_if_exists()?;
                Ok((ObjectType::Transform, missing_ok, vec![self.transform()?]))
            }
            K::Tablespace => {
                let missing_ok = self.opt_if_exists_before_name();
                Ok((
                    ObjectType::Tablespace,
                    missing_ok,
                    vec![self.object_name()?],
                ))
            }
            K::Subscription => {
                let missing_ok = self.opt_if_exists_before_name();
                Ok((
                    ObjectType::Subscription,
                    missing_ok,
                    vec![self.object_name()?],
                ))
            }
            _ => {
                self.at -= 1;
                self.unexpected()
            }
        }
    }

    /// `FOR Typename LANGUAGE name`
    fn transform(&mut self) -> Result<ObjectRef> {
        self.expect(K::For)?;
        let type_name = Box::new(self.type_name()?);
        self.expect(K::Language)?;
        Ok(ObjectRef::Transform {
            type_name,
            lang: self.col_id()?,
        })
    }

    /// An object with the word of its kind in front, as COMMENT, SECURITY LABEL and ALTER EXTENSION have it.
    fn object_with_type(&mut self, statement: NamingStatement) -> Result<(ObjectType, ObjectRef)> {
        if let Some(kind) = self.object_type_any_name()? {
            return Ok((kind, ObjectRef::Name(self.any_name()?)));
        }
        if let Some(kind) = self.object_type_name()? {
            return Ok((kind, self.object_name()?));
        }
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        let types =
            |parser: &mut Self, kind| Ok((kind, ObjectRef::Type(Box::new(parser.type_name()?))));
        let functions =
            |parser: &mut Self, kind| Ok((kind, by_args(parser.function_with_argtypes()?)));
        let is_comment = statement == NamingStatement::Comment;
        let is_label = statement == NamingStatement::Label;
        let at = self.at;
        self.pass();
        match word {
            K::Type => types(self, ObjectType::Type),
            K::Domain => types(self, ObjectType::Domain),
            K::Function => functions(self, ObjectType::Function),
            K::Procedure => functions(self, ObjectType::Procedure),
            K::Routine => functions(self, ObjectType::Routine),
            K::Aggregate => Ok((
                ObjectType::Aggregate,
                by_args(self.aggregate_with_argtypes()?),
            )),
            K::Column if statement != NamingStatement::Extension => {
                Ok((ObjectType::Column, ObjectRef::Name(self.any_name()?)))
            }
            K::Large if statement != NamingStatement::Extension => {
                self.expect(K::Object)?;
                Ok((
                    ObjectType::LargeObject,
                    ObjectRef::LargeObject(self.numeric_only()?),
                ))
            }
            K::Operator if !is_label => match self.operator_group() {
                Some(kind) => Ok((kind, self.object_of_method()?)),
                None => Ok((
                    ObjectType::Operator,
                    by_args(self.operator_with_argtypes()?),
                )),
            },
            K::Cast if !is_label => {
                let (source, target) = self.cast_types()?;
                Ok((
                    ObjectType::Cast,
                    ObjectRef::Cast {
                        source: Box::new(source),
                        target: Box::new(target),
                    },
                ))
            }
            K::Transform if !is_label => Ok((ObjectType::Transform, self.transform()?)),
            K::Constraint if is_comment => self.comment_on_constraint(),
            _ => {
                self.at = at;
                match is_comment
                    .then(|| self.object_type_name_on_any_name())
                    .flatten()
                {
                    Some(kind) => Ok((kind, self.name_on_any_name()?)),
                    None => self.unexpected(),
                }
            }
        }
    }

    /// `name ON [DOMAIN_P] any_name`
    fn comment_on_constraint(&mut self) -> Result<(ObjectType, ObjectRef)> {
        let name = self.col_id()?;
        self.expect(K::On)?;
        // A table may have that name.
        let is_domain = self.is(K::Domain) && super::names::is_col_id(self.kind_at(1));
        if is_domain {
            self.pass();
        }
        let relation = self.any_name()?;
        let kind = match is_domain {
            true => ObjectType::DomConstraint,
            false => ObjectType::TabConstraint,
        };
        Ok((kind, ObjectRef::OnRelation { name, relation }))
    }

    /// IS with a text or NULL.
    fn is_text(&mut self) -> Result<Option<Name>> {
        self.expect(K::Is)?;
        match self.take(K::Null) {
            true => Ok(None),
            false => Ok(Some(self.sconst()?)),
        }
    }

    /// `CommentStmt`
    pub(super) fn comment_stmt(&mut self) -> Result<Stmt> {
        self.expect_all(&[K::Comment, K::On])?;
        let (objtype, object) = self.object_with_type(NamingStatement::Comment)?;
        let comment = self.is_text()?;
        Ok(Stmt::Comment(Box::new(CommentStmt {
            objtype,
            object,
            comment,
        })))
    }

    /// `SecLabelStmt`
    pub(super) fn sec_label_stmt(&mut self) -> Result<Stmt> {
        self.expect_all(&[K::Security, K::Label])?;
        let provider = match self.take(K::For) {
            true => Some(self.non_reserved_word_or_sconst()?),
            false => None,
        };
        self.expect(K::On)?;
        let (objtype, object) = self.object_with_type(NamingStatement::Label)?;
        let label = self.is_text()?;
        Ok(Stmt::SecLabel(Box::new(SecLabelStmt {
            objtype,
            object,
            provider,
            label,
        })))
    }

    /// What ALTER EXTENSION adds and drops.
    pub(super) fn extension_member(&mut self) -> Result<(ObjectType, ObjectRef)> {
        self.object_with_type(NamingStatement::Extension)
    }
}

/// Which statement names an object: each knows some kinds more or less.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamingStatement {
    Comment,
    Label,
    Extension,
}
