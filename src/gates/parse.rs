//! From the text of a gate to its [`Formula`]: a parser by recursive descent that keeps places.
//!
//! ```text
//! gate       = sum COMPARISON sum
//! sum        = product { ("+" | "-") product }
//! product    = factor { ("*" | "/") factor }
//! factor     = NUMBER | "accepted" | "(" sum ")" | "-" factor | FUNCTION "(" metric ")" | metric
//! metric     = STAGE [ "." PORT ] [ "[" CELLS "]" ] "." NAME
//! COMPARISON = "<=" | "<" | ">=" | ">" | "==" | "!="       FUNCTION = "min" | "max" | "mean" | "median"
//! ```

use std::ops::Range;

use super::{Choice, Comparison, Expression, Formula, Function, Operator, Term};
use crate::source::Problem;

/// No gate that people write is longer; a text without end must not fill the stack.
const LONGEST: usize = 2000;
/// Parentheses and signs within each other.
const DEEPEST: usize = 50;

/// How gates are written, for messages.
pub(crate) const FORM: &str =
    "a gate compares two sums of numbers and metrics, such as \"placement.F <= 1.02 * accepted\"";
/// How metrics are written, for messages.
const METRICS: &str = "a metric is written as stage.metric, stage.port.metric, stage[min F].metric, \
                       stage[key=value].metric or max(stage[*].metric)";

