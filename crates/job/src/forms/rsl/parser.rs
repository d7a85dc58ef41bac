// SPDX-License-Identifier: Apache-2.0
//! From tokens to requests. After an error reading goes on where the next group begins, so that all errors of a file
//! are found at once.

use super::lexer::{Lexeme, Lexemes, Token};
use super::report::Report;
use super::syntax::{Compound, Join, Kind, Relation, Span, Spec, Value};
use crate::quoted::shown;

/// Deepest nesting of groups, lists and variables.
const MAX_DEPTH: usize = 64;

/// Reads one request, and nothing may follow.
pub(super) fn parse(lexemes: Lexemes, report: &mut Report<'_>) -> Option<Spec<Value>> {
    let end = report.source.text().trim_end().len();
    let mut parser = Parser {
        lexemes: lexemes.list,
        at: 0,
        depth: 0,
        owed: 0,
        assumed: false,
        told: None,
        cut: lexemes.cut,
        end,
        report,
    };
    if parser.lexemes.is_empty() {
        if !parser.cut {
            parser.report.error(
                0..0,
                "there is no request here",
                "write & (executable = PROGRAM) (count = N)",
            );
        }
        return None;
    }
    let spec = parser.spec();
    parser.finish();
    // Of a text that was cut off nobody knows what it says.
    spec.filter(|_| !parser.cut)
}

/// Something was wrong and has been told.
struct Told;

struct Parser<'r, 'a> {
    lexemes: Vec<Lexeme>,
    at: usize,
    depth: usize,
    /// Closing parentheses that were taken as if they stood there.
    owed: usize,
    /// Whether the last of them closes the group that is being read.
    assumed: bool,
    /// The last `(` that lacks an operator.
    told: Option<usize>,
    cut: bool,
    end: usize,
    report: &'r mut Report<'a>,
}

impl Parser<'_, '_> {
    fn peek(&self) -> Option<&Token> {
        self.ahead(0)
    }

    fn ahead(&self, distance: usize) -> Option<&Token> {
        self.lexemes.get(self.at + distance).map(|l| &l.token)
    }

    /// Place of the next token, or of the end.
    fn here(&self) -> Span {
        match self.lexemes.get(self.at) {
            Some(lexeme) => lexeme.span.clone(),
            None => self.end.saturating_sub(1)..self.end,
        }
    }

    /// Tells an error at the next token. At the end of a text that was cut off nothing is known.
    fn error(&mut self, problem: impl Into<String>, hint: impl Into<String>) {
        if self.at < self.lexemes.len() || !self.cut {
            self.report.error(self.here(), problem, hint);
        }
    }

    fn finish(&mut self) {
        self.skip_owed();
        match self.peek() {
            None => {}
            Some(Token::Close) => self.error("this ')' closes nothing", "delete it"),
            Some(_) => self.error(
                "nothing may follow the request",
                "several requests are one job when they begin with '+': + (&...) (&...)",
            ),
        }
    }

    fn spec(&mut self) -> Option<Spec<Value>> {
        if self.depth >= MAX_DEPTH {
            self.error(format!("groups are nested deeper than {MAX_DEPTH}"), "");
            return None;
        }
        self.depth += 1;
        let spec = match self.peek() {
            Some(Token::Plus) => Some(self.compound(Join::Multi)),
            Some(Token::And) => Some(self.compound(Join::All)),
            Some(Token::Or) => Some(self.compound(Join::Any)),
            Some(Token::Word(_) | Token::Quoted(_)) => self.relation().ok().map(Spec::Relation),
            Some(Token::Open) => Some(self.without_operator()),
            _ => {
                self.error("a request is expected here", "write NAME = VALUE, or & ( ... ) ( ... )");
                None
            }
        };
        self.depth -= 1;
        spec
    }

    /// A list of groups whose operator is missing: read as what was probably meant.
    fn without_operator(&mut self) -> Spec<Value> {
        let join = match self.ahead(1) {
            Some(Token::And | Token::Plus | Token::Or) => Join::Multi,
            _ => Join::All,
        };
        let hint = match join {
            Join::Multi => "write + in front for subjobs of one job",
            _ => "write & in front: all of them describe one job",
        };
        // Once for many parentheses in a row.
        if self.told.is_none_or(|told| told + 1 != self.at) {
            self.error("an operator is missing in front of this '('", hint);
        }
        self.told = Some(self.at);
        self.groups(join, self.here())
    }

    fn compound(&mut self, join: Join) -> Spec<Value> {
        let span = self.here();
        self.at += 1;
        if self.peek() != Some(&Token::Open) {
            let sign = join.sign();
            self.error(
                format!("'(' is expected after '{sign}'"),
                format!("write {sign} ( ... ) ( ... )"),
            );
            return Spec::Compound(Compound {
                join,
                members: Vec::new(),
                span,
                damaged: true,
            });
        }
        self.groups(join, span)
    }

