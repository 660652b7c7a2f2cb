//! From a body's words to its tree: one pass, which knows the variables in sight, because the language needs them to
//! tell what a word is.

mod blocks;
mod cursors;
mod raises;
mod sql_constructs;
mod statements;

use super::lex::{self, PlpgsqlWord, Token};
use super::tree::{
    Block, BodyContext, Expr, Name, PlpgsqlFunction, Scope, Statement, TypeName, VarNo, Variable,
    VariableConflict,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;

/// Blocks and statements in each other, at most: the tree is walked recursively.
const NESTING_MAX: usize = 100;

/// Words that are never names of variables.
const RESERVED: [&str; 24] = [
    "all", "begin", "by", "case", "declare", "else", "end", "execute", "for", "foreach", "from",
    "if", "in", "into", "loop", "not", "null", "or", "strict", "then", "to", "using", "when",
    "while",
];

/// Reads a body.
pub(super) fn body(body: &str, given: &BodyContext) -> Result<PlpgsqlFunction> {
    let (tokens, wrong) = lex::tokens(body);
    let mut reader = Reader {
        body,
        given,
        tokens,
        at: 0,
        variables: Vec::new(),
        names: Vec::new(),
        scope: None,
        exprs: 0,
        depth: 0,
        loops: Vec::new(),
        cases: 0,
        lines: std::iter::once(0)
            .chain(body.match_indices('\n').map(|(at, _)| at + 1))
            .collect(),
    };
    let read = reader.whole();
    match wrong {
        // What no token begins with is told where the reader comes to it.
        Some(wrong) if reader.at + 1 >= reader.tokens.len() => Err(wrong),
        _ => read,
    }
}

/// A label in sight: its name, and whether a loop has it.
struct Label {
    name: Option<String>,
    is_loop: bool,
}

struct Reader<'b> {
    body: &'b str,
    given: &'b BodyContext,
    tokens: Vec<Token>,
    at: usize,
    variables: Vec<Variable>,
    names: Vec<Name>,
    scope: Scope,
    exprs: usize,
    depth: usize,
    loops: Vec<Label>,
    cases: usize,
    lines: Vec<usize>,
}

