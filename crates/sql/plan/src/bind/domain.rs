//! Values of domains: brought to the base type, then asked for what the domain demands.
//!
//! An expression's type is always the base type. Of which domain a value is known to be, [`Binder::domain_of`] tells:
//! it decides what `pg_typeof` says, what columns made of a query are declared as, and where nothing has to be asked
//! again.

use super::standalone::check_alone;
use super::{Binder, COLUMN_BASE};
use crate::PlanContext;
use crate::permissions::Bound;
use crate::query::expr::{DomainRules, Expr};
use logstead_sql_catalog::{Column, Relation, RelationKind};
use logstead_sql_func::CastContext;
use logstead_sql_parse as parse;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypeClass;
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Datum, SqlType, info, user};
use logstead_sql_types::{RelationId, SchemaId, TypeId};
use logstead_types::SqlState;
use std::sync::Arc;

/// The name by which a domain's CHECK speaks of the value.
pub const VALUE: &str = "value";

/// What the CHECK of a domain over a type sees: a row of the value alone.
pub fn value_relation(over: SqlType, types: &UserTypes) -> Relation {
    Relation {
        oid: RelationId::new(0),
        name: String::new(),
        schema: SchemaId::new(0),
        schema_name: String::new(),
        kind: RelationKind::Table,
        columns: vec![Column {
            name: VALUE.to_owned(),
            ty: types.base_type(over),
            domain: user::domain_in(over.oid).map(|_| over.oid),
            not_null: false,
            default: None,
            identity: None,
            generated: false,
            sequence: None,
            dropped: false,
            missing: Datum::Null,
        }],
        indexes: Vec::new(),
        constraints: Vec::new(),
        storage: logstead_types::TableId(0),
        schema_version: 0,
        security: logstead_sql_catalog::RowSecurity::default(),
        distribution: Default::default(),
        shared_names: Default::default(),
    }
}

