//! What a jsonpath finds in a jsonb value: `@?`, `@@`, `jsonb_path_query` and its kin.
//!
//! A path is evaluated item by item, each given to a sink that may say that it has enough: what only asks whether there
//! is something stops at the first item, before errors that come later. Errors that `silent` and conditions forgive are
//! told apart from the others ([`PathError::Soft`]).

use super::datetime;
use super::item::Item;
use super::node::wrong_kind;
use crate::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::memory::ItemsBuilder;
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::json::path::{self, Expr, Method, Op, Path, Step};
use logstead_sql_types::value::json::{JsonType, Jsonb, JsonbRef, JsonbValue, too_deep};
use logstead_sql_types::value::{Datum, Numeric, SqlType, oid, text_io};
use logstead_types::SqlState;
use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

/// Calls inside each other while a path is evaluated, at most: levels of the path and of the value.
const DEPTH_MAX: usize = 1_000;

enum PathError {
    /// Forgiven by silent calls and conditions.
    Soft(SqlError),
    Hard(SqlError),
}

impl From<SqlError> for PathError {
    fn from(error: SqlError) -> PathError {
        PathError::Hard(error)
    }
}

/// True to go on.
type VisitResult = Result<bool, PathError>;
type Sink<'s, 'a> = &'s mut dyn FnMut(Item<'a>) -> VisitResult;

const MEMBER_NOT_FOUND: SqlState = SqlState::SQL_JSON_MEMBER_NOT_FOUND;
const ARRAY_NOT_FOUND: SqlState = SqlState::SQL_JSON_ARRAY_NOT_FOUND;
const OBJECT_NOT_FOUND: SqlState = SqlState::SQL_JSON_OBJECT_NOT_FOUND;
const NON_NUMERIC: SqlState = SqlState::NON_NUMERIC_SQL_JSON_ITEM;
const SUBSCRIPT: SqlState = SqlState::INVALID_SQL_JSON_SUBSCRIPT;
pub(super) const SINGLETON: SqlState = SqlState::SINGLETON_SQL_JSON_ITEM_REQUIRED;

fn soft(code: SqlState, message: impl Into<String>) -> PathError {
    PathError::Soft(SqlError::new(code, message))
}

struct PathExecContext<'a> {
    /// The session, where times without a zone may be compared with those that have one.
    zone: Option<&'a dyn DateTimeContext>,
    /// Expressions and levels gone through.
    steps: Cell<usize>,
    root: JsonbRef<'a>,
    variables: Option<JsonbRef<'a>>,
    lax: bool,
}

/// Where an expression stands: its `@`, and the size of the array whose subscript it is in.
#[derive(Clone)]
struct PathPosition<'a> {
    current: Item<'a>,
    size: Option<usize>,
    /// Structural errors are passed over.
    forgiving: bool,
    /// It is only asked whether there is an item, in lax mode: signs pass over what is no number.
    exists: bool,
    depth: usize,
}

impl<'a> PathPosition<'a> {
    fn deeper(&self) -> Result<PathPosition<'a>, PathError> {
        if self.depth >= DEPTH_MAX {
            return Err(PathError::Hard(too_deep()));
        }
        let mut place = self.clone();
        place.depth += 1;
        Ok(place)
    }

    fn asking(&self, exists: bool) -> PathPosition<'a> {
        PathPosition {
            exists,
            ..self.clone()
        }
    }
}