impl Formula {
    /// Reads a gate; with the place of each of its terms.
    pub(crate) fn parse(text: &str) -> Result<(Self, Vec<Range<usize>>), Problem> {
        if text.len() > LONGEST {
            return Err(Problem::new(format!("a gate has at most {LONGEST} letters"), &(0..text.len())));
        }
        let mut parser = Parser { text, at: 0, depth: 0, terms: Vec::new(), places: Vec::new() };
        let left = parser.sum()?;
        let comparison = parser.comparison()?;
        let right = parser.sum()?;
        parser.end()?;
        let (terms, places) = (parser.terms, parser.places);
        Ok((Self { left, comparison, right, terms }, places))
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    terms: Vec<Term>,
    places: Vec<Range<usize>>,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes a sign if it comes next.
    fn takes(&mut self, sign: &str) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    /// Takes letters as long as they are of a kind.
    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|letter| !fits(letter)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// The next letter, or the end.
    fn here(&self) -> Range<usize> {
        self.at..self.at + self.rest().chars().next().map_or(0, char::len_utf8)
    }

    fn wanted(&self, what: &str) -> Problem {
        let found = match self.rest().chars().next() {
            None => "the end of the gate".to_owned(),
            Some(letter) => format!("`{letter}`"),
        };
        Problem::new(format!("expected {what}, found {found}"), &self.here())
    }

    fn sum(&mut self) -> Result<Expression, Problem> {
        self.operations([("+", Operator::Plus), ("-", Operator::Minus)], Self::product)
    }

    fn product(&mut self) -> Result<Expression, Problem> {
        self.operations([("*", Operator::Times), ("/", Operator::Over)], Self::factor)
    }

    /// Parts with signs between them, put together from the left.
    fn operations(
        &mut self,
        signs: [(&str, Operator); 2],
        part: fn(&mut Self) -> Result<Expression, Problem>,
    ) -> Result<Expression, Problem> {
        let mut all = part(self)?;
        while let Some((_, operator)) = signs.into_iter().find(|(sign, _)| self.takes(sign)) {
            all = Expression::Operation(Box::new(all), operator, Box::new(part(self)?));
        }
        Ok(all)
    }

    fn factor(&mut self) -> Result<Expression, Problem> {
        self.skip_spaces();
        if self.depth == DEEPEST {
            return Err(Problem::new("these parentheses are too deep", &self.here()));
        }
        self.depth += 1;
        let factor = match () {
            () if self.takes("(") => {
                let inner = self.sum()?;
                self.closing(")")?;
                inner
            }
            () if self.takes("-") => Expression::Negative(Box::new(self.factor()?)),
            () => self.leaf()?,
        };
        self.depth -= 1;
        Ok(factor)
    }

    fn closing(&mut self, sign: &str) -> Result<(), Problem> {
        if self.takes(sign) {
            return Ok(());
        }
        Err(self.wanted(&format!("`{sign}`")))
    }

    fn leaf(&mut self) -> Result<Expression, Problem> {
        if let Some(number) = self.number()? {
            return Ok(Expression::Number(number));
        }
        let start = self.at;
        let name = self.take_while(is_of_stage);
        if name.is_empty() {
            return Err(self.wanted("a number or a metric").help(FORM));
        }
        let goes_on = self.rest().starts_with(['.', '[']);
        if name == "accepted" && !goes_on {
            return Ok(Expression::Accepted);
        }
        if goes_on {
            return self.metric(start, name, None);
        }
        if !self.takes("(") {
            let problem = Problem::new(format!("`{name}` is not a metric"), &(start..start + name.len()));
            return Err(match name.starts_with("accept") {
                true => problem.suggest(name, "of the left side", ["accepted"]),
                false => problem.help(METRICS),
            });
        }
        let Some(function) = Function::of_name(name) else {
            let problem =
                Problem::new(format!("there is no function `{name}`"), &(start..start + name.len()));
            return Err(problem.suggest(name, "functions", Function::ALL.map(Function::name)));
        };
        self.skip_spaces();
        let stage_start = self.at;
        let stage = self.take_while(is_of_stage);
        let value = self.metric(stage_start, stage, Some(function))?;
        self.closing(")")?;
        Ok(value)
    }

    /// A number, if one comes next. `2d.F` is a metric of the stage `2d`.
    fn number(&mut self) -> Result<Option<f64>, Problem> {
        if !self.rest().starts_with(|letter: char| letter.is_ascii_digit() || letter == '.') {
            return Ok(None);
        }
        let start = self.at;
        let is_part = |letter: char| letter.is_ascii_digit() || letter == '.';
        self.take_while(is_part);
        if self.rest().starts_with(['e', 'E']) {
            let mantissa = self.at;
            self.at += 1;
            if self.rest().starts_with(['+', '-']) {
                self.at += 1;
            }
            if self.take_while(|letter| letter.is_ascii_digit()).is_empty() {
                self.at = mantissa;
            }
        }
        if self.rest().starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && !self.text[start..].starts_with('.')
        {
            self.at = start;
            return Ok(None);
        }
        let written = &self.text[start..self.at];
        match written.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(Problem::new(format!("`{written}` is not a number"), &(start..self.at))),
        }
    }

    /// What follows the name of a stage: perhaps a port, perhaps a choice of cells, then the metric.
    fn metric(
        &mut self,
        start: usize,
        stage: &str,
        function: Option<Function>,
    ) -> Result<Expression, Problem> {
        if stage.is_empty() {
            return Err(self.wanted("a metric").help(METRICS));
        }
        let port = self.port();
        let choice = self.choice()?.unwrap_or(Choice::Paired);
        if !self.rest().starts_with('.') {
            return Err(self.wanted("`.` and a metric").help(METRICS));
        }
        self.at += 1;
        let metric = self.take_while(is_of_metric);
        if metric.is_empty() {
            return Err(self.wanted("the name of a metric").help(METRICS));
        }
        self.terms.push(Term { function, stage: stage.into(), port, choice, metric: metric.into() });
        self.places.push(start..self.at);
        Ok(Expression::Term(self.terms.len() - 1))
    }

    /// A name behind a point that is followed by another point or a bracket is a port.
    fn port(&mut self) -> Option<String> {
        let name = self.rest().strip_prefix('.')?;
        let end = name.find(|letter| !is_of_stage(letter))?;
        let is_port = end > 0 && name[end..].starts_with(['.', '[']);
        self.at += if is_port { 1 + end } else { 0 };
        is_port.then(|| name[..end].to_owned())
    }

