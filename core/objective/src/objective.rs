//! Objective functions, and their integer form beyond one quadratic form.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopmap_model::Weight;

use crate::error::ObjectiveError;
use crate::maximum::{Maximum, Smoothing};
use crate::quality::{self, Metric};
use crate::traffic::{LinkCosts, LinkLoads, LoadUnit, Traffic};

/// How a metric is computed from a mapping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// Sum over pairs of ranks of weight times cost.
    Costs,
    /// The largest contribution of a rank to that sum.
    LargestShare,
    /// Sum over pairs of ranks of a weight times hops.
    Hops(Weight),
    /// The largest load of a directed link.
    LargestLoad(LoadUnit),
}

impl Form {
    /// Whether it depends only on the costs between slots.
    const fn is_of_costs(&self) -> bool {
        matches!(self, Self::Costs | Self::LargestShare)
    }

    const fn is_of_hops(&self) -> bool {
        matches!(self, Self::Hops(_))
    }

    const fn is_of_loads(&self) -> bool {
        matches!(self, Self::LargestLoad(_))
    }

    /// Whether it is a maximum instead of a sum.
    const fn is_maximum(&self) -> bool {
        matches!(self, Self::LargestShare | Self::LargestLoad(_))
    }
}

/// Declares [`Objective`] from a table of metrics: name, metric and form.
macro_rules! objectives {
    ($($(#[$doc:meta])* $field:ident, $alone:ident, $name:literal, $metric:expr, $form:expr;)*) => {
        /// Objective function: a weighted sum of the metrics of [`Quality`](crate::Quality) in their units.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Objective {
            $($(#[$doc])* pub $field: f64,)*
        }

        impl Objective {
            /// The names of the metrics in parameters.
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
    max_link_load, MAX_LINK_LOAD, "max-link-load", quality::MAX_LINK_LOAD, Form::LargestLoad(LoadUnit::Bytes);
    /// The time of the busiest directed link: bytes divided by bandwidth.
    max_link_time, MAX_LINK_TIME, "max-link-time", quality::MAX_LINK_TIME, Form::LargestLoad(LoadUnit::Seconds);
}

/// Number of sums of hops, and of largest loads.
pub(crate) const HOPS: usize = counted().0;
pub(crate) const LOADS: usize = counted().1;

const fn counted() -> (usize, usize) {
    let (mut index, mut hops, mut loads) = (0, 0, 0);
    while index < COUNT {
        hops += FORMS[index].is_of_hops() as usize;
        loads += FORMS[index].is_of_loads() as usize;
        index += 1;
    }
    (hops, loads)
}

impl Objective {
    /// Checks that weights are finite and not negative, and that at least one is positive.
    pub fn check(&self) -> Result<(), ObjectiveError> {
        let weights = self.weights();
        if let Some(&weight) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
            let problem = format!("a weight of the objective is {weight}");
            return Err(ObjectiveError::new(problem, "weights must be finite and not negative"));
        }
        match weights.iter().all(|&weight| weight == 0.0) {
            true => {
                let [names @ .., last] = Self::NAMES;
                let help = format!("set a weight for at least one of {} and {last}", names.join(", "));
                Err(ObjectiveError::new("no metric of the objective has a weight above zero", help))
            }
            false => Ok(()),
        }
    }

    /// The objective value of these metrics; `None` if one with a weight is missing.
    #[must_use]
    pub fn of_metrics(&self, metrics: &BTreeMap<String, f64>) -> Option<f64> {
        let counting = Self::METRICS.iter().zip(self.weights()).filter(|(_, weight)| *weight != 0.0);
        counting.map(|(metric, weight)| Some(weight * metrics.get(metric.name)?)).sum()
    }

    /// The positive weights of metrics of a form.
    fn counting(&self, is_so: fn(&Form) -> bool) -> impl Iterator<Item = f64> {
        let all = FORMS.into_iter().zip(self.weights());
        all.filter(move |(form, weight)| is_so(form) && *weight > 0.0).map(|(_, weight)| weight)
    }

    /// The weight of F if the objective is only a sum over pairs.
    pub(crate) fn only_sum(&self) -> Option<f64> {
        let mut all = self.counting(|_| true);
        let first = all.next().filter(|_| all.next().is_none())?;
        self.counting(Form::is_maximum).next().is_none().then_some(first)
    }

    /// Whether a single metric counts.
    pub(crate) fn is_single(&self) -> bool {
        self.counting(|_| true).count() == 1
    }

    /// Whether it depends only on the costs between slots.
    pub(crate) fn counts_costs(&self) -> bool {
        self.counting(Form::is_of_costs).next().is_some()
    }

    /// Its sums of hops: the weight of each, and the weight of pairs in it.
    pub(crate) fn hops(&self) -> [(f64, Weight); HOPS] {
        let all = FORMS.into_iter().zip(self.weights());
        let mut hops = all.filter_map(|(form, weight)| match form {
            Form::Hops(of) => Some((weight, of)),
            Form::Costs | Form::LargestShare | Form::LargestLoad(_) => None,
        });
        std::array::from_fn(|_| hops.next().unwrap_or_default())
    }

    /// Its largest loads: the weight and the unit of each.
    pub(crate) fn loads(&self) -> [(f64, LoadUnit); LOADS] {
        let all = FORMS.into_iter().zip(self.weights());
        let mut loads = all.filter_map(|(form, weight)| match form {
            Form::LargestLoad(unit) => Some((weight, unit)),
            Form::Costs | Form::LargestShare | Form::Hops(_) => None,
        });
        std::array::from_fn(|_| loads.next().unwrap_or_default())
    }
}

impl Default for Objective {
    fn default() -> Self {
        Self::F
    }
}

/// Bound of the integer cost of any mapping.
const LIMIT: f64 = (1u64 << 60) as f64;
/// Largest relative error of an integer factor if exact ones do not fit.
const PRECISION: f64 = 1e-3;
/// Maximum bits of a cost for tie-breaking.
const TIE_BITS: u32 = 20;

/// Terms of the cost in addition to the quadratic form of the problem.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// Factor of every value.
    factors: Values,
    /// Traffic over links, if the busiest link counts.
    pub(crate) traffic: Option<Arc<Traffic>>,
    /// What a byte costs on every link, for each largest load that counts.
    pub(crate) loads: [Option<LinkCosts>; LOADS],
    /// Bounds of twice T, of every largest load, and of the integer cost.
    share_bound: f64,
    load_bounds: [f64; LOADS],
    bound: f64,
    tie: Tie,
    /// Whether norms replace maxima.
    smoothing: Option<Smoothing>,
    /// Divisor that converts the sum to real units.
    pub(crate) scale: f64,
}

/// Integer metrics of a mapping, or their factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Values {
    /// F, or a sum of hops if neither F nor T counts.
    pub(crate) quadratic: i64,
    /// Additional sums of hops.
    pub(crate) hops: [i64; HOPS],
    /// Twice T.
    pub(crate) share: i64,
    /// Largest loads of a link.
    pub(crate) loads: [i64; LOADS],
}

/// The maximum that an objective consists of: the largest of the contributions of all ranks to the quadratic
/// form, each counted twice, or the largest load of a link.
#[derive(Debug, Clone, Copy)]
pub struct OnlyMaximum<'p> {
    /// The loads, if these count.
    pub loads: Option<LinkLoads<'p>>,
    /// Objective value of one unit of the integer maximum.
    pub unit: f64,
}

/// Tie-break for maxima, which many mappings share: the lowest bits hold the highest bits of the related sum.
#[derive(Debug, Clone, Copy)]
struct Tie {
    bits: u32,
    shift: u32,
}

impl Terms {
    /// Builds the terms of an objective from the weight, scale and bound of its quadratic form, and the
    /// scales and bounds of further sums of hops. There is traffic if a load counts.
    pub(crate) fn new(
        objective: &Objective,
        quadratic: f64,
        [base_scale, base_bound]: [f64; 2],
        hops: [Option<[f64; 2]>; HOPS],
        traffic: Option<Arc<Traffic>>,
        loads: [Option<LinkCosts>; LOADS],
    ) -> Result<Self, ObjectiveError> {
        let hops = objective.hops().into_iter().zip(hops).map(|((weight, _), size)| {
            let [scale, bound] = size.unwrap_or([f64::INFINITY, 0.0]);
            [weight / scale, bound]
        });
        let total = traffic.as_ref().map_or(0.0, |traffic| traffic.total as f64);
        let sizes = loads.each_ref().map(|costs| costs.as_ref().map_or([1.0, 0.0], LinkCosts::size));
        let loaded = objective.loads().into_iter().zip(sizes);
        let loaded = loaded.map(|((weight, _), [scale, largest])| [weight / scale, largest * total]);
        // Value of one unit of every integer, and its maximum.
        let terms: Vec<[f64; 2]> = std::iter::once([quadratic / base_scale, base_bound])
            .chain(hops)
            .chain([[objective.t / (2.0 * base_scale), 2.0 * base_bound]])
            .chain(loaded)
            .collect();
        let (factors, scale) = factors(&terms)?;
        let largest: f64 =
            factors.iter().zip(&terms).map(|(&factor, [_, bound])| factor as f64 * bound).sum();
        let factors = Values {
            quadratic: factors[0],
            hops: std::array::from_fn(|index| factors[1 + index]),
            share: factors[1 + HOPS],
            loads: std::array::from_fn(|index| factors[2 + HOPS + index]),
        };
        let has_sum = factors.quadratic > 0 || factors.hops.iter().any(|&factor| factor > 0);
        let tie = if has_sum { Tie { bits: 0, shift: 0 } } else { Tie::new(largest, base_bound) };
        let load_bounds = std::array::from_fn(|index| terms[2 + HOPS + index][1]);
        let (share_bound, bound) = (2.0 * base_bound, largest);
        Ok(Self { factors, traffic, loads, share_bound, load_bounds, bound, tie, smoothing: None, scale })
    }

    /// The same with norms of exponent 2^`doublings` in place of maxima; `None` if there are no maxima.
    pub(crate) fn smoothed(&self, doublings: u32) -> Option<Self> {
        let has_maxima = self.counts_shares() || self.traffic.is_some();
        let tie = Tie { shift: 62, ..Tie::new(self.bound, self.bound) };
        let smoothing = Some(Smoothing { doublings, bits: tie.bits });
        has_maxima.then(|| Self { tie, smoothing, ..self.clone() })
    }

    /// Whether T counts.
    pub(crate) fn counts_shares(&self) -> bool {
        self.factors.share > 0
    }

    /// The largest of the contributions of all ranks, each counted twice.
    pub(crate) fn largest_share(&self, shares: &[i64]) -> Maximum {
        Maximum::new(shares, self.smoothing, self.share_bound)
    }

    /// Loads of all links, for each largest load that counts.
    pub(crate) fn largest_loads(&self, slots: &[u32]) -> [Option<Maximum>; LOADS] {
        let bytes = self.traffic.as_ref().map_or_else(Vec::new, |traffic| traffic.loads(slots));
        let mut bounds = self.load_bounds.into_iter();
        self.loads.each_ref().map(|costs| {
            let bound = bounds.next().unwrap_or_default();
            Some(Maximum::new(&costs.as_ref()?.of_all(&bytes), self.smoothing, bound))
        })
    }

    /// The maximum that alone counts, if there is one.
    pub(crate) fn only_maximum(&self) -> Option<OnlyMaximum<'_>> {
        let Values { quadratic, hops, share, loads } = self.factors;
        let has_sum = quadratic > 0 || hops.iter().any(|&factor| factor > 0);
        let mut counting = loads.iter().zip(&self.loads).filter(|(factor, _)| **factor > 0);
        let loads = counting.next().and_then(|(factor, costs)| {
            let loads = LinkLoads { traffic: self.traffic.as_deref()?, costs: costs.as_ref()? };
            Some((*factor, loads))
        });
        let is_one = !has_sum && counting.next().is_none() && loads.is_some() != (share > 0);
        let factor = loads.map_or(share, |(factor, _)| factor);
        is_one.then(|| OnlyMaximum { loads: loads.map(|(_, loads)| loads), unit: factor as f64 / self.scale })
    }

    /// The integer cost.
    pub(crate) fn cost(&self, values: &Values) -> i64 {
        let factors = &self.factors;
        let sums = factors.quadratic * values.quadratic
            + factors.hops.iter().zip(values.hops).map(|(factor, hops)| factor * hops).sum::<i64>();
        let maxima = factors.share * values.share
            + factors.loads.iter().zip(values.loads).map(|(factor, load)| factor * load).sum::<i64>();
        match self.tie.bits {
            bits if self.smoothing.is_some() => (sums << bits) + maxima,
            0 => sums + maxima,
            bits => ((sums + maxima) << bits) + (values.quadratic >> self.tie.shift),
        }
    }

    /// An integer cost in real units.
    pub(crate) fn real(&self, cost: i64) -> f64 {
        (cost >> self.tie.bits) as f64 / self.scale
    }
}

