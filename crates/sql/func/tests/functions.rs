//! Functions, operators and casts against results recorded from PostgreSQL 15.
//!
//! Each line of `functions.txt` is `call => result`. A call is `name(arg, ...)` or `op(arg, arg)`, an argument is
//! `'text'::type` or `NULL::type` or a bare `'text'` (an unknown literal). The result is the value's text, `NULL`, or
//! `!SQLSTATE message`. Set-returning functions join their rows with ` | `.

use logstead_sql_func::{self as func, CastContext, FunctionImpl};
use logstead_sql_func::{
    CatalogFunctions, FunctionContext, RandomNumbers, Sequences, ServerFunctions, SessionActions,
    SessionInfo, Snapshots,
};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::datetime::{DateForm, DateOrder};
use logstead_sql_types::value::text_io::{OutputStyle, input, to_text};
use logstead_sql_types::value::user::{TypeLookup, UserTypes};
use logstead_sql_types::value::{
    Clock, DateTimeContext, ObjectNames, RegType, SettingValues, needs_session,
};
use logstead_sql_types::value::{Datum, Oid, SqlType, calendar, info, oid};
use logstead_sql_types::{RelationId, SqlError, TypeId};
use std::sync::Arc;

struct TestContext(jiff::tz::TimeZone);

impl Clock for TestContext {
    fn transaction_time(&self) -> Result<i64> {
        Ok(0)
    }
    fn statement_time(&self) -> Result<i64> {
        Ok(0)
    }
    fn clock_time(&self) -> Result<i64> {
        Ok(0)
    }
}

impl DateTimeContext for TestContext {
    fn time_zone(&self) -> &jiff::tz::TimeZone {
        &self.0
    }
    fn date_order(&self) -> DateOrder {
        DateOrder::Mdy
    }
    fn date_form(&self) -> DateForm {
        DateForm::Iso
    }
}

impl SettingValues for TestContext {
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
}

impl ObjectNames for TestContext {
    fn search_path(&self) -> Vec<String> {
        vec!["public".to_owned()]
    }
    fn temporary_schema(&self) -> Option<String> {
        None
    }
    fn relation_by_name(&self, _: &str) -> Result<Option<RelationId>> {
        Ok(None)
    }
    fn relation_name(&self, _: RelationId) -> Option<String> {
        None
    }
    fn type_by_text(&self, text: &str) -> Result<TypeId> {
        Err(SqlError::unsupported(text))
    }
    fn type_text(&self, ty: TypeId, _: bool) -> Option<String> {
        info::built_in_text(ty)
    }
    fn object_by_text(&self, ty: RegType, _: &str) -> Result<Oid> {
        needs_session(ty.name())
    }
    fn object_text(&self, _: RegType, _: Oid) -> Option<String> {
        None
    }
}

impl RandomNumbers for TestContext {
    fn random_u64(&self) -> u64 {
        7
    }
    fn session_u64(&self) -> u64 {
        7
    }
    fn seed(&self, _: u64) {}
}

impl SessionInfo for TestContext {
    fn database(&self) -> &str {
        "postgres"
    }
    fn session_user(&self) -> String {
        "postgres".to_owned()
    }
    fn current_user(&self) -> String {
        "postgres".to_owned()
    }
    fn backend_pid(&self) -> i32 {
        1
    }
    fn trigger_depth(&self) -> i32 {
        0
    }
    fn listening_channels(&self) -> Vec<Arc<str>> {
        Vec::new()
    }
}

impl FunctionContext for TestContext {
    fn random(&self) -> Result<&dyn RandomNumbers> {
        Ok(self)
    }
    fn session_info(&self) -> Result<&dyn SessionInfo> {
        Ok(self)
    }
    fn sequences(&self) -> Result<&dyn Sequences> {
        needs_session("sequences")
    }
    fn actions(&self) -> Result<&dyn SessionActions> {
        needs_session("actions")
    }
    fn snapshots(&self) -> Result<&dyn Snapshots> {
        needs_session("snapshots")
    }
    fn catalog_functions(&self) -> Result<&dyn CatalogFunctions> {
        needs_session("catalog functions")
    }
    fn server_functions(&self) -> Result<&dyn ServerFunctions> {
        needs_session("server functions")
    }
}

fn type_by_name(t: &str) -> SqlType {
    let (base, mods) = match t.split_once('(') {
        Some((b, m)) => {
            let (nums, tail) = m.split_once(')').expect("modifier");
            (
                format!("{}{}", b.trim(), tail),
                nums.split(',')
                    .map(|n| n.trim().parse().expect("number"))
                    .collect(),
            )
        }
        None => (t.to_owned(), Vec::<i64>::new()),
    };
    let o = info::by_name(base.trim()).unwrap_or_else(|| panic!("type {t}"));
    SqlType {
        oid: o,
        typmod: info::typmod_in(o, &mods, &UserTypes::default()).expect("modifier"),
    }
}