impl Reader<'_> {
    fn whole(&mut self) -> Result<PlpgsqlFunction> {
        let mut conflict = None;
        let mut print_strict_params = false;
        while self.take_mark("#") {
            let option = self.name()?;
            match option.as_str() {
                "variable_conflict" => {
                    let (how, at) = (self.name()?, self.at);
                    conflict = match VariableConflict::named(how.as_str()) {
                        None => return Err(self.unexpected(at - 1)),
                        named => named,
                    };
                }
                "print_strict_params" => {
                    let (how, at) = (self.name()?, self.at);
                    print_strict_params = match how.as_str() {
                        "on" => true,
                        "off" => false,
                        _ => return Err(self.unexpected(at - 1)),
                    };
                }
                "option" => {
                    self.take("dump");
                }
                _ => return Err(self.unexpected(self.at - 1)),
            }
        }
        // The names that the function gives stand in a block of its own.
        let name = self.given.name.clone().unwrap_or_default();
        self.open(name);
        for (number, (name, ty)) in (1..).zip(&self.given.parameters) {
            let variable = self.variable(&format!("${number}"), TypeName::Known(*ty), 0);
            self.say(&format!("${number}"), Some(variable));
            if let Some(name) = name {
                self.variables[variable].name.clone_from(name);
                self.say(name, Some(variable));
            }
        }
        for (name, ty) in &self.given.variables {
            let variable = self.variable(name, ty.clone(), 0);
            self.say(name, Some(variable));
        }
        let boolean = TypeName::Known(SqlType::of(oid::BOOL));
        let found = self.variable("found", boolean, 0);
        self.say("found", Some(found));
        let label = self.label()?;
        let line = self.line();
        if !self.is("declare") && !self.is("begin") {
            return Err(self.unexpected(self.at));
        }
        let block = self.block(label)?;
        self.take_mark(";");
        if self.word() != &PlpgsqlWord::End {
            return Err(self.unexpected(self.at));
        }
        Ok(PlpgsqlFunction {
            variables: std::mem::take(&mut self.variables),
            names: std::mem::take(&mut self.names),
            exprs: self.exprs,
            conflict,
            print_strict_params,
            found,
            block: Block {
                label: None,
                declares: Vec::new(),
                body: vec![Statement {
                    line,
                    kind: super::tree::PlpgsqlStatement::Block(block),
                }],
                handlers: None,
            },
            lines: std::mem::take(&mut self.lines),
        })
    }

    // Words.

    fn token(&self) -> &Token {
        // The last is the end, which is never passed.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn word(&self) -> &PlpgsqlWord {
        &self.token().word
    }

    fn word_behind(&self, by: usize) -> &PlpgsqlWord {
        &self.tokens[(self.at + by).min(self.tokens.len() - 1)].word
    }

    fn pass(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    fn is(&self, key: &str) -> bool {
        is_key(self.word(), key)
    }

    fn is_mark(&self, mark: &str) -> bool {
        matches!(self.word(), PlpgsqlWord::Mark(is) if *is == mark)
    }

    fn take(&mut self, key: &str) -> bool {
        let is = self.is(key);
        if is {
            self.pass();
        }
        is
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        let is = self.is_mark(mark);
        if is {
            self.pass();
        }
        is
    }

    fn expect(&mut self, key: &str) -> Result<()> {
        match self.take(key) {
            true => Ok(()),
            false => Err(self.unexpected(self.at)),
        }
    }

    fn expect_mark(&mut self, mark: &str) -> Result<()> {
        match self.take_mark(mark) {
            true => Ok(()),
            false => Err(self.unexpected(self.at)),
        }
    }

    /// Any name; a key word that is not reserved is one.
    fn name(&mut self) -> Result<String> {
        match self.word() {
            PlpgsqlWord::Name { text, quoted } if *quoted || !RESERVED.contains(&text.as_str()) => {
                let text = text.clone();
                self.pass();
                Ok(text)
            }
            _ => Err(self.unexpected(self.at)),
        }
    }

    /// 42601 at a word.
    fn unexpected(&self, at: usize) -> SqlError {
        let token = &self.tokens[at.min(self.tokens.len() - 1)];
        if token.word == PlpgsqlWord::End {
            return self.error_at("syntax error at end of input", token.start);
        }
        let near = self.body.get(token.start..token.end).unwrap_or_default();
        self.error_at(format!("syntax error at or near \"{near}\""), token.start)
    }

    fn error_at(&self, message: impl Into<String>, byte: usize) -> SqlError {
        SqlError::new(SqlState::SYNTAX_ERROR, message).at(Some(lex::position(self.body, byte)))
    }

    fn line_at(&self, byte: usize) -> usize {
        self.lines.partition_point(|start| *start <= byte)
    }

    fn line(&self) -> usize {
        self.line_at(self.token().start)
    }

    // Names.

    fn say(&mut self, name: &str, variable: Option<VarNo>) {
        self.names.push(Name {
            before: self.scope,
            name: name.to_owned(),
            variable,
        });
        self.scope = Some(self.names.len() - 1);
    }

    /// A block's names begin.
    fn open(&mut self, label: String) {
        self.say(&label, None);
    }

    fn variable(&mut self, name: &str, ty: TypeName, line: usize) -> VarNo {
        self.variables.push(Variable {
            name: name.to_owned(),
            line,
            ty,
            constant: false,
            not_null: false,
            default: None,
            cursor: None,
        });
        self.variables.len() - 1
    }

    /// The variable that a name means; `label.name` too. How many of the parts it took.
    fn find(&self, parts: &[String]) -> Option<(VarNo, usize)> {
        find(&self.names, self.scope, parts)
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= NESTING_MAX {
            return Err(logstead_sql_types::error::too_deep());
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn expr(&mut self, text: String, at: usize, statement: bool) -> Expr {
        self.exprs += 1;
        Expr {
            number: self.exprs - 1,
            text: text.into(),
            scope: self.scope,
            at,
            statement,
            assignment: None,
        }
    }
}

fn is_key(word: &PlpgsqlWord, key: &str) -> bool {
    matches!(word, PlpgsqlWord::Name { text, quoted: false } if text == key)
}

/// The variable that a name means where `scope` is in sight, and how many of its parts it took.
pub(super) fn find(names: &[Name], scope: Scope, parts: &[String]) -> Option<(VarNo, usize)> {
    let first = parts.first()?;
    // Names said since the begin of the block that is being passed.
    let mut inside: Vec<&Name> = Vec::new();
    let mut at = scope;
    while let Some(name) = at.and_then(|at| names.get(at)) {
        match name.variable {
            Some(variable) if name.name == *first => return Some((variable, 1)),
            Some(_) => inside.push(name),
            None => {
                if name.name == *first
                    && !name.name.is_empty()
                    && let Some(second) = parts.get(1)
                    && let Some(found) = inside.iter().find(|inner| inner.name == *second)
                {
                    return found.variable.map(|variable| (variable, 2));
                }
                inside.clear();
            }
        }
        at = name.before;
    }
    None
}