    fn choice(&mut self) -> Result<Option<Choice>, Problem> {
        let Some(rest) = self.rest().strip_prefix('[') else { return Ok(None) };
        let open = self.at;
        let Some(end) = rest.find(']') else {
            return Err(Problem::new("this bracket is not closed", &(open..open + 1)));
        };
        self.at += end + 2;
        let choice = Choice::parse(rest[..end].trim());
        choice.map(Some).map_err(|message| Problem::new(message, &(open..self.at)).help(METRICS))
    }

    fn comparison(&mut self) -> Result<Comparison, Problem> {
        self.skip_spaces();
        if let Some(found) = Comparison::ALL.into_iter().find(|comparison| self.takes(comparison.sign())) {
            return Ok(found);
        }
        let problem = self.wanted("a comparison");
        Err(problem.label("one of <= < >= > == !=").help(FORM))
    }

    fn end(&mut self) -> Result<(), Problem> {
        self.skip_spaces();
        if self.rest().is_empty() {
            return Ok(());
        }
        if Comparison::ALL.into_iter().any(|comparison| self.rest().starts_with(comparison.sign())) {
            let problem = Problem::new("a gate compares once", &self.here());
            return Err(problem.help("two bounds are two gates"));
        }
        Err(self.wanted("the end of the gate"))
    }
}

fn is_of_stage(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-' || letter == '_'
}