impl Binder<'_> {
    /// The domain, or array over one, that a value is known to be of.
    pub(crate) fn domain_of(&self, expr: &Expr) -> Option<TypeId> {
        match expr {
            Expr::Domain(_, rules) => rules.fields.is_empty().then_some(rules.declared),
            Expr::Coalesce(items, _) | Expr::Extreme(_, items, _) => self.domain_of_all(items),
            Expr::Case {
                arms,
                otherwise: Some(otherwise),
                ..
            } => {
                let values = arms.iter().map(|(_, value)| value);
                self.domain_of_all(values.chain([&**otherwise]))
            }
            Expr::Array(items, ty) if !logstead_sql_types::value::record::is_record(ty.oid) => {
                let element = self.domain_of_all(items)?;
                self.user_types()
                    .element_of(element)
                    .is_none()
                    .then(|| info::array_of(element))?
            }
            Expr::Column(id, _) if *id >= COLUMN_BASE => {
                self.cx.catalog.column_domain(self.info(*id).origin?)
            }
            _ => None,
        }
    }

    /// That of all of some values.
    fn domain_of_all<'e>(&self, items: impl IntoIterator<Item = &'e Expr>) -> Option<TypeId> {
        let mut found = None;
        for item in items {
            let domain = self.domain_of(item)?;
            if found.is_some_and(|found| found != domain) {
                return None;
            }
            found = Some(domain);
        }
        found
    }

    /// As `try_coerce`, to a domain or to an array over one.
    pub(super) fn coerce_to_domain(
        &mut self,
        expr: Expr,
        declared: TypeId,
        context: CastContext,
        at: Option<usize>,
    ) -> Result<Option<Expr>> {
        if self.domain_of(&expr) == Some(declared) {
            return Ok(Some(expr));
        }
        if !self.user_types().exists(declared) {
            // It was the type of what a session has for itself.
            let message = format!("domain with OID {declared} does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).at(at));
        }
        let base = self.user_types().base_type(SqlType::of(declared));
        if let Expr::Param(index, ty) = expr
            && ty.oid == logstead_sql_types::value::oid::UNKNOWN
        {
            // Such a parameter is the domain's, as clients are told.
            match self.params.get(index).copied().flatten() {
                None => self.params[index] = Some(SqlType::of(declared)),
                Some(known) if known.oid == declared => {}
                Some(known) => return Err(self.two_types(index, known, declared).at(at)),
            }
            return self.domain_param(index, declared).map(Some);
        }
        match self.try_coerce(expr, base, context, at)? {
            Some(value) => self.as_domain(value, declared).map(Some),
            None => Ok(None),
        }
    }

    /// A parameter that is declared as a domain: its value comes as one of the base type.
    pub(super) fn domain_param(&mut self, index: usize, declared: TypeId) -> Result<Expr> {
        let base = self.user_types().base_type(SqlType::of(declared));
        let param = Expr::Param(index, SqlType::of(base.oid));
        let param = self.with_typmod(param, base, CastContext::Assignment)?;
        self.as_domain(param, declared)
    }

    /// A value of the base type, with the domain's rules around it.
    pub(crate) fn as_domain(&mut self, value: Expr, declared: TypeId) -> Result<Expr> {
        let bound = match self.domains.get(&declared) {
            Some(bound) => Arc::clone(bound),
            None => {
                let bound = Arc::new(self.rules_of(declared)?);
                self.domains.insert(declared, Arc::clone(&bound));
                bound
            }
        };
        // Each time: it may be another role's now.
        let rules = Arc::clone(self.absorb(&bound)?);
        let inner = match user::class(declared) {
            Some(UserTypeClass::Domain) => self.elements_of(declared)?,
            _ => None,
        };
        let value = match inner {
            Some(array) => self.as_domain(value, array)?,
            None => value,
        };
        Ok(Expr::Domain(Box::new(value), rules))
    }

    /// A value of a row type with columns of domains, or of an array over one, with the rules of these around it.
    pub(super) fn as_row(&mut self, value: Expr, ty: TypeId) -> Result<Expr> {
        let Some((row, relation)) = self.user_types().row_with_domains(ty) else {
            return Ok(value);
        };
        let table = self.cx.catalog.relations.get(&relation).ok_or_else(lost)?;
        let table = Arc::clone(table);
        let live = table.columns.iter().filter(|column| !column.dropped);
        let mut fields = Vec::new();
        for (place, column) in live.enumerate() {
            self.types().refuse_domains(column.ty.oid)?;
            // Rules stand around rules: an array's elements have theirs.
            let mut value = match column.domain {
                Some(domain) => self.as_domain(Expr::Const(Datum::Null, column.ty), domain)?,
                None => continue,
            };
            let mut all = Vec::new();
            while let Expr::Domain(inner, rules) = value {
                all.push((place, rules));
                value = *inner;
            }
            fields.extend(all.into_iter().rev());
        }
        let rules = DomainRules {
            declared: ty,
            each: ty != row,
            ty: SqlType::of(ty),
            not_null: false,
            fields,
            checks: Vec::new(),
            shown: self.types().format_type_bare(row),
            schema: table.schema_name.clone(),
            name: table.name.clone(),
        };
        Ok(Expr::Domain(Box::new(value), Arc::new(rules)))
    }

    /// The array over a domain that a domain is made over in the end, if it is.
    fn elements_of(&self, domain: TypeId) -> Result<Option<TypeId>> {
        let mut over = domain;
        while user::class(over) == Some(UserTypeClass::Domain) {
            let found = self.cx.catalog.types.get(over);
            over = found.and_then(|t| t.domain()).ok_or_else(lost)?.over.oid;
        }
        Ok(user::domain_in(over).map(|_| over))
    }

    /// What a domain demands. Its conditions are bound apart: they see nothing of the statement.
    fn rules_of(&mut self, declared: TypeId) -> Result<Bound<Arc<DomainRules>>> {
        let domain = user::domain_in(declared).ok_or_else(lost)?;
        let types = &self.cx.catalog.types;
        let top = types.get(domain).ok_or_else(lost)?;
        let cx = PlanContext {
            param_types: &[],
            parameters_fixed: true,
            ..*self.cx
        };
        let mut apart = Binder::new(&cx, "");
        apart.secures = self.secures;
        apart.fresh = true;
        let mut rules = DomainRules {
            declared,
            each: domain != declared,
            ty: self.user_types().base_type(SqlType::of(declared)),
            not_null: false,
            fields: Vec::new(),
            checks: Vec::new(),
            shown: self.types().format_type_bare(domain),
            schema: top.schema_name.clone(),
            name: top.name.clone(),
        };
        if rules.ty.oid == declared {
            return Err(lost());
        }
        let mut at = domain;
        // What it is made over asks first, and each in the order of the names.
        while user::class(at) == Some(UserTypeClass::Domain) {
            let found = types.get(at).and_then(|t| t.domain()).ok_or_else(lost)?;
            let relation = value_relation(found.over, types);
            rules.not_null |= found.not_null;
            let mut own: Vec<_> = found.checks.iter().collect();
            own.sort_by(|a, b| a.name.cmp(&b.name));
            let mut checks = Vec::with_capacity(own.len() + rules.checks.len());
            for check in own {
                let parsed = parse::parse_expr(&check.text)?;
                let bound = check_alone(&mut apart, &parsed, &relation);
                let bound = bound.map_err(|mut error| {
                    // Stored text is not the client's statement.
                    error.fields_mut().position = None;
                    error
                })?;
                checks.push((check.name.clone(), bound));
            }
            checks.append(&mut rules.checks);
            rules.checks = checks;
            at = found.over.oid;
        }
        self.role_matters |= apart.role_matters;
        self.session_dependent |= apart.session_dependent;
        Ok(apart.into_bound_expression(Arc::new(rules)))
    }
}

fn lost() -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, "a domain has been dropped")
}

/// A value of the input row's column `field`, as a column declared as `domain` stores it.
pub fn domain_value(
    field: usize,
    column: &Column,
    cx: &PlanContext<'_>,
) -> Result<Option<Bound<Expr>>> {
    let Some(domain) = column.domain else {
        return Ok(None);
    };
    let mut binder = Binder::new(cx, "");
    let value = binder.as_domain(Expr::Column(field, column.ty), domain)?;
    Ok(Some(binder.into_bound_expression(value)))
}
