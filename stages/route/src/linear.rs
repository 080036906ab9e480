//! Linear programs in whole and real numbers, and the files that solvers read.

use std::fmt::Write;

/// A linear program: least cost under constraints.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinearProgram {
    /// The variables.
    pub variables: Vec<Variable>,
    /// What has to hold.
    pub constraints: Vec<Constraint>,
}

/// A variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name, without blanks.
    pub name: String,
    /// What values it can have.
    pub domain: Domain,
    /// What one of it costs.
    pub cost: f64,
}

/// The values of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// 0 or 1.
    Binary,
    /// 0 or more.
    NotNegative,
}

/// A sum of variables that is bounded.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    /// Its name, without blanks.
    pub name: String,
    /// Indexes of variables and their factors.
    pub terms: Vec<(usize, f64)>,
    /// How the sum stands to `bound`.
    pub sense: Sense,
    /// The bound.
    pub bound: f64,
}

/// How a sum stands to its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// At most.
    AtMost,
    /// Equal.
    Equal,
    /// At least.
    AtLeast,
}

/// Terms on a line of a file.
const TERMS_ON_A_LINE: usize = 8;

impl LinearProgram {
    /// Adds a variable and gives its index.
    pub fn variable(&mut self, name: String, domain: Domain, cost: f64) -> usize {
        self.variables.push(Variable { name, domain, cost });
        self.variables.len() - 1
    }

    /// Adds a constraint. One without terms is left out if it holds.
    pub fn constrain(&mut self, name: String, terms: Vec<(usize, f64)>, sense: Sense, bound: f64) {
        let holds = match sense {
            Sense::AtMost => 0.0 <= bound,
            Sense::Equal => bound == 0.0,
            Sense::AtLeast => 0.0 >= bound,
        };
        if !(terms.is_empty() && holds) {
            self.constraints.push(Constraint { name, terms, sense, bound });
        }
    }

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
            let sense = match constraint.sense {
                Sense::AtMost => "<=",
                Sense::Equal => "=",
                Sense::AtLeast => ">=",
            };
            let _ = writeln!(text, " {sense} {}", constraint.bound);
        }
        text.push_str("Binaries\n");
        for variable in self.variables.iter().filter(|variable| variable.domain == Domain::Binary) {
            let _ = writeln!(text, " {}", variable.name);
        }
        text.push_str("End\n");
        text
    }

    fn write_terms(&self, text: &mut String, terms: &[(usize, f64)]) {
        if terms.is_empty() {
            // The format has no empty sum.
            if let Some(first) = self.variables.first() {
                let _ = write!(text, " 0 {}", first.name);
            }
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

    /// The program in free MPS.
    #[must_use]
    pub fn mps(&self) -> String {
        let mut text = String::from("NAME route\nROWS\n N objective\n");
        for constraint in &self.constraints {
            let sense = match constraint.sense {
                Sense::AtMost => 'L',
                Sense::Equal => 'E',
                Sense::AtLeast => 'G',
            };
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
        for variable in self.variables.iter().filter(|variable| variable.domain == Domain::Binary) {
            let _ = writeln!(text, " BV BND {}", variable.name);
        }
        text.push_str("ENDATA\n");
        text
    }
}