impl<'a> PathExecContext<'a> {
    /// Looks for interrupts, once in a thousand steps.
    fn look(&self) -> Result<(), PathError> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        match steps.is_multiple_of(1024) {
            true => check_for_interrupts().map_err(PathError::Hard),
            false => Ok(()),
        }
    }

    /// Gives the items of an expression to `sink`.
    fn eval(&self, expr: &Expr, place: &PathPosition<'a>, sink: Sink<'_, 'a>) -> VisitResult {
        self.look()?;
        let item = match expr {
            Expr::Root => Item::View(self.root),
            Expr::Current => place.current.clone(),
            Expr::Last => match place.size {
                Some(size) => Item::of(JsonbValue::Number(Numeric::from(size as i64 - 1)))?,
                None => {
                    return Err(PathError::Hard(SqlError::internal(
                        "LAST outside of an array subscript",
                    )));
                }
            },
            Expr::Variable(name) => match self.variables.and_then(|v| v.member(name)) {
                Some(value) => Item::View(value),
                None => {
                    return Err(PathError::Hard(SqlError::new(
                        SqlState::UNDEFINED_OBJECT,
                        format!("could not find jsonpath variable \"{name}\""),
                    )));
                }
            },
            Expr::Null => Item::of(JsonbValue::Null)?,
            Expr::Bool(v) => Item::of(JsonbValue::Bool(*v))?,
            Expr::Number(n) => Item::of(JsonbValue::Number(n.clone()))?,
            Expr::String(s) => Item::of(JsonbValue::string(s.as_str()))?,
            Expr::Chain(head, steps) => {
                let place = place.deeper()?.asking(false);
                return self.eval(head, &place, &mut |item| {
                    self.steps(item, steps, &place, sink)
                });
            }
            Expr::Sign(minus, inner) => {
                let place = place.deeper()?;
                let sign = if *minus { "-" } else { "+" };
                for item in self.list(inner, &place, true)? {
                    let Some(n) = item.view().as_number() else {
                        if place.exists {
                            continue;
                        }
                        return Err(soft(
                            SqlState::SQL_JSON_NUMBER_NOT_FOUND,
                            format!(
                                "operand of unary jsonpath operator {sign} is not a numeric value"
                            ),
                        ));
                    };
                    let n = if *minus { n.neg() } else { n };
                    if !sink(Item::of(JsonbValue::Number(n))?)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            Expr::Binary(op, left, right) if !expr.is_condition() => {
                let place = place.deeper()?;
                Item::of(JsonbValue::Number(self.reckon(*op, left, right, &place)?))?
            }
            _ => {
                let place = place.deeper()?;
                Item::of(match self.truth(expr, &place)? {
                    Some(v) => JsonbValue::Bool(v),
                    None => JsonbValue::Null,
                })?
            }
        };
        sink(item)
    }

    /// All items of an expression; in lax mode arrays among them give way to their elements if `unwrap` says so.
    fn list(
        &self,
        expr: &Expr,
        place: &PathPosition<'a>,
        unwrap: bool,
    ) -> Result<Vec<Item<'a>>, PathError> {
        let mut all = Vec::new();
        self.eval(expr, &place.asking(false), &mut |item| {
            if unwrap && self.lax && item.is_array() {
                all.extend(item.elements());
            } else {
                all.push(item);
            }
            Ok(true)
        })?;
        Ok(all)
    }

    fn operand(
        &self,
        op: Op,
        side: &str,
        expr: &Expr,
        place: &PathPosition<'a>,
    ) -> Result<Numeric, PathError> {
        let items = self.list(expr, place, true)?;
        let number = match items.as_slice() {
            [one] => one.view().as_number(),
            _ => None,
        };
        number.ok_or_else(|| {
            soft(
                SINGLETON,
                format!(
                    "{side} operand of jsonpath operator {} is not a single numeric value",
                    op.sign()
                ),
            )
        })
    }

    fn reckon(
        &self,
        op: Op,
        left: &Expr,
        right: &Expr,
        place: &PathPosition<'a>,
    ) -> Result<Numeric, PathError> {
        let left = self.operand(op, "left", left, place)?;
        let right = self.operand(op, "right", right, place)?;
        let result = match op {
            Op::Add => left.add(&right),
            Op::Sub => left.sub(&right),
            Op::Mul => left.mul(&right),
            Op::Div => left.div(&right),
            _ => left.rem(&right),
        };
        result.map_err(PathError::Soft)
    }

    /// Takes `steps` from an item.
    fn steps(
        &self,
        item: Item<'a>,
        steps: &[Step],
        place: &PathPosition<'a>,
        sink: Sink<'_, 'a>,
    ) -> VisitResult {
        let Some((step, rest)) = steps.split_first() else {
            return sink(item);
        };
        let place = place.deeper()?;
        let unwraps = match step {
            Step::Key(_) | Step::AnyKey | Step::Filter(_) => true,
            Step::Method(method) => !matches!(method, Method::Type | Method::Size),
            Step::Datetime(_) => true,
            _ => false,
        };
        if unwraps && self.lax && item.is_array() {
            for element in item.elements() {
                if !self.step(element, step, rest, &place, sink)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        self.step(item, step, rest, &place, sink)
    }

    fn each(
        &self,
        items: Vec<Item<'a>>,
        rest: &[Step],
        place: &PathPosition<'a>,
        sink: Sink<'_, 'a>,
    ) -> VisitResult {
        for item in items {
            if !self.steps(item, rest, place, sink)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn step(
        &self,
        item: Item<'a>,
        step: &Step,
        rest: &[Step],
        place: &PathPosition<'a>,
        sink: Sink<'_, 'a>,
    ) -> VisitResult {
        let kind = item.view().kind();
        let structural = |code, message: String| {
            if place.forgiving {
                Ok(true)
            } else {
                Err(soft(code, message))
            }
        };
        match step {
            Step::Key(key) => match item.member(key) {
                Some(value) => self.steps(value, rest, place, sink),
                None if kind == JsonType::Object => structural(
                    MEMBER_NOT_FOUND,
                    format!("JSON object does not contain key \"{key}\""),
                ),
                None => structural(
                    MEMBER_NOT_FOUND,
                    "jsonpath member accessor can only be applied to an object".to_owned(),
                ),
            },
            Step::AnyKey if kind == JsonType::Object => self.each(item.values(), rest, place, sink),
            Step::AnyKey => structural(
                OBJECT_NOT_FOUND,
                "jsonpath wildcard member accessor can only be applied to an object".to_owned(),
            ),
            Step::AnyElement if kind == JsonType::Array => {
                self.each(item.elements(), rest, place, sink)
            }
            Step::AnyElement if self.lax => self.steps(item, rest, place, sink),
            Step::AnyElement => structural(
                ARRAY_NOT_FOUND,
                "jsonpath wildcard array accessor can only be applied to an array".to_owned(),
            ),
            Step::Elements(list) if kind == JsonType::Array || self.lax => {
                let items = match kind {
                    JsonType::Array => item.elements(),
                    _ => vec![item],
                };
                self.elements(&items, list, rest, place, sink)
            }
            Step::Elements(_) => structural(
                ARRAY_NOT_FOUND,
                "jsonpath array accessor can only be applied to an array".to_owned(),
            ),
            Step::AnyLevel(first, last) => {
                let mut place = place.clone();
                place.forgiving = true;
                if *first == 0 && !self.steps(item.clone(), rest, &place, sink)? {
                    return Ok(false);
                }
                self.levels(&item, 1, (*first, *last), rest, &place, sink)
            }
            Step::Filter(condition) => {
                let mut inside = place.clone();
                inside.current = item.clone();
                match self.truth(condition, &inside)? {
                    Some(true) => self.steps(item, rest, place, sink),
                    _ => Ok(true),
                }
            }
            Step::Method(method) => self.method(item, *method, rest, place, sink),
            Step::Datetime(template) => {
                let Some(text) = item.as_str() else {
                    return Err(soft(
                        SqlState::INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
                        "jsonpath item method .datetime() can only be applied to a string",
                    ));
                };
                let moment = datetime::read(text.as_str(), template.as_deref())?;
                let moment = Item::of_moment(moment.map_err(PathError::Soft)?)?;
                self.steps(moment, rest, place, sink)
            }
        }
    }

    /// The subscript that an expression says.
    fn subscript(&self, expr: &Expr, place: &PathPosition<'a>) -> Result<i32, PathError> {
        let items = self.list(expr, place, false)?;
        let number = match items.as_slice() {
            [one] => one.view().as_number(),
            _ => None,
        };
        let Some(number) = number else {
            return Err(soft(
                SUBSCRIPT,
                "jsonpath array subscript is not a single numeric value",
            ));
        };
        let whole = number.trunc(0).to_i64("bigint").ok();
        whole.and_then(|v| i32::try_from(v).ok()).ok_or_else(|| {
            soft(
                SUBSCRIPT,
                "jsonpath array subscript is out of integer range",
            )
        })
    }

    fn elements(
        &self,
        items: &[Item<'a>],
        list: &[(Expr, Option<Expr>)],
        rest: &[Step],
        place: &PathPosition<'a>,
        sink: Sink<'_, 'a>,
    ) -> VisitResult {
        let mut inside = place.clone();
        inside.size = Some(items.len());
        for (from, to) in list {
            let from = i64::from(self.subscript(from, &inside)?);
            let to = match to {
                Some(to) => i64::from(self.subscript(to, &inside)?),
                None => from,
            };
            if !place.forgiving && (from < 0 || from > to || to >= items.len() as i64) {
                return Err(soft(SUBSCRIPT, "jsonpath array subscript is out of bounds"));
            }
            for at in from.max(0)..=to.min(items.len() as i64 - 1) {
                let item = usize::try_from(at).ok().and_then(|at| items.get(at));
                if let Some(item) = item
                    && !self.steps(item.clone(), rest, place, sink)?
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// What is inside of an item at the levels asked for, each before what is inside of it.
    fn levels(
        &self,
        item: &Item<'a>,
        level: u32,
        (first, last): (u32, u32),
        rest: &[Step],
        place: &PathPosition<'a>,
        sink: Sink<'_, 'a>,
    ) -> VisitResult {
        if level > last {
            return Ok(true);
        }
        let place = place.deeper()?;
        let children = match item.view().kind() {
            JsonType::Array => item.elements(),
            JsonType::Object => item.values(),
            _ => return Ok(true),
        };
        for child in children {
            self.look()?;
            let leaf = first == u32::MAX && last == u32::MAX && child.view().is_scalar();
            if (level >= first || leaf) && !self.steps(child.clone(), rest, &place, sink)? {
                return Ok(false);
            }
            if level < last && !self.levels(&child, level + 1, (first, last), rest, &place, sink)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn method(
        &self,
        item: Item<'a>,
        method: Method,
        rest: &[Step],
        place: &PathPosition<'a>,
        sink: Sink<'_, 'a>,
    ) -> VisitResult {
        let view = item.view();
        let name = method.name();
        let result = match method {
            Method::Type => Item::of(JsonbValue::string(match &item {
                Item::Datetime(moment, _) => moment.type_name(),
                _ => view.kind().name(),
            }))?,
            Method::Size => {
                let size = match view.kind() {
                    JsonType::Array => view.len(),
                    _ if self.lax => 1,
                    _ if place.forgiving => return Ok(true),
                    _ => {
                        return Err(soft(
                            ARRAY_NOT_FOUND,
                            "jsonpath item method .size() can only be applied to an array",
                        ));
                    }
                };
                Item::of(JsonbValue::Number(Numeric::from(size as i64)))?
            }
            Method::Abs | Method::Floor | Method::Ceiling => {
                let Some(n) = view.as_number() else {
                    return Err(soft(
                        NON_NUMERIC,
                        format!(
                            "jsonpath item method .{name}() can only be applied to a numeric value"
                        ),
                    ));
                };
                Item::of(JsonbValue::Number(match method {
                    Method::Abs => n.abs(),
                    Method::Floor => n.floor(),
                    _ => n.ceil(),
                }))?
            }
            Method::Double => {
                let text = match (view.kind(), item.as_str()) {
                    (JsonType::Number, _) => view.to_string(),
                    (_, Some(text)) => text.as_str().to_owned(),
                    _ => {
                        return Err(soft(
                            NON_NUMERIC,
                            "jsonpath item method .double() can only be applied to a string or numeric value",
                        ));
                    }
                };
                let ty = SqlType::of(oid::FLOAT8);
                match text_io::input(ty, &text, None) {
                    Ok(Datum::Float8(v)) if v.is_finite() => {
                        Item::of(JsonbValue::Number(Numeric::from_f64(v)))?
                    }
                    _ if view.kind() == JsonType::Number => {
                        return Err(soft(
                            NON_NUMERIC,
                            "numeric argument of jsonpath item method .double() is out of range for type double precision",
                        ));
                    }
                    _ => {
                        return Err(soft(
                            NON_NUMERIC,
                            "string argument of jsonpath item method .double() is not a valid representation of a double precision number",
                        ));
                    }
                }
            }
            Method::KeyValue => {
                if view.kind() != JsonType::Object {
                    return Err(soft(
                        OBJECT_NOT_FOUND,
                        "jsonpath item method .keyvalue() can only be applied to an object",
                    ));
                }
                let id = Numeric::from(view.offset_in(self.root) as i64);
                let mut pairs = Vec::with_capacity(view.len());
                for (key, value) in view.members() {
                    let pair = vec![
                        (Cow::Borrowed("key"), JsonbValue::string(key)),
                        (Cow::Borrowed("value"), JsonbValue::View(value)),
                        (Cow::Borrowed("id"), JsonbValue::Number(id.clone())),
                    ];
                    pairs.push(Item::of(JsonbValue::Object(pair))?);
                }
                return self.each(pairs, rest, place, sink);
            }
        };
        self.steps(result, rest, place, sink)
    }

    /// A condition: `None` is unknown.
    fn truth(&self, expr: &Expr, place: &PathPosition<'a>) -> Result<Option<bool>, PathError> {
        let place = &place.deeper()?;
        // What an error makes of a condition.
        let unknown = |fail: PathError| match fail {
            PathError::Soft(_) => Ok(None),
            hard => Err(hard),
        };
        match expr {
            Expr::Binary(Op::And, left, right) => match self.truth(left, place)? {
                Some(false) => Ok(Some(false)),
                left => Ok(match self.truth(right, place)? {
                    Some(true) => left,
                    right => right,
                }),
            },
            Expr::Binary(Op::Or, left, right) => match self.truth(left, place)? {
                Some(true) => Ok(Some(true)),
                left => Ok(match self.truth(right, place)? {
                    Some(false) => left,
                    right => right,
                }),
            },
            Expr::Not(inner) => Ok(self.truth(inner, place)?.map(|v| !v)),
            Expr::IsUnknown(inner) => Ok(Some(self.truth(inner, place)?.is_none())),
            Expr::Exists(inner) => {
                let mut found = false;
                let lax = self.lax;
                let run = self.eval(inner, &place.asking(lax), &mut |_| {
                    found = true;
                    Ok(!lax)
                });
                match run {
                    Ok(_) => Ok(Some(found)),
                    Err(fail) => unknown(fail),
                }
            }
            Expr::Binary(op, left, right) => {
                let lists = self
                    .list(left, place, true)
                    .and_then(|l| Ok((l, self.list(right, place, true)?)));
                match lists {
                    Ok((left, right)) => {
                        self.any_pair(&left, &right, &|a, b| self.compare(*op, a, b))
                    }
                    Err(fail) => unknown(fail),
                }
            }
            Expr::StartsWith(whole, prefix) => {
                let lists = self
                    .list(whole, place, true)
                    .and_then(|l| Ok((l, self.list(prefix, place, false)?)));
                match lists {
                    Ok((whole, prefix)) => self.any_pair(&whole, &prefix, &|a, b| {
                        let strings = a.as_str().zip(b.as_str());
                        Ok(strings.map(|(a, b)| a.as_str().starts_with(b.as_str())))
                    }),
                    Err(fail) => unknown(fail),
                }
            }
            Expr::LikeRegex(whole, pattern, flags) => {
                let list = match self.list(whole, place, true) {
                    Ok(list) => list,
                    Err(fail) => return unknown(fail),
                };
                let one = [Item::of(JsonbValue::Null)?];
                let regex = logstead_sql_types::regex::like_regex(pattern, flags)?;
                self.any_pair(&list, &one, &|a, _| match a.as_str() {
                    Some(text) => regex.is_match(text.as_str()).map(Some),
                    None => Ok(None),
                })
            }
            _ => Err(PathError::Hard(SqlError::internal(
                "a value for a condition",
            ))),
        }
    }

    fn compare(&self, op: Op, a: &Item<'a>, b: &Item<'a>) -> Result<Option<bool>> {
        match (a, b) {
            (Item::Datetime(a, _), Item::Datetime(b, _)) => {
                let order = a.compare(*b, self.zone)?;
                Ok(order.map(|order| holds(op, order)))
            }
            (Item::Datetime(..), other) | (other, Item::Datetime(..)) => {
                let null = other.view().kind() == JsonType::Null;
                Ok(null.then_some(op == Op::Ne))
            }
            (a, b) => Ok(compare(op, a.view(), b.view())),
        }
    }

    /// Whether a predicate holds for some pair. In strict mode every pair must have an answer.
    fn any_pair(
        &self,
        left: &[Item<'a>],
        right: &[Item<'a>],
        holds: &dyn Fn(&Item<'a>, &Item<'a>) -> Result<Option<bool>>,
    ) -> Result<Option<bool>, PathError> {
        let (mut found, mut unknown) = (false, false);
        for a in left {
            for b in right {
                match holds(a, b)? {
                    None if !self.lax => return Ok(None),
                    None => unknown = true,
                    Some(true) if self.lax => return Ok(Some(true)),
                    Some(held) => found |= held,
                }
            }
        }
        Ok(match (found, unknown) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        })
    }
}

fn compare(op: Op, a: JsonbRef<'_>, b: JsonbRef<'_>) -> Option<bool> {
    let (ka, kb) = (a.kind(), b.kind());
    let same = ka.name() == kb.name();
    if !same && (ka == JsonType::Null || kb == JsonType::Null) {
        return Some(op == Op::Ne);
    }
    if !same || !a.is_scalar() {
        return None;
    }
    Some(holds(op, a.compare(b)))
}

fn holds(op: Op, order: Ordering) -> bool {
    match op {
        Op::Eq => order == Ordering::Equal,
        Op::Ne => order != Ordering::Equal,
        Op::Lt => order == Ordering::Less,
        Op::Gt => order == Ordering::Greater,
        Op::Le => order != Ordering::Greater,
        _ => order != Ordering::Less,
    }
}

/// Runs a path over a target; `enough` items are asked for at most. `None` in front of them tells of an error that was
/// to be silent.
pub(super) fn run(
    a: &[Datum],
    zone: Option<&dyn DateTimeContext>,
    silent: bool,
    first_only: bool,
) -> Result<(bool, Vec<Jsonb>)> {
    let [target, path, rest @ ..] = a else {
        return Err(bad_args(a));
    };
    let target = target.as_jsonb()?;
    let Path { lax, root } = path::parse(path.as_str()?)?;
    let variables = rest.first().map(Datum::as_jsonb).transpose()?;
    if variables.is_some_and(|v| v.kind() != JsonType::Object) {
        return Err(wrong_kind("\"vars\" argument is not an object").detail(
            "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.",
        ));
    }
    let silent = match rest.get(1) {
        Some(silent) => silent.as_bool()?,
        None => silent,
    };
    let run = PathExecContext {
        zone,
        steps: Cell::new(0),
        root: target,
        variables,
        lax,
    };
    let place = PathPosition {
        current: Item::View(target),
        size: None,
        forgiving: lax,
        exists: lax && first_only,
        depth: 0,
    };
    let mut found = ItemsBuilder::new();
    let done = run.eval(&root, &place, &mut |item| {
        let value = item.to_jsonb();
        found.hold(value.bytes().len()).map_err(PathError::Hard)?;
        found.push(value).map_err(PathError::Hard)?;
        // Strict mode looks at everything, for errors.
        Ok(!(first_only && lax))
    });
    match done {
        Ok(_) => Ok((true, found.finish())),
        Err(PathError::Soft(_)) if silent => Ok((false, found.finish())),
        Err(PathError::Soft(error) | PathError::Hard(error)) => Err(error),
    }
}
