//! `Typename` and what it consists of.

use super::Parser;
use super::names::is_type_function_name;
use super::primary::constant;
use crate::ast::{Expr, Location, Names, TypeName, TypeRef, Value, interval_fields as fields};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;
use logstead_types::SqlState;
use smallvec::smallvec;

/// A number that the grammar makes.
fn number(value: i32) -> Expr {
    constant(Value::Integer(value), Location::UNKNOWN)
}

impl Parser<'_> {
    /// A type that SQL's own words name (`SystemTypeName`).
    pub(super) fn system_type(&self, name: &str, location: Location) -> TypeName {
        TypeName {
            name: TypeRef::Named(smallvec!["pg_catalog".into(), name.into()]),
            setof: false,
            pct_type: false,
            typmods: Vec::new(),
            array_bounds: Vec::new(),
            location,
        }
    }

    /// A type by its name (`makeTypeNameFromNameList`).
    pub(super) fn type_named(&self, names: Names, location: Location) -> TypeName {
        TypeName {
            name: self.type_ref_of(names),
            ..self.system_type("", location)
        }
    }

    /// `Typename`
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        let setof = self.take(K::Setof);
        let mut type_name = self.simple_type_name()?;
        type_name.setof = setof;
        self.array_bounds(&mut type_name)?;
        Ok(type_name)
    }

    /// `opt_array_bounds`, `ARRAY`
    fn array_bounds(&mut self, type_name: &mut TypeName) -> Result<()> {
        if self.take(K::Array) {
            let bound = match self.take_token(T::LBracket) {
                true => {
                    let bound = self.iconst()?;
                    self.expect_token(T::RBracket)?;
                    Some(bound)
                }
                false => None,
            };
            type_name.array_bounds.push(bound);
            return Ok(());
        }
        while self.take_token(T::LBracket) {
            let bound = match self.at(T::RBracket) {
                true => None,
                false => Some(self.iconst()?),
            };
            self.expect_token(T::RBracket)?;
            type_name.array_bounds.push(bound);
        }
        Ok(())
    }

    /// `func_type`
    pub(super) fn func_type(&mut self) -> Result<TypeName> {
        let setof = self.take(K::Setof);
        let mut type_name = self.simple_type_or_column()?;
        type_name.setof = setof;
        if !type_name.pct_type {
            self.array_bounds(&mut type_name)?;
        }
        Ok(type_name)
    }

    /// `SimpleTypename`, or `type_function_name attrs '%' TYPE_P`.
    fn simple_type_or_column(&mut self) -> Result<TypeName> {
        if self.kind_at(1) != T::Dot || !is_type_function_name(self.kind()) {
            return self.simple_type_name();
        }
        let location = self.here();
        let first = self.type_function_name()?;
        let names = self.attrs(first)?;
        if self.take_token(T::Percent) {
            self.expect(K::Type)?;
            return Ok(TypeName {
                pct_type: true,
                ..self.type_named(names, location)
            });
        }
        let mut type_name = self.type_named(names, location);
        type_name.typmods = self.opt_type_modifiers()?;
        Ok(type_name)
    }

    /// `SimpleTypename`
    pub(super) fn simple_type_name(&mut self) -> Result<TypeName> {
        let location = self.here();
        if self.take(K::Interval) {
            let mut type_name = self.system_type("interval", location);
            type_name.typmods = match self.at(T::LParen) {
                true => self.interval_precision()?,
                false => self.opt_interval()?,
            };
            return Ok(type_name);
        }
        if self.at_const_type_word() {
            let mut type_name = self.const_type_name()?;
            // Where it is no literal's, a length that is not said is 1.
            let is_short = |name: &TypeRef| matches!(name, TypeRef::Named(names) if matches!(names.last().map(|n| &**n), Some("bpchar" | "bit")));
            if type_name.typmods.is_empty() && is_short(&type_name.name) {
                type_name.typmods.push(number(1));
            }
            return Ok(type_name);
        }
        let first = self.type_function_name()?;
        let names = self.attrs(first)?;
        let mut type_name = self.type_named(names, location);
        type_name.typmods = self.opt_type_modifiers()?;
        Ok(type_name)
    }

    /// `opt_type_modifiers`
    fn opt_type_modifiers(&mut self) -> Result<Vec<Expr>> {
        match self.at(T::LParen) {
            true => self.parens(Self::expr_list),
            false => Ok(Vec::new()),
        }
    }

    /// Does a `ConstTypename` begin here, where a name may stand as well?
    pub(super) fn at_const_type(&self) -> bool {
        let next = self.kind_at(1);
        match self.kind() {
            T::Keyword(K::Double) => next == T::Keyword(K::Precision),
            T::Keyword(K::National) => matches!(next, T::Keyword(K::Character | K::Char)),
            T::Keyword(K::Character | K::Char | K::Nchar | K::Bit) => {
                matches!(next, T::SConst | T::LParen | T::Keyword(K::Varying))
            }
            T::Keyword(K::Time | K::Timestamp) => {
                matches!(
                    next,
                    T::SConst | T::LParen | T::WithLa | T::Keyword(K::Without)
                )
            }
            T::Keyword(K::Varchar | K::Decimal | K::Dec | K::Numeric | K::Float) => {
                matches!(next, T::SConst | T::LParen)
            }
            T::Keyword(K::Int | K::Integer | K::Smallint | K::Bigint | K::Real | K::Boolean) => {
                next == T::SConst
            }
            _ => false,
        }
    }

    /// Does a `ConstTypename` begin here, where only a type may stand?
    fn at_const_type_word(&self) -> bool {
        match self.kind() {
            T::Keyword(K::Double) => self.is_at(1, K::Precision),
            T::Keyword(
                K::National
                | K::Character
                | K::Char
                | K::Nchar
                | K::Bit
                | K::Time
                | K::Timestamp
                | K::Varchar
                | K::Decimal
                | K::Dec
                | K::Numeric
                | K::Float
                | K::Int
                | K::Integer
                | K::Smallint
                | K::Bigint
                | K::Real
                | K::Boolean,
            ) => true,
            _ => false,
        }
    }

    /// `ConstTypename`, whose first token has been looked at.
    pub(super) fn const_type_name(&mut self) -> Result<TypeName> {
        let location = self.here();
        let named = |parser: &Self, name: &str| parser.system_type(name, location);
        let word = match self.pass().kind {
            T::Keyword(word) => word,
            _ => return self.unexpected(),
        };
        Ok(match word {
            K::Int | K::Integer => named(self, "int4"),
            K::Smallint => named(self, "int2"),
            K::Bigint => named(self, "int8"),
            K::Real => named(self, "float4"),
            K::Boolean => named(self, "bool"),
            K::Double => {
                self.expect(K::Precision)?;
                named(self, "float8")
            }
            K::Float => self.float(location)?,
            K::Decimal | K::Dec | K::Numeric => {
                let typmods = self.opt_type_modifiers()?;
                TypeName {
                    typmods,
                    ..named(self, "numeric")
                }
            }
            K::Bit => {
                let name = if self.take(K::Varying) {
                    "varbit"
                } else {
                    "bit"
                };
                let typmods = self.opt_type_modifiers()?;
                TypeName {
                    typmods,
                    ..named(self, name)
                }
            }
            K::Time | K::Timestamp => self.date_time(word, location)?,
            _ => self.character(word, location)?,
        })
    }

    /// `opt_float`
    fn float(&mut self, location: Location) -> Result<TypeName> {
        if !self.take_token(T::LParen) {
            return Ok(self.system_type("float8", location));
        }
        let at = self.here();
        let precision = self.iconst()?;
        self.expect_token(T::RParen)?;
        let wrong = |message| Err(self.error(SqlState::INVALID_PARAMETER_VALUE, message, at));
        match precision {
            ..1 => wrong("precision for type float must be at least 1 bit"),
            1..=24 => Ok(self.system_type("float4", location)),
            25..=53 => Ok(self.system_type("float8", location)),
            _ => wrong("precision for type float must be less than 54 bits"),
        }
    }

    /// `ConstDatetime`, behind its first word.
    fn date_time(&mut self, word: K, location: Location) -> Result<TypeName> {
        let precision = match self.take_token(T::LParen) {
            true => {
                let at = self.here();
                let precision = self.iconst()?;
                self.expect_token(T::RParen)?;
                Some(constant(Value::Integer(precision), at))
            }
            false => None,
        };
        let with_zone = self.opt_timezone()?;
        let name = match (word, with_zone) {
            (K::Time, false) => "time",
            (K::Time, true) => "timetz",
            (_, false) => "timestamp",
            (_, true) => "timestamptz",
        };
        Ok(TypeName {
            typmods: precision.into_iter().collect(),
            ..self.system_type(name, location)
        })
    }

    /// `opt_timezone`
    fn opt_timezone(&mut self) -> Result<bool> {
        let with_zone = self.take_token(T::WithLa);
        if with_zone || self.take(K::Without) {
            self.expect_all(&[K::Time, K::Zone])?;
        }
        Ok(with_zone)
    }

    /// `character`, behind its first word.
    fn character(&mut self, word: K, location: Location) -> Result<TypeName> {
        if word == K::National && !self.take(K::Character) {
            self.expect(K::Char)?;
        }
        let is_varying = word == K::Varchar || self.take(K::Varying);
        let mut type_name =
            self.system_type(if is_varying { "varchar" } else { "bpchar" }, location);
        if self.take_token(T::LParen) {
            let at = self.here();
            let length = self.iconst()?;
            self.expect_token(T::RParen)?;
            type_name.typmods.push(constant(Value::Integer(length), at));
        }
        Ok(type_name)
    }

    /// `'(' Iconst ')'` of an interval.
    pub(super) fn interval_precision(&mut self) -> Result<Vec<Expr>> {
        self.parens(|parser| {
            let at = parser.here();
            let precision = parser.iconst()?;
            Ok(vec![
                number(fields::FULL_RANGE),
                constant(Value::Integer(precision), at),
            ])
        })
    }

    /// `opt_interval`
    pub(super) fn opt_interval(&mut self) -> Result<Vec<Expr>> {
        let location = self.here();
        let T::Keyword(first) = self.kind() else {
            return Ok(Vec::new());
        };
        let of = |word: K| {
            Some(match word {
                K::Year => fields::YEAR,
                K::Month => fields::MONTH,
                K::Day => fields::DAY,
                K::Hour => fields::HOUR,
                K::Minute => fields::MINUTE,
                K::Second => fields::SECOND,
                _ => return None,
            })
        };
        let Some(mut mask) = of(first) else {
            return Ok(Vec::new());
        };
        self.pass();
        let mut last = first;
        if matches!(first, K::Year | K::Day | K::Hour | K::Minute) && self.take(K::To) {
            let order = [K::Day, K::Hour, K::Minute, K::Second];
            let ends: &[K] = match first {
                K::Year => &[K::Month],
                K::Day => &order[1..],
                K::Hour => &order[2..],
                _ => &order[3..],
            };
            let T::Keyword(end) = self.kind() else {
                return self.unexpected();
            };
            if !ends.contains(&end) {
                return self.unexpected();
            }
            self.pass();
            last = end;
            if first == K::Year {
                mask |= fields::MONTH;
            }
            let from = order
                .iter()
                .position(|word| *word == first)
                .unwrap_or(order.len());
            let through = order.iter().position(|word| *word == end).unwrap_or(0);
            let between = order.iter().take(through + 1).skip(from);
            mask |= between
                .filter_map(|word| of(*word))
                .fold(0, |all, field| all | field);
        }
        let mut typmods = vec![constant(Value::Integer(mask), location)];
        if last == K::Second && self.take_token(T::LParen) {
            let at = self.here();
            let precision = self.iconst()?;
            self.expect_token(T::RParen)?;
            typmods.push(constant(Value::Integer(precision), at));
        }
        Ok(typmods)
    }
}
