//! Linear programs in whole and real numbers.

mod files;

/// A linear program: least cost under constraints.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinearProgram {
    /// The variables.
    pub variables: Vec<Variable>,
    /// What has to hold.
    pub constraints: Vec<Constraint>,
    /// A solution that is known, to begin with: the value of every variable. Solvers leave out one that is none.
    pub start: Option<Vec<f64>>,
    /// Nothing that costs this much or more is looked for.
    pub cutoff: Option<f64>,
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
    /// The least value, which may be −∞.
    pub least: f64,
    /// The largest value, which may be ∞.
    pub most: f64,
}

/// The values of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// 0 or 1.
    Binary,
    /// A whole number, 0 or more unless it is bounded otherwise.
    Whole,
    /// 0 or more unless it is bounded otherwise.
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

impl LinearProgram {
    /// Adds a variable and gives its index.
    pub fn variable(&mut self, name: String, domain: Domain, cost: f64) -> usize {
        let most = if domain == Domain::Binary { 1.0 } else { f64::INFINITY };
        self.variables.push(Variable { name, domain, cost, least: 0.0, most });
        self.variables.len() - 1
    }

    /// Bounds a variable: from `least` up to and including `most`.
    pub fn limit(&mut self, variable: usize, least: f64, most: f64) {
        if let Some(variable) = self.variables.get_mut(variable) {
            (variable.least, variable.most) = (least, most);
        }
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

    /// What values of the variables cost.
    #[must_use]
    pub fn cost(&self, values: &[f64]) -> f64 {
        self.variables.iter().zip(values).map(|(variable, value)| variable.cost * value).sum()
    }

    /// The first thing that values of the variables do not keep, in words; `None` if they are a solution. What is whole may be off by
    /// `tolerance`, and a sum by that part of the largest of its terms.
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
            !(match constraint.sense {
                Sense::AtMost => sum <= constraint.bound + tolerance,
                Sense::Equal => (sum - constraint.bound).abs() <= tolerance,
                Sense::AtLeast => sum >= constraint.bound - tolerance,
            })
        };
        let broken = self.constraints.iter().find(is_broken)?;
        Some(format!(
            "the sum {} is {} and not {:?} {}",
            broken.name,
            sum(broken).0,
            broken.sense,
            broken.bound
        ))
    }

    /// Whether every solution costs a whole number.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_whole = |variable: &Variable| {
            variable.cost == 0.0 || (variable.cost.fract() == 0.0 && variable.domain != Domain::NotNegative)
        };
        self.variables.iter().all(is_whole)
    }
}
