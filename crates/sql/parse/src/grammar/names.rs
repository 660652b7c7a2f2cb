//! Names, and the small rules that all others are made of.

use super::Parser;
use crate::ast::{
    AnyName, DropBehavior, FUNCTION_MARK, FuncName, Indirection, Location, Name, Names,
    OperatorName, RangeVar, RelationName, TypeRef, Value,
};
use crate::lexer::{Category, Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;
use smallvec::smallvec;

/// Begins a reference to a source of a view, in stored texts.
const SOURCE_MARK: char = '\u{1}';
/// Begins a reference to a type.
const TYPE_MARK: char = '\u{2}';

/// Can the token be a `ColId`?
pub(super) fn is_col_id(kind: T) -> bool {
    match kind {
        T::Ident | T::QuotedIdent => true,
        T::Keyword(word) => matches!(word.category(), Category::Unreserved | Category::ColName),
        _ => false,
    }
}

/// Can the token be a `type_function_name`?
pub(super) fn is_type_function_name(kind: T) -> bool {
    match kind {
        T::Ident | T::QuotedIdent => true,
        T::Keyword(word) => matches!(
            word.category(),
            Category::Unreserved | Category::TypeFuncName
        ),
        _ => false,
    }
}

/// Can the token be a `ColLabel`?
pub(super) fn is_col_label(kind: T) -> bool {
    matches!(kind, T::Ident | T::QuotedIdent | T::Keyword(_))
}

/// Can the token be a `NonReservedWord`?
pub(super) fn is_non_reserved_word(kind: T) -> bool {
    match kind {
        T::Keyword(word) => word.category() != Category::Reserved,
        _ => is_col_label(kind),
    }
}

impl Parser<'_> {
    fn word_if(&mut self, is: fn(T) -> bool) -> Result<Name> {
        match is(self.kind()) {
            true => {
                let token = self.pass();
                Ok(self.word_of(token))
            }
            false => self.unexpected(),
        }
    }

    /// What a name or a keyword says.
    pub(super) fn word_of(&self, token: crate::lexer::Token) -> Name {
        match token.kind {
            T::Keyword(word) => word.word().into(),
            _ => self.name_of(token),
        }
    }

    /// `ColId`, `name`
    pub(super) fn col_id(&mut self) -> Result<Name> {
        self.word_if(is_col_id)
    }

    /// `ColLabel`, `attr_name`
    pub(super) fn col_label(&mut self) -> Result<Name> {
        self.word_if(is_col_label)
    }

    /// `type_function_name`, `param_name`
    pub(super) fn type_function_name(&mut self) -> Result<Name> {
        self.word_if(is_type_function_name)
    }

    /// `NonReservedWord`
    pub(super) fn non_reserved_word(&mut self) -> Result<Name> {
        self.word_if(is_non_reserved_word)
    }

    /// `NonReservedWord_or_Sconst`
    pub(super) fn non_reserved_word_or_sconst(&mut self) -> Result<Name> {
        match self.at(T::SConst) {
            true => self.sconst(),
            false => self.non_reserved_word(),
        }
    }

    /// `Sconst`
    pub(super) fn sconst(&mut self) -> Result<Name> {
        let token = self.expect_token(T::SConst)?;
        Ok(self.name_of(token))
    }

    /// `Iconst`
    pub(super) fn iconst(&mut self) -> Result<i32> {
        let token = self.expect_token(T::IConst)?;
        Ok(self.integer_of(token))
    }

    /// The lexer has seen that it fits.
    pub(super) fn integer_of(&self, token: crate::lexer::Token) -> i32 {
        self.tokens.written(token).parse().unwrap_or(i32::MAX)
    }

    /// `SignedIconst`
    pub(super) fn signed_iconst(&mut self) -> Result<i32> {
        match self.kind() {
            T::Plus => {
                self.pass();
                self.iconst()
            }
            T::Minus => {
                self.pass();
                self.iconst().map(|number| -number)
            }
            _ => self.iconst(),
        }
    }

    /// Does a `SignedIconst` or a `NumericOnly` begin here?
    pub(super) fn at_number(&self) -> bool {
        matches!(self.kind(), T::IConst | T::FConst | T::Plus | T::Minus)
    }

    /// `NumericOnly`
    pub(super) fn numeric_only(&mut self) -> Result<Value> {
        let sign = match self.kind() {
            T::Plus | T::Minus => Some(self.pass().kind),
            _ => None,
        };
        let token = self.token();
        let value = match token.kind {
            T::IConst => {
                let number = self.integer_of(token);
                Value::Integer(if sign == Some(T::Minus) {
                    -number
                } else {
                    number
                })
            }
            T::FConst => {
                let written = self.tokens.written(token);
                Value::Float(match sign {
                    Some(T::Minus) => format!("-{written}").into(),
                    _ => written.into(),
                })
            }
            _ => return self.unexpected(),
        };
        self.pass();
        Ok(value)
    }

    /// `name_list`, `columnList`
    pub(super) fn name_list(&mut self) -> Result<Vec<Name>> {
        self.list(Self::col_id)
    }

    /// `opt_column_list`, `opt_name_list`
    pub(super) fn opt_column_list(&mut self) -> Result<Vec<Name>> {
        match self.at(T::LParen) {
            true => self.parens(Self::name_list),
            false => Ok(Vec::new()),
        }
    }

    /// `any_name`
    pub(super) fn any_name(&mut self) -> Result<AnyName> {
        let location = self.here();
        let first = self.col_id()?;
        let names = self.attrs(first)?;
        Ok(AnyName { names, location })
    }

    /// A name with what follows it behind points (`attrs`).
    pub(super) fn attrs(&mut self, first: Name) -> Result<Names> {
        let mut names: Names = smallvec![first];
        while self.take_token(T::Dot) {
            names.push(self.col_label()?);
        }
        Ok(names)
    }

    /// `type_function_name` or `ColId` with what follows it behind points (`handler_name`).
    pub(super) fn handler_name(&mut self) -> Result<AnyName> {
        self.any_name()
    }

    /// `qualified_name`
    pub(super) fn qualified_name(&mut self) -> Result<RangeVar> {
        let location = self.here();
        let first = self.col_id()?;
        self.qualified_name_from(first, location)
    }

    /// The rest of a `qualified_name`.
    pub(super) fn qualified_name_from(
        &mut self,
        first: Name,
        location: Location,
    ) -> Result<RangeVar> {
        let mut names: Names = smallvec![first];
        if matches!(self.kind(), T::Dot | T::LBracket) {
            for part in self.indirection()? {
                match part {
                    Indirection::Field(name) => names.push(name),
                    // `check_qualified_name`, with the next token read.
                    _ => return self.unexpected(),
                }
            }
        }
        self.range_var(names, location)
    }

    /// `makeRangeVarFromQualifiedName`, `makeRangeVarFromAnyName`
    pub(super) fn range_var(&self, names: Names, location: Location) -> Result<RangeVar> {
        if names.len() > 3 {
            let shown = names.join(".");
            let message = format!("improper qualified name (too many dotted names): {shown}");
            return Err(self.syntax_error(message, location));
        }
        let mut parts = names.into_iter().rev();
        let named = |name, schema, catalog| RelationName::Named {
            catalog,
            schema,
            name,
        };
        let name = match (parts.next(), parts.next(), parts.next()) {
            (Some(name), None, _) => match self.reference(&name, SOURCE_MARK) {
                Some(number) => RelationName::Source(number),
                None => named(name, None, None),
            },
            (Some(name), schema, catalog) => named(name, schema, catalog),
            (None, ..) => return self.unexpected(),
        };
        Ok(RangeVar {
            name,
            inh: true,
            persistence: crate::ast::Persistence::Permanent,
            alias: None,
            location,
        })
    }

    /// The number of a reference in a stored text.
    fn reference(&self, name: &str, mark: char) -> Option<u32> {
        match self.is_stored {
            true => name.strip_prefix(mark)?.parse().ok(),
            false => None,
        }
    }

    /// A function's name as it is looked up.
    pub(super) fn func_name_of(&self, names: Names) -> FuncName {
        let stored = match (&names[..], self.is_stored) {
            ([name], true) => name
                .strip_prefix(FUNCTION_MARK)
                .and_then(|rest| rest.split_once(':'))
                .and_then(|(number, called)| Some((number.parse().ok()?, Name::from(called)))),
            _ => None,
        };
        match stored {
            Some((oid, called)) => FuncName::Stored { oid, called },
            None => FuncName::Named(names),
        }
    }

    /// A type's name as it is looked up.
    pub(super) fn type_ref_of(&self, names: Names) -> TypeRef {
        match &names[..] {
            [name] => match self.reference(name, TYPE_MARK) {
                Some(oid) => TypeRef::Stored(oid),
                None => TypeRef::Named(names),
            },
            _ => TypeRef::Named(names),
        }
    }

    /// `func_name`, of which no expression can be.
    pub(super) fn func_name(&mut self) -> Result<AnyName> {
        let location = self.here();
        let kind = self.kind();
        let is_qualified = matches!(self.kind_at(1), T::Dot | T::LBracket) && is_col_id(kind);
        if !is_qualified {
            let name = match kind {
                // Only with a qualified name is it one.
                _ if !is_type_function_name(kind) && is_col_id(kind) => {
                    self.pass();
                    return self.unexpected();
                }
                _ => self.type_function_name()?,
            };
            return Ok(AnyName {
                names: smallvec![name],
                location,
            });
        }
        let mut names: Names = smallvec![self.col_id()?];
        for part in self.indirection()? {
            match part {
                Indirection::Field(name) => names.push(name),
                _ => return self.unexpected(),
            }
        }
        Ok(AnyName { names, location })
    }

    /// `opt_drop_behavior`
    pub(super) fn opt_drop_behavior(&mut self) -> DropBehavior {
        if self.take(K::Cascade) {
            return DropBehavior::Cascade;
        }
        self.take(K::Restrict);
        DropBehavior::Restrict
    }

    /// `IF_P EXISTS`
    pub(super) fn opt_if_exists(&mut self) -> Result<bool> {
        if !self.take(K::If) {
            return Ok(false);
        }
        self.expect(K::Exists)?;
        Ok(true)
    }

    /// `IF_P NOT EXISTS`
    pub(super) fn opt_if_not_exists(&mut self) -> Result<bool> {
        if !self.take(K::If) {
            return Ok(false);
        }
        self.expect_all(&[K::Not, K::Exists])?;
        Ok(true)
    }

    /// `IF_P EXISTS`, where IF may be a name as well.
    pub(super) fn opt_if_exists_before_name(&mut self) -> bool {
        self.take_all(&[K::If, K::Exists])
    }

    /// `IF_P NOT EXISTS`, where IF may be a name as well.
    pub(super) fn opt_if_not_exists_before_name(&mut self) -> Result<bool> {
        if !self.are(&[K::If, K::Not]) {
            return Ok(false);
        }
        self.pass_all(2);
        self.expect(K::Exists)?;
        Ok(true)
    }

    /// `opt_with`
    pub(super) fn opt_with(&mut self) -> bool {
        self.take(K::With) || self.take_token(T::WithLa)
    }

    /// `any_with`
    pub(super) fn any_with(&mut self) -> Result<()> {
        match self.opt_with() {
            true => Ok(()),
            false => self.unexpected(),
        }
    }

    /// Is the token an operator (`all_Op`)?
    pub(super) fn at_all_op(&self) -> bool {
        is_all_op(self.kind())
    }

    /// `all_Op`
    fn all_op(&mut self) -> Result<Name> {
        if !self.at_all_op() {
            return self.unexpected();
        }
        let token = self.pass();
        Ok(match token.kind {
            T::NotEquals => "<>".into(),
            _ => self.tokens.written(token).into(),
        })
    }

    /// An operator without a schema.
    pub(super) fn plain_operator(&mut self) -> Result<OperatorName> {
        let name = self.all_op()?;
        Ok(OperatorName {
            schema: Names::new(),
            name,
        })
    }

    /// `any_operator`
    pub(super) fn any_operator(&mut self) -> Result<OperatorName> {
        let mut schema = Names::new();
        while !self.at_all_op() {
            schema.push(self.col_id()?);
            self.expect_token(T::Dot)?;
        }
        let name = self.all_op()?;
        Ok(OperatorName { schema, name })
    }

    /// `qual_all_Op`, `qual_Op`, whose first token has been looked at.
    pub(super) fn qual_all_op(&mut self) -> Result<OperatorName> {
        match self.take(K::Operator) {
            true => self.parens(Self::any_operator),
            false => self.plain_operator(),
        }
    }
}

/// Is the token an operator (`all_Op`)?
pub(super) fn is_all_op(kind: T) -> bool {
    matches!(
        kind,
        T::Op
            | T::Plus
            | T::Minus
            | T::Star
            | T::Slash
            | T::Percent
            | T::Caret
            | T::Less
            | T::Greater
            | T::Equals
            | T::LessEquals
            | T::GreaterEquals
            | T::NotEquals
    )
}
