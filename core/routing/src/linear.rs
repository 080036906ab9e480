//! Mixed-integer linear programs, and solver input files: the LP format of CPLEX and free MPS.

use std::fmt::Write;

/// A mixed-integer linear program: minimum cost under constraints.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinearProgram {
    /// The variables.
    pub variables: Vec<Variable>,
    /// The constraints.
    pub constraints: Vec<Constraint>,
    /// Initial solution: the value of every variable. Solvers ignore an infeasible one.
    pub start: Option<Vec<f64>>,
    /// Cutoff: only solutions below this cost are sought.
    pub cutoff: Option<f64>,
}

/// A variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name, without blanks.
    pub name: String,
    /// Its domain.
    pub domain: Domain,
    /// Its cost per unit.
    pub cost: f64,
    /// Lower bound, which may be −∞.
    pub least: f64,
    /// Upper bound, which may be ∞.
    pub most: f64,
}

/// The domain of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// 0 or 1.
    Binary,
    /// An integer, 0 or more unless bounded otherwise.
    Whole,
    /// A real number, 0 or more unless bounded otherwise.
    NotNegative,
}

/// A linear constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    /// Its name, without blanks.
    pub name: String,
    /// Indexes of variables and their coefficients.
    pub terms: Vec<(usize, f64)>,
    /// Relation of the sum to `bound`.
    pub sense: Sense,
    /// The right-hand side.
    pub bound: f64,
}

/// Relation of a sum to its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// At most.
    AtMost,
    /// Equal.
    Equal,
    /// At least.
    AtLeast,
}

impl Sense {
    fn holds(self, sum: f64, bound: f64, tolerance: f64) -> bool {
        match self {
            Self::AtMost => sum <= bound + tolerance,
            Self::Equal => (sum - bound).abs() <= tolerance,
            Self::AtLeast => sum >= bound - tolerance,
        }
    }
}

impl LinearProgram {
    /// Adds a variable and returns its index.
    pub fn variable(&mut self, name: String, domain: Domain, cost: f64) -> usize {
        let most = if domain == Domain::Binary { 1.0 } else { f64::INFINITY };
        self.variables.push(Variable { name, domain, cost, least: 0.0, most });
        self.variables.len() - 1
    }

    /// Bounds a variable, both ends included.
    pub fn limit(&mut self, variable: usize, least: f64, most: f64) {
        if let Some(variable) = self.variables.get_mut(variable) {
            (variable.least, variable.most) = (least, most);
        }
    }

    /// Adds a constraint. One without terms is omitted if it holds.
    pub fn constrain(&mut self, name: String, terms: Vec<(usize, f64)>, sense: Sense, bound: f64) {
        if !(terms.is_empty() && sense.holds(0.0, bound, 0.0)) {
            self.constraints.push(Constraint { name, terms, sense, bound });
        }
    }

    /// The cost of values of the variables.
    #[must_use]
    pub fn cost(&self, values: &[f64]) -> f64 {
        self.variables.iter().zip(values).map(|(variable, value)| variable.cost * value).sum()
    }

    /// The first violation, as text; `None` if the values are feasible. The tolerance is absolute for integrality, and relative
    /// to the largest term for a sum.
    #[must_use]
    pub fn violated(&self, values: &[f64], tolerance: f64) -> Option<String> {
        if values.len() != self.variables.len() {
            return Some(format!("there are {} values for {} variables", values.len(), self.variables.len()));
        }
        let is_wrong = |(variable, value): &(&Variable, &f64)| {
            let is_whole =
                variable.domain == Domain::NotNegative || (*value - value.round()).abs() <= tolerance;
            !(is_whole && **value >= variable.least - tolerance && **value <= variable.most + tolerance)
        };
        if let Some((variable, value)) = self.variables.iter().zip(values).find(is_wrong) {
            return Some(format!("the variable {} is {value}", variable.name));
        }
        let sum = |constraint: &Constraint| -> (f64, f64) {
            let products = || constraint.terms.iter().map(|&(index, factor)| factor * values[index]);
            let largest = products().map(f64::abs).fold(constraint.bound.abs().max(1.0), f64::max);
            (products().sum(), largest * tolerance)
        };
        let is_broken = |constraint: &&Constraint| {
            let (sum, tolerance) = sum(constraint);
            !constraint.sense.holds(sum, constraint.bound, tolerance)
        };
        let broken = self.constraints.iter().find(is_broken)?;
        let Constraint { name, sense, bound, .. } = broken;
        Some(format!("the sum {name} is {}, which is not {sense:?} {bound}", sum(broken).0))
    }

    /// Whether the cost of every solution is an integer.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_whole = |variable: &Variable| {
            variable.cost == 0.0 || (variable.cost.fract() == 0.0 && variable.domain != Domain::NotNegative)
        };
        self.variables.iter().all(is_whole)
    }
}

/// Terms per line of a file.
const TERMS_ON_A_LINE: usize = 8;