    fn groups(&mut self, join: Join, span: Span) -> Spec<Value> {
        let errors = self.report.errors.count();
        let mut members = Vec::new();
        while self.peek() == Some(&Token::Open) {
            members.extend(self.group());
            if self.depth == 1 {
                self.skip_owed();
            }
        }
        Spec::Compound(Compound {
            join,
            members,
            span,
            damaged: self.report.errors.count() > errors || self.cut,
        })
    }

    /// A `)` at the end of several groups is the one that was missed before.
    fn skip_owed(&mut self) {
        while self.owed > 0 && self.peek() == Some(&Token::Close) {
            self.owed -= 1;
            self.at += 1;
        }
    }

    fn group(&mut self) -> Option<Spec<Value>> {
        let (open, depth, errors) = (self.at, self.depth, self.report.errors.count());
        self.at += 1;
        let spec = self.spec();
        self.depth = depth;
        if std::mem::take(&mut self.assumed) {
            // The missing ')' has been told.
        } else if self.peek() == Some(&Token::Close) && spec.is_some() {
            self.at += 1;
        } else if self.report.errors.count() > errors {
            self.skip_group(open);
        } else {
            self.not_closed(open);
        }
        spec
    }

    fn not_closed(&mut self, open: usize) {
        let span = self.lexemes[open].span.clone();
        if self.peek().is_none() {
            if !self.cut {
                self.report.error(span, "this '(' is not closed", "add a ')'");
            }
            return;
        }
        let line = self.report.line(span.start);
        self.error("')' is expected here", format!("it closes the '(' of line {line}"));
        self.skip_group(open);
    }