fn is_of_metric(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selector::Extreme;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        Formula::parse(text).unwrap().0.to_string()
    }

    fn fault(text: &str) -> String {
        let problem = Formula::parse(text).unwrap_err();
        format!("{}: {}", problem.span.start, problem.message)
    }

    #[test]
    fn every_form_is_read() {
        let same = [
            "placement.F <= 1.02 * accepted",
            "schedule[min makespan].makespan < 90",
            "quality.F <= 0.8 * linear.F",
            "a.port.F == a.port[k=v,l=2].F",
            "a.task-graph[*].F != -1",
            "median(a[*].F) / 2 >= mean(b[*].F) + 1 - (2 - 3)",
            "(a.F + b.F) * 2 > 0.5",
            "-(a.F - b.F) > -a.F",
            "2d.F < 100000",
        ];
        for text in same {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown("  a.F-1<=1e2*( accepted ) "), "a.F - 1 <= 100 * accepted");
        assert_eq!(shown("max( a[ * ].F)<1."), "max(a[*].F) < 1");
        // Stages may have the names of functions, and of the accepted value.
        assert_eq!(shown("min.F < accepted.F"), "min.F < accepted.F");
    }

    #[test]
    fn faults_are_told_with_their_place() {
        assert_eq!(fault(""), "0: expected a number or a metric, found the end of the gate");
        assert_eq!(fault("a.F"), "3: expected a comparison, found the end of the gate");
        assert_eq!(fault("a.F = 3"), "4: expected a comparison, found `=`");
        assert_eq!(fault("a.F < 3 < 4"), "8: a gate compares once");
        assert_eq!(fault("a.F < 3 4"), "8: expected the end of the gate, found `4`");
        assert_eq!(fault("F < 3"), "0: `F` is not a metric");
        assert_eq!(fault("a.F < acceptd"), "6: `acceptd` is not a metric");
        assert_eq!(fault("(a.F < 3"), "5: expected `)`, found `<`");
        assert_eq!(fault("avg(a[*].F) < 3"), "0: there is no function `avg`");
        assert_eq!(fault("max(3) < 3"), "5: expected `.` and a metric, found `)`");
        assert_eq!(fault("a[x].F < 3"), "1: `[x]` is not a choice of cells");
        assert_eq!(fault("a[x=1.F < 3"), "1: this bracket is not closed");
        assert_eq!(fault("a. < 3"), "2: expected the name of a metric, found ` `");
        assert_eq!(fault("a.F < 1.2.3"), "6: `1.2.3` is not a number");
        assert_eq!(fault("a.F < 1e999"), "6: `1e999` is not a number");
        assert_eq!(fault("a.F < ä"), "6: expected a number or a metric, found `ä`");
        assert!(fault(&format!("{}1 < 2", "(".repeat(1000))).ends_with("these parentheses are too deep"));
        assert!(fault(&"1+".repeat(5000)).ends_with("a gate has at most 2000 letters"));
    }

    fn terms() -> impl Strategy<Value = Term> {
        let choice = prop_oneof![
            Just(Choice::Paired),
            Just(Choice::All),
            "[a-zA-Z]{1,3}".prop_map(|metric| Choice::Best { metric, extreme: Extreme::Max }),
            prop::collection::vec(("[a-z]{1,3}", "[a-z0-9.-]{1,3}"), 1..3).prop_map(Choice::Where),
        ];
        let function = prop::option::of(prop::sample::select(Function::ALL.to_vec()));
        let port = prop::option::of("[a-z][a-z-]{0,4}");
        (function, "[a-z][a-z0-9_-]{0,5}", port, choice, "[a-zA-Z][a-zA-Z0-9_]{0,5}").prop_map(
            |(function, stage, port, choice, metric)| Term { function, stage, port, choice, metric },
        )
    }

    fn expressions() -> impl Strategy<Value = Expression> {
        let leaf = prop_oneof![
            (0.0..1e9_f64).prop_map(Expression::Number),
            (0_u32..1000).prop_map(|number| Expression::Number(number.into())),
            Just(Expression::Accepted),
            Just(Expression::Term(0)),
        ];
        leaf.prop_recursive(5, 24, 2, |inner| {
            let operator =
                prop::sample::select(vec![Operator::Plus, Operator::Minus, Operator::Times, Operator::Over]);
            prop_oneof![
                inner.clone().prop_map(|inner| Expression::Negative(Box::new(inner))),
                (inner.clone(), operator, inner).prop_map(|(left, operator, right)| Expression::Operation(
                    left.into(),
                    operator,
                    right.into()
                )),
            ]
        })
    }

    /// Gives every place of a term a term of its own, as the parser does.
    fn numbered(expression: &mut Expression, next: &mut usize) {
        match expression {
            Expression::Term(index) => {
                *index = *next;
                *next += 1;
            }
            Expression::Negative(inner) => numbered(inner, next),
            Expression::Operation(left, _, right) => {
                numbered(left, next);
                numbered(right, next);
            }
            Expression::Number(_) | Expression::Accepted => {}
        }
    }

    fn formulas() -> impl Strategy<Value = Formula> {
        let comparison = prop::sample::select(Comparison::ALL.to_vec());
        let terms = prop::collection::vec(terms(), 50);
        (expressions(), comparison, expressions(), terms).prop_map(
            |(mut left, comparison, mut right, mut terms)| {
                let mut count = 0;
                numbered(&mut left, &mut count);
                numbered(&mut right, &mut count);
                terms.truncate(count);
                Formula { left, comparison, right, terms }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_as_it_was(formula in formulas()) {
            let text = formula.to_string();
            prop_assume!(text.len() <= LONGEST);
            let (again, places) = Formula::parse(&text).unwrap();
            prop_assert_eq!(places.len(), again.terms.len());
            prop_assert_eq!(again, formula);
        }

        #[test]
        fn any_text_ends_in_a_formula_or_a_fault_inside_it(text in r"[a-c.0-9eE+*/<>=!()\[\] ä$-]{0,40}") {
            match Formula::parse(&text) {
                Ok((formula, _)) => prop_assert_eq!(Formula::parse(&formula.to_string()).unwrap().0, formula),
                Err(problem) => prop_assert!(text.get(problem.span).is_some()),
            }
        }

        #[test]
        fn any_letters_end_in_a_formula_or_a_fault(text in ".{0,60}") {
            let _ = Formula::parse(&text);
        }
    }
}