impl Tie {
    /// Tie-break bits that fit next to costs of at most `largest`, for sums of at most `bound`.
    fn new(largest: f64, bound: f64) -> Self {
        let fitting = (0..=TIE_BITS).rev().find(|&bits| largest * f64::from(1u32 << bits) <= LIMIT);
        let bits = fitting.unwrap_or(0);
        let shift = (0..62).find(|&shift| bound < (1u64 << shift) as f64 * f64::from(1u32 << bits));
        Self { bits, shift: shift.unwrap_or(62) }
    }
}

/// Integer factors proportional to the values of units, so that sums fit, and their scale; `terms` are the
/// value and bound of each.
///
/// The smallest factors exact to nine digits or, if their sums would overflow, the largest ones that fit.
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
        let integers: Vec<i64> = scaled(power).map(|factor| factor as i64).collect();
        let common = integers.iter().copied().fold(0, crate::distance::divisor).max(1);
        let scale = power / common as f64;
        if fits(scale) {
            return Ok((integers.into_iter().map(|factor| factor / common).collect(), scale));
        }
    }
    // A metric that is always zero still needs a factor.
    let real: f64 = terms.iter().map(|[worth, bound]| worth * bound.max(1.0)).sum();
    let scale = 0.5 * LIMIT / real;
    let valid = scale.is_finite() && error(scale) <= PRECISION && fits(scale);
    if valid {
        Ok((scaled(scale).map(|factor| factor as i64).collect(), scale))
    } else {
        Err(ObjectiveError::new(
            "the metrics of the objective do not fit the 64-bit integers of the search with three digits of each weight",
            "omit metrics with negligible weight, use weights of similar size, or use a larger unit for costs",
        ))
    }
}
