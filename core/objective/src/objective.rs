//! What a search minimises, and objectives other than one quadratic form as integers.

use std::collections::BTreeMap;

use hopmap_model::Weight;

use crate::traffic::Traffic;
use crate::{Metric, ObjectiveError, quality};

/// How a metric follows from a placement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// Sum over pairs of ranks of weight times cost.
    Costs,
    /// The largest share that a rank has in that sum.
    LargestShare,
    /// Sum over pairs of ranks of what they weigh so times hops.
    Hops(Weight),
    /// The most that a link carries.
    LargestLoad,
}

impl Form {
    /// Whether it follows from the costs between slots.
    const fn is_of_costs(&self) -> bool {
        matches!(self, Self::Costs | Self::LargestShare)
    }

    const fn is_of_hops(&self) -> bool {
        matches!(self, Self::Hops(_))
    }

    /// Whether it is a maximum and no sum.
    const fn is_maximum(&self) -> bool {
        matches!(self, Self::LargestShare | Self::LargestLoad)
    }
}

/// Makes [`Objective`] of a table of what can be minimised: by which name it is asked for, which metric it is, and its form.
macro_rules! objectives {
    ($($(#[$doc:meta])* $field:ident, $alone:ident, $name:literal, $metric:expr, $form:expr;)*) => {
        /// What a search minimises: a weighted sum of metrics in their units, those of [`Quality`](crate::Quality).
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Objective {
            $($(#[$doc])* pub $field: f64,)*
        }

        impl Objective {
            /// The names by which metrics are asked for.
            pub const NAMES: [&'static str; COUNT] = [$($name),*];
            const METRICS: [Metric; COUNT] = [$($metric),*];
            const NOTHING: Self = Self { $($field: 0.0),* };
            $($(#[$doc])* pub const $alone: Self = Self { $field: 1.0, ..Self::NOTHING };)*

            /// The weights in the order of the [names](Self::NAMES).
            #[must_use]
            pub const fn weights(&self) -> [f64; COUNT] {
                [$(self.$field),*]
            }

            /// The objective of weights in the order of the [names](Self::NAMES).
            #[must_use]
            pub const fn of_weights([$($field),*]: [f64; COUNT]) -> Self {
                Self { $($field),* }
            }
        }

        const COUNT: usize = [$($name),*].len();
        const FORMS: [Form; COUNT] = [$($form),*];
    };
}

objectives! {
    /// F.
    f, F, "F", quality::F, Form::Costs;
    /// T.
    t, T, "T", quality::T, Form::LargestShare;
    /// Hop-bytes.
    hop_bytes, HOP_BYTES, "hop-bytes", quality::HOP_BYTES, Form::Hops(Weight::Bytes);
    /// The bytes over the busiest directed link.
    max_link_load, MAX_LINK_LOAD, "max-link-load", quality::MAX_LINK_LOAD, Form::LargestLoad;
}

/// How many of them are sums of hops.
pub(crate) const HOPS: usize = {
    let (mut index, mut count) = (0, 0);
    while index < COUNT {
        if FORMS[index].is_of_hops() {
            count += 1;
        }
        index += 1;
    }
    count
};

impl Objective {
    /// Checks that weights are finite and not negative, and that some metric counts.
    pub fn check(&self) -> Result<(), ObjectiveError> {
        let weights = self.weights();
        if let Some(&weight) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
            let problem = format!("a weight of the objective is {weight}");
            return Err(ObjectiveError::new(problem, "weights are finite and zero or more"));
        }
        match weights.iter().all(|&weight| weight == 0.0) {
            true => {
                let [names @ .., last] = Self::NAMES;
                let help = format!("give at least one of {} and {last} a weight", names.join(", "));
                Err(ObjectiveError::new("no metric of the objective has a weight above zero", help))
            }
            false => Ok(()),
        }
    }

    /// What a placement with these metrics costs; `None` where one that counts is missing.
    #[must_use]
    pub fn of_metrics(&self, metrics: &BTreeMap<String, f64>) -> Option<f64> {
        let counting = Self::METRICS.iter().zip(self.weights()).filter(|(_, weight)| *weight != 0.0);
        counting.map(|(metric, weight)| Some(weight * metrics.get(metric.name)?)).sum()
    }

    /// The weights above zero of those whose form is so.
    fn counting(&self, is_so: fn(&Form) -> bool) -> impl Iterator<Item = f64> {
        let all = FORMS.into_iter().zip(self.weights());
        all.filter(move |(form, weight)| is_so(form) && *weight > 0.0).map(|(_, weight)| weight)
    }

    /// The weight of the sum over pairs that it is, if it is nothing but one.
    pub(crate) fn only_sum(&self) -> Option<f64> {
        let mut all = self.counting(|_| true);
        let first = all.next().filter(|_| all.next().is_none())?;
        self.counting(Form::is_maximum).next().is_none().then_some(first)
    }

    /// Whether what it counts follows from the cost between slots.
    pub(crate) fn counts_costs(&self) -> bool {
        self.counting(Form::is_of_costs).next().is_some()
    }

    /// Its sums of hops: the weight of each, and what pairs of ranks weigh in it.
    pub(crate) fn hops(&self) -> [(f64, Weight); HOPS] {
        let all = FORMS.into_iter().zip(self.weights());
        let mut hops = all.filter_map(|(form, weight)| match form {
            Form::Hops(of) => Some((weight, of)),
            Form::Costs | Form::LargestShare | Form::LargestLoad => None,
        });
        std::array::from_fn(|_| hops.next().unwrap_or_default())
    }
}

impl Default for Objective {
    fn default() -> Self {
        Self::F
    }
}

/// Bound of the integer cost of any placement.
const LIMIT: f64 = (1u64 << 60) as f64;
/// Largest relative error of an integer factor where exact ones do not fit.
const PRECISION: f64 = 1e-3;
/// Most bits of a cost that break ties.
const TIE_BITS: u32 = 20;

/// What the cost of a placement is made of, besides the quadratic form of its problem.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// What every value is multiplied by.
    factors: Values,
    /// Bytes over links, if the busiest counts.
    pub(crate) traffic: Option<Traffic>,
    tie: Tie,
    /// What the sum is divided by to come back to real units.
    pub(crate) scale: f64,
}

/// Integer metrics of a placement, or their factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Values {
    /// F, or a sum of hops if neither F nor T counts.
    pub(crate) quadratic: i64,
    /// The sums of hops beside it.
    pub(crate) hops: [i64; HOPS],
    /// Twice T.
    pub(crate) share: i64,
    /// Bytes over the busiest link.
    pub(crate) load: i64,
}

/// Where the objective is a maximum, which many placements have in common, the lowest bits hold the sum that it is the
/// largest part of: so many of its highest bits.
#[derive(Debug, Clone, Copy)]
struct Tie {
    bits: u32,
    shift: u32,
}

impl Terms {
    /// The terms of an objective, of the weight, the scale and the bound of its quadratic form, and of the scales and bounds of the sums
    /// of hops that count beside it.
    pub(crate) fn new(
        objective: &Objective,
        quadratic: f64,
        [base_scale, base_bound]: [f64; 2],
        hops: [Option<[f64; 2]>; HOPS],
        traffic: Option<Traffic>,
    ) -> Result<Self, ObjectiveError> {
        let hops = objective.hops().into_iter().zip(hops).map(|((weight, _), size)| {
            let [scale, bound] = size.unwrap_or([f64::INFINITY, 0.0]);
            [weight / scale, bound]
        });
        let most_traffic = traffic.as_ref().map_or(0.0, |traffic| traffic.total as f64);
        // What one unit of every integer is worth, and the most there can be of it.
        let terms: Vec<[f64; 2]> = std::iter::once([quadratic / base_scale, base_bound])
            .chain(hops)
            .chain([
                [objective.t / (2.0 * base_scale), 2.0 * base_bound],
                [objective.max_link_load, most_traffic],
            ])
            .collect();
        let (factors, scale) = factors(&terms)?;
        let largest: f64 =
            factors.iter().zip(&terms).map(|(&factor, [_, bound])| factor as f64 * bound).sum();
        let factors = Values {
            quadratic: factors[0],
            hops: std::array::from_fn(|index| factors[1 + index]),
            share: factors[1 + HOPS],
            load: factors[2 + HOPS],
        };
        let has_sum = factors.quadratic > 0 || factors.hops.iter().any(|&factor| factor > 0);
        let tie = if has_sum { Tie { bits: 0, shift: 0 } } else { Tie::new(largest, base_bound) };
        Ok(Self { factors, traffic, tie, scale })
    }

    /// Whether T counts.
    pub(crate) fn counts_shares(&self) -> bool {
        self.factors.share > 0
    }

    /// The integer cost.
    pub(crate) fn cost(&self, values: &Values) -> i64 {
        let factors = &self.factors;
        let sum = factors.quadratic * values.quadratic
            + factors.hops.iter().zip(values.hops).map(|(factor, hops)| factor * hops).sum::<i64>()
            + factors.share * values.share
            + factors.load * values.load;
        match self.tie.bits {
            0 => sum,
            bits => (sum << bits) + (values.quadratic >> self.tie.shift),
        }
    }

    /// An integer cost in real units.
    pub(crate) fn real(&self, cost: i64) -> f64 {
        (cost >> self.tie.bits) as f64 / self.scale
    }
}

impl Tie {
    /// As many bits as fit beside costs of at most `largest`, for sums of at most `bound`.
    fn new(largest: f64, bound: f64) -> Self {
        let fitting = (0..=TIE_BITS).rev().find(|&bits| largest * f64::from(1u32 << bits) <= LIMIT);
        let bits = fitting.unwrap_or(0);
        let shift = (0..62).find(|&shift| bound < (1u64 << shift) as f64 * f64::from(1u32 << bits));
        Self { bits, shift: shift.unwrap_or(62) }
    }
}

/// Integers in the proportions of what values are worth, so that sums of at most so many fit, and what they are multiplied by; `terms`
/// are what each is worth and its bound.
///
/// The smallest ones that are exact to nine digits, or, if their sums would not fit, the largest ones whose sums do.
fn factors(terms: &[[f64; 2]]) -> Result<(Vec<i64>, f64), ObjectiveError> {
    let scaled = |scale: f64| terms.iter().map(move |[worth, _]| (worth * scale).round());
    let error = |scale: f64| {
        let counting = terms.iter().filter(|[worth, _]| *worth > 0.0);
        let errors = counting.map(|[worth, _]| (worth * scale).round() / (worth * scale) - 1.0);
        errors.fold(0.0, |largest: f64, error| largest.max(error.abs()))
    };
    let fits = |scale: f64| scaled(scale).zip(terms).map(|(f, [_, b])| f * b).sum::<f64>() <= LIMIT;
    let mut powers = (0..60).scan(1.0, |power, _| Some(std::mem::replace(power, *power * 10.0)));
    let exact = powers.by_ref().take_while(|&power| terms.iter().all(|[worth, _]| worth * power < LIMIT));
    if let Some(power) = exact.into_iter().find(|&power| error(power) <= 1e-9) {
        let whole: Vec<i64> = scaled(power).map(|factor| factor as i64).collect();
        let common = whole.iter().copied().fold(0, crate::distance::divisor).max(1);
        let scale = power / common as f64;
        if fits(scale) {
            return Ok((whole.into_iter().map(|factor| factor / common).collect(), scale));
        }
    }
    let real: f64 = terms.iter().map(|[worth, bound]| worth * bound).sum();
    let scale = 0.5 * LIMIT / real;
    let sound = scale.is_finite() && error(scale) <= PRECISION && fits(scale);
    if sound {
        Ok((scaled(scale).map(|factor| factor as i64).collect(), scale))
    } else {
        Err(ObjectiveError::new(
            "the metrics of the objective do not fit the 64-bit integers of the search with three digits of each weight",
            "leave out what hardly counts, bring the weights closer to each other, or give costs in a larger unit",
        ))
    }
}