    /// Goes to the end of the group whose `(` is this token.
    fn skip_group(&mut self, open: usize) {
        let mut depth = 0usize;
        let mut at = open;
        while let Some(lexeme) = self.lexemes.get(at) {
            match lexeme.token {
                Token::Open => depth += 1,
                Token::Close => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
            if depth == 0 && at >= self.at {
                break;
            }
        }
        self.at = at;
    }

    fn relation(&mut self) -> Result<Relation<Value>, Told> {
        let span = self.here();
        let Some(Token::Word(attribute) | Token::Quoted(attribute)) = self.peek().cloned() else {
            return Err(Told);
        };
        self.at += 1;
        let Some(Token::Relation(operator)) = self.peek().cloned() else {
            let value = match self.peek() {
                Some(Token::Word(word)) => shown(word),
                _ => "VALUE".to_owned(),
            };
            let attribute = shown(&attribute);
            self.error(
                format!("an operator is expected after '{attribute}'"),
                format!("write ({attribute} = {value}); the others are != < <= > >="),
            );
            return Err(Told);
        };
        self.at += 1;
        if !self.at_value() {
            let sign = operator.sign();
            self.error(
                format!("a value is expected after '{sign}'"),
                "leave out the attribute, or write \"\" for an empty text",
            );
            return Err(Told);
        }
        let mut values = Vec::new();
        while self.at_value() {
            if self.begins_relation() {
                self.missing_close(&attribute, &span);
                break;
            }
            values.push(self.value()?);
        }
        if !self.assumed {
            self.check_end_of_values()?;
        }
        Ok(Relation {
            attribute,
            span,
            operator,
            values,
        })
    }

    fn at_value(&self) -> bool {
        matches!(
            self.peek(),
            Some(Token::Word(_) | Token::Quoted(_) | Token::Open | Token::Dollar)
        )
    }

    /// Whether `( NAME =` is next, which is no value.
    fn begins_relation(&self) -> bool {
        let name = matches!(self.ahead(1), Some(Token::Word(_) | Token::Quoted(_)));
        self.peek() == Some(&Token::Open) && name && matches!(self.ahead(2), Some(Token::Relation(_)))
    }

    fn missing_close(&mut self, attribute: &str, span: &Span) {
        let line = self.report.line(span.start);
        let sign = self.lexemes[self.at + 2].span.clone();
        let attribute = shown(attribute);
        self.report.error(
            sign,
            format!("a relation is not allowed among the values of '{attribute}'"),
            format!("is a ')' missing after the values of '{attribute}' in line {line}?"),
        );
        self.owed += 1;
        self.assumed = true;
    }

    /// After the values only `)` or the end may stand: says what is wrong with anything else.
    fn check_end_of_values(&mut self) -> Result<(), Told> {
        let sign = match self.peek() {
            None | Some(Token::Close) => return Ok(()),
            Some(Token::Relation(operator)) => operator.sign(),
            Some(Token::Plus) => "+",
            Some(Token::And) => "&",
            Some(Token::Or) => "|",
            Some(_) => "#",
        };
        let run = self.run();
        let hint = if run.len() > sign.len() && sign != "#" {
            format!("a word ends there; quote it: {}", super::write::quoted(run))
        } else {
            format!("quote it to make it a value: \"{sign}\"")
        };
        self.error(format!("'{sign}' is not allowed here in a value"), hint);
        Err(Told)
    }

    /// The text around the next token up to white space, parentheses and quotes.
    fn run(&self) -> &str {
        let text = self.report.source.text();
        let at = self.here();
        let stop = |c: char| c.is_whitespace() || "()\"'".contains(c);
        let start = text[..at.start].rfind(stop).map_or(0, |s| s + 1);
        let end = text[at.end..].find(stop).map_or(text.len(), |e| at.end + e);
        // A character of several bytes may be what stopped it.
        text.get(start..end).unwrap_or_default()
    }

    fn value(&mut self) -> Result<Value, Told> {
        if self.peek() != Some(&Token::Open) {
            return self.simple();
        }
        let start = self.here();
        let values = self.list("list")?;
        Ok(Value {
            kind: Kind::List(values),
            span: start.start..self.before(),
        })
    }

    /// End of the last token that was read.
    fn before(&self) -> usize {
        self.lexemes[self.at - 1].span.end
    }

    /// `( value+ )`
    fn list(&mut self, what: &str) -> Result<Vec<Value>, Told> {
        if self.depth >= MAX_DEPTH {
            self.error(format!("lists are nested deeper than {MAX_DEPTH}"), "");
            return Err(Told);
        }
        let open = self.here();
        self.at += 1;
        if self.peek() == Some(&Token::Close) {
            self.at -= 1;
            let span = open.start..self.lexemes[self.at + 1].span.end;
            self.report.error(
                span,
                format!("an empty {what} is not a value"),
                "write \"\" for an empty text",
            );
            return Err(Told);
        }
        self.depth += 1;
        let mut values = Vec::new();
        while self.at_value() {
            values.push(self.value()?);
        }
        self.depth -= 1;
        match self.peek() {
            Some(Token::Close) => {
                self.at += 1;
                Ok(values)
            }
            None => {
                if !self.cut {
                    self.report.error(open, "this '(' is not closed", "add a ')'");
                }
                Err(Told)
            }
            Some(_) => {
                self.check_end_of_values()?;
                Err(Told)
            }
        }
    }

    /// Atoms joined with `#`, or standing side by side where that joins them.
    fn simple(&mut self) -> Result<Value, Told> {
        let first = self.atom()?;
        let start = first.span.start;
        let mut atoms = vec![first];
        loop {
            if self.peek() == Some(&Token::Hash) {
                self.at += 1;
            } else if !self.joins() {
                break;
            }
            atoms.push(self.atom()?);
        }
        if atoms.len() == 1 {
            return atoms.pop().ok_or(Told);
        }
        Ok(Value {
            kind: Kind::Concatenation(atoms),
            span: start..self.before(),
        })
    }

    /// A word with `$` right behind it, and the end of a variable with a word or `$` right behind it, are joined.
    fn joins(&self) -> bool {
        let Some(next) = self.lexemes.get(self.at).filter(|l| !l.spaced) else {
            return false;
        };
        match self.lexemes[self.at - 1].token {
            Token::Word(_) => next.token == Token::Dollar,
            Token::Close => matches!(next.token, Token::Word(_) | Token::Dollar),
            _ => false,
        }
    }

    fn atom(&mut self) -> Result<Value, Told> {
        let span = self.here();
        match self.peek() {
            Some(Token::Word(text) | Token::Quoted(text)) => {
                let kind = Kind::Text(text.clone());
                self.at += 1;
                Ok(Value { kind, span })
            }
            Some(Token::Dollar) => self.variable(span.start),
            _ => {
                self.error("a text or a variable is expected after '#'", "");
                Err(Told)
            }
        }
    }

    fn variable(&mut self, start: usize) -> Result<Value, Told> {
        self.at += 1;
        if self.peek() != Some(&Token::Open) {
            let (name, rest) = match self.peek() {
                Some(Token::Word(word)) => word.split_at(word.find('/').unwrap_or(word.len())),
                _ => ("NAME", ""),
            };
            let hint = format!("write $({}){}", shown(name), shown(rest));
            self.error("'(' is expected after '$'", hint);
            return Err(Told);
        }
        let values = self.list("variable")?;
        Ok(Value {
            kind: Kind::Variable(values),
            span: start..self.before(),
        })
    }
}