/// Splits a call into its name and its arguments: (text or NULL, type).
fn parse(call: &str) -> (String, Vec<(Option<String>, SqlType)>) {
    let open = call
        .find("('")
        .or_else(|| call.find("(NULL"))
        .or_else(|| call.find("()"))
        .expect("call");
    let name = call[..open].to_owned();
    let body: Vec<char> = call[open + 1..]
        .strip_suffix(')')
        .expect("closing")
        .chars()
        .collect();
    let mut args = Vec::new();
    let mut i = 0;
    while i < body.len() {
        while body[i] == ' ' || body[i] == ',' {
            i += 1;
        }
        let text = if body[i] == '\'' {
            let mut s = String::new();
            i += 1;
            loop {
                if body[i] == '\'' {
                    if body.get(i + 1) == Some(&'\'') {
                        s.push('\'');
                        i += 2;
                        continue;
                    }
                    i += 1;
                    break;
                }
                s.push(body[i]);
                i += 1;
            }
            Some(s)
        } else {
            i += 4;
            None
        };
        let mut ty = SqlType::of(oid::UNKNOWN);
        if body.get(i) == Some(&':') {
            i += 2;
            let start = i;
            let mut depth = 0;
            while i < body.len() && (depth > 0 || body[i] != ',') {
                match body[i] {
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                i += 1;
            }
            ty = type_by_name(body[start..i].iter().collect::<String>().trim());
        }
        args.push((text, ty));
    }
    (name, args)
}

fn literal(cx: &TestContext, text: Option<&str>, ty: SqlType) -> Result<Datum> {
    let Some(t) = text else {
        return Ok(Datum::Null);
    };
    let plain = input(SqlType::of(ty.oid), t, Some(cx))?;
    logstead_sql_types::value::typmod::coerce_typmod(plain, ty, true)
}

/// The value's text as a cast to text gives it: booleans in full.
fn shown(d: &Datum, ty: SqlType, style: &OutputStyle<'_>) -> Result<String> {
    Ok(match d {
        Datum::Null => "NULL".to_owned(),
        Datum::Bool(v) => v.to_string(),
        Datum::Text(t) if ty.oid == oid::BPCHAR => t.trim_end_matches(' ').to_owned(),
        _ => to_text(d, ty, style)?,
    })
}

fn run(cx: &TestContext, call: &str) -> Result<String> {
    let (name, args) = parse(call);
    let style = OutputStyle {
        time_zone: cx.time_zone(),
        ..OutputStyle::UTC
    };
    let mut values = Vec::new();
    for (text, ty) in &args {
        values.push(literal(cx, text.as_deref(), *ty)?);
    }
    if let Some(target) = name.strip_prefix("cast ") {
        let to = type_by_name(target);
        let from = args[0].1;
        let cast = func::find_cast(from.oid, to.oid, CastContext::Explicit).ok_or_else(|| {
            SqlError::new(
                logstead_types::SqlState::CANNOT_COERCE,
                format!(
                    "cannot cast type {} to {}",
                    info::format_built_in(from, false),
                    info::format_built_in(to, false)
                ),
            )
        })?;
        let v = func::apply_cast(cast, &values[0], from, to, true, Some(cx))?;
        return shown(&v, to, &style);
    }
    let types: Vec<SqlType> = args.iter().map(|a| a.1).collect();
    if func::is_aggregate(&name) {
        // The arguments are the rows.
        let r = func::resolve_aggregate(&name, &types[..1], UserTypes::default().lookup(&[]))?;
        let mut state = (r.aggregate.start)(&r.args);
        for (v, ty) in values.iter().zip(&types) {
            if v.is_null() && r.aggregate.strict {
                continue;
            }
            let cast = func::find_cast(ty.oid, r.args[0].oid, CastContext::Implicit).expect("cast");
            state.add(&[func::apply_cast(cast, v, *ty, r.args[0], false, Some(cx))?])?;
        }
        let v = state.finish()?;
        return shown(&v, r.result, &style);
    }
    let operator = !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let r = if operator {
        let (left, right) = match types.as_slice() {
            [r] => (None, *r),
            [l, r] => (Some(*l), *r),
            _ => panic!("operands of {call}"),
        };
        func::resolve_operator(&name, left, right, UserTypes::default().lookup(&[]))?
    } else {
        func::resolve_function(
            None,
            &name,
            &types,
            TypeLookup {
                types: &UserTypes::default(),
                search_path: &[],
            },
        )?
    };
    let mut actual = Vec::new();
    for (i, v) in values.iter().enumerate() {
        let cast = func::find_cast(types[i].oid, r.args[i].oid, CastContext::Implicit)
            .expect("implicit cast");
        let from = if types[i].oid == oid::UNKNOWN {
            SqlType::of(oid::TEXT)
        } else {
            types[i]
        };
        actual.push(func::apply_cast(
            cast,
            v,
            from,
            SqlType::of(r.args[i].oid),
            false,
            Some(cx),
        )?);
    }
    let show = |d: &Datum| shown(d, r.result, &style);
    let null = r.function.strict && actual.iter().any(Datum::is_null);
    Ok(match &r.function.body {
        FunctionImpl::Set(f) if !null => {
            let rows = f(&actual)?;
            rows.iter()
                .map(|row| show(&row[0]))
                .collect::<Result<Vec<_>>>()?
                .join(" | ")
        }
        _ if null => "NULL".to_owned(),
        FunctionImpl::Typed(f) => show(&f(cx, &r.args, &actual)?)?,
        FunctionImpl::Series(f) => {
            let (mut series, mut rows) = (f(&actual)?, Vec::new());
            while let Some(row) = series.next(cx)? {
                rows.push(show(&row)?);
            }
            rows.join(" | ")
        }
        _ => match r.function.call_in(cx, &actual) {
            Some(value) => show(&value?)?,
            None => String::new(),
        },
    })
}

#[test]
fn functions_agree_with_postgresql() {
    let cx = TestContext(calendar::zone_by_name("America/New_York").expect("zone"));
    let text = include_str!("functions.txt");
    let mut wrong = Vec::new();
    for line in text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with("--"))
    {
        let (call, want) = line
            .split_once(" => ")
            .unwrap_or_else(|| panic!("line {line}"));
        let got = match run(&cx, call) {
            Ok(v) => v,
            Err(e) => format!("!{} {}", e.code(), e.fields().message),
        };
        let got = got.replace('\n', "\\n");
        if got != want {
            wrong.push(format!(
                "{call}\n    PostgreSQL {want}\n    ours       {got}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