impl LinearProgram {
    /// The program in the LP format of CPLEX, which glpsol, cbc, scip and `HiGHS` read.
    #[must_use]
    pub fn lp(&self) -> String {
        let mut text = String::from("Minimize\n objective:");
        let costs = self.variables.iter().enumerate().filter(|(_, variable)| variable.cost != 0.0);
        let costs: Vec<(usize, f64)> = costs.map(|(index, variable)| (index, variable.cost)).collect();
        self.write_terms(&mut text, &costs);
        text.push_str("\nSubject To\n");
        for constraint in &self.constraints {
            let _ = write!(text, " {}:", constraint.name);
            self.write_terms(&mut text, &constraint.terms);
            let sense = ["<=", "=", ">="][constraint.sense as usize];
            let _ = writeln!(text, " {sense} {}", constraint.bound);
        }
        self.write_bounds(&mut text);
        for (title, domain) in [("General", Domain::Whole), ("Binaries", Domain::Binary)] {
            let mut own = self.variables.iter().filter(|variable| variable.kind() == domain).peekable();
            if own.peek().is_some() {
                let _ = writeln!(text, "{title}");
            }
            for variable in own {
                let _ = writeln!(text, " {}", variable.name);
            }
        }
        text.push_str("End\n");
        text
    }

    /// Bounds of variables that differ from 0 to 1 and 0 to infinity.
    fn write_bounds(&self, text: &mut String) {
        let is_usual = |variable: &Variable| {
            variable.kind() == Domain::Binary || (variable.least == 0.0 && variable.most == f64::INFINITY)
        };
        let mut bounded = self.variables.iter().filter(|variable| !is_usual(variable)).peekable();
        if bounded.peek().is_some() {
            text.push_str("Bounds\n");
        }
        for Variable { name, least, most, .. } in bounded {
            let _ = match (least.is_finite(), most.is_finite()) {
                (true, true) => writeln!(text, " {least} <= {name} <= {most}"),
                (true, false) => writeln!(text, " {name} >= {least}"),
                (false, true) => writeln!(text, " -inf <= {name} <= {most}"),
                (false, false) => writeln!(text, " {name} free"),
            };
        }
    }

    fn write_terms(&self, text: &mut String, terms: &[(usize, f64)]) {
        // The format does not allow an empty sum.
        if let Some(first) = self.variables.first().filter(|_| terms.is_empty()) {
            let _ = write!(text, " 0 {}", first.name);
        }
        for (count, &(index, factor)) in terms.iter().enumerate() {
            if count > 0 && count % TERMS_ON_A_LINE == 0 {
                text.push_str("\n ");
            }
            let sign = if factor < 0.0 { '-' } else { '+' };
            let name = &self.variables[index].name;
            match factor.abs() {
                1.0 => drop(write!(text, " {sign} {name}")),
                size => drop(write!(text, " {sign} {size} {name}")),
            }
        }
    }

    /// The program in free MPS; cbc reads fixed MPS unless the file has `FREE`.
    #[must_use]
    pub fn mps(&self) -> String {
        let mut text = String::from("NAME route FREE\nROWS\n N objective\n");
        for constraint in &self.constraints {
            let sense = ['L', 'E', 'G'][constraint.sense as usize];
            let _ = writeln!(text, " {sense} {}", constraint.name);
        }
        let mut columns: Vec<Vec<(&str, f64)>> = vec![Vec::new(); self.variables.len()];
        for constraint in &self.constraints {
            for &(index, factor) in &constraint.terms {
                columns[index].push((&constraint.name, factor));
            }
        }
        text.push_str("COLUMNS\n");
        for (variable, rows) in self.variables.iter().zip(&columns) {
            if variable.cost != 0.0 || rows.is_empty() {
                let _ = writeln!(text, " {} objective {}", variable.name, variable.cost);
            }
            for (row, factor) in rows {
                let _ = writeln!(text, " {} {row} {factor}", variable.name);
            }
        }
        text.push_str("RHS\n");
        for constraint in self.constraints.iter().filter(|constraint| constraint.bound != 0.0) {
            let _ = writeln!(text, " RHS {} {}", constraint.name, constraint.bound);
        }
        text.push_str("BOUNDS\n");
        for variable in &self.variables {
            variable.write_mps_bounds(&mut text);
        }
        text.push_str("ENDATA\n");
        text
    }
}

impl Variable {
    /// The domain in files: a binary variable with other bounds becomes a bounded integer.
    fn kind(&self) -> Domain {
        match (self.domain, self.least == 0.0 && self.most.total_cmp(&1.0).is_eq()) {
            (Domain::Binary, false) => Domain::Whole,
            (domain, _) => domain,
        }
    }

    fn write_mps_bounds(&self, text: &mut String) {
        let Self { name, least, most, .. } = self;
        let (lower, upper) = match self.kind() {
            Domain::Binary => ("BV", "BV"),
            Domain::Whole => ("LI", "UI"),
            Domain::NotNegative => ("LO", "UP"),
        };
        // The upper bound comes first: some solvers drop the lower bound when they read an upper bound of 0 or less.
        let bounds = match (lower, least.is_finite(), most.is_finite()) {
            ("BV", ..) => vec![format!("BV BND {name}")],
            ("LO", false, false) => vec![format!("FR BND {name}")],
            // The format cannot express an integer without bounds; this is the range of exact integers.
            (_, false, false) => vec![format!("PL BND {name}"), format!("LI BND {name} -9007199254740992")],
            (_, true, true) => {
                vec![format!("{upper} BND {name} {most}"), format!("{lower} BND {name} {least}")]
            }
            (_, true, false) => vec![format!("PL BND {name}"), format!("{lower} BND {name} {least}")],
            (_, false, true) => vec![format!("{upper} BND {name} {most}"), format!("MI BND {name}")],
        };
        bounds.iter().for_each(|bound| text.push_str(&format!(" {bound}\n")));
    }
}
