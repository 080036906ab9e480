//! What a search minimises, and objectives other than one quadratic form as integers.

use crate::ObjectiveError;
use crate::traffic::Traffic;

/// What a search minimises: a weighted sum of metrics in their units, those of [`Quality`](crate::Quality).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// Weight of F.
    pub f: f64,
    /// Weight of T.
    pub t: f64,
    /// Weight of hop-bytes.
    pub hop_bytes: f64,
    /// Weight of the bytes over the busiest directed link.
    pub max_link_load: f64,
}

impl Objective {
    const NOTHING: Self = Self { f: 0.0, t: 0.0, hop_bytes: 0.0, max_link_load: 0.0 };
    /// F alone.
    pub const F: Self = Self { f: 1.0, ..Self::NOTHING };
    /// T alone.
    pub const T: Self = Self { t: 1.0, ..Self::NOTHING };
    /// Hop-bytes alone.
    pub const HOP_BYTES: Self = Self { hop_bytes: 1.0, ..Self::NOTHING };
    /// The bytes over the busiest directed link alone.
    pub const MAX_LINK_LOAD: Self = Self { max_link_load: 1.0, ..Self::NOTHING };

    /// Checks that weights are finite and not negative, and that some metric counts.
    pub fn check(&self) -> Result<(), ObjectiveError> {
        let weights = [self.f, self.t, self.hop_bytes, self.max_link_load];
        if let Some(&weight) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
            let problem = format!("a weight of the objective is {weight}");
            return Err(ObjectiveError::new(problem, "weights are finite and zero or more"));
        }
        match weights.iter().all(|&weight| weight == 0.0) {
            true => Err(ObjectiveError::new(
                "no metric of the objective has a weight above zero",
                "give at least one of F, T, hop-bytes and max-link-load a weight",
            )),
            false => Ok(()),
        }
    }

    /// Whether what it counts follows from the cost between slots alone.
    pub(crate) fn counts_costs(&self) -> bool {
        self.f > 0.0 || self.t > 0.0
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
    /// F, or hop-bytes if neither F nor T counts.
    pub(crate) quadratic: i64,
    /// Hop-bytes beside F or T.
    pub(crate) hops: i64,
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
    /// The terms of an objective, of the scale and the bound of the integers of F and, where they count beside it, of hop-bytes.
    pub(crate) fn new(
        objective: &Objective,
        [base_scale, base_bound]: [f64; 2],
        hops: Option<[f64; 2]>,
        traffic: Option<Traffic>,
    ) -> Result<Self, ObjectiveError> {
        let quadratic = if objective.counts_costs() { objective.f } else { objective.hop_bytes };
        let [hop_scale, hop_bound] = hops.unwrap_or([f64::INFINITY, 0.0]);
        // What one unit of every integer is worth, and the most there can be of it.
        let worth = [
            quadratic / base_scale,
            objective.hop_bytes / hop_scale,
            objective.t / (2.0 * base_scale),
            objective.max_link_load,
        ];
        let most_traffic = traffic.as_ref().map_or(0.0, |traffic| traffic.total as f64);
        let bounds = [base_bound, hop_bound, 2.0 * base_bound, most_traffic];
        let (factors, scale) = factors(worth, bounds)?;
        let largest: f64 = factors.iter().zip(bounds).map(|(&factor, bound)| factor as f64 * bound).sum();
        let [quadratic, hops, share, load] = factors;
        let has_sum = quadratic > 0 || hops > 0;
        let tie = if has_sum { Tie { bits: 0, shift: 0 } } else { Tie::new(largest, base_bound) };
        Ok(Self { factors: Values { quadratic, hops, share, load }, traffic, tie, scale })
    }

    /// Whether T counts.
    pub(crate) fn counts_shares(&self) -> bool {
        self.factors.share > 0
    }

    /// The integer cost.
    pub(crate) fn cost(&self, values: &Values) -> i64 {
        let factors = &self.factors;
        let sum = factors.quadratic * values.quadratic
            + factors.hops * values.hops
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

/// Integers in the proportions of what values are `worth`, so that sums of so many fit, and what they are multiplied by.
///
/// The smallest ones that are exact to nine digits, or, if their sums would not fit, the largest ones whose sums do.
fn factors(worth: [f64; 4], bounds: [f64; 4]) -> Result<([i64; 4], f64), ObjectiveError> {
    let scaled = |scale: f64| worth.map(|worth| (worth * scale).round());
    let error = |scale: f64| {
        let errors = worth
            .map(|worth| if worth > 0.0 { (worth * scale).round() / (worth * scale) - 1.0 } else { 0.0 });
        errors.into_iter().fold(0.0, |largest: f64, error| largest.max(error.abs()))
    };
    let fits = |scale: f64| scaled(scale).into_iter().zip(bounds).map(|(f, b)| f * b).sum::<f64>() <= LIMIT;
    let mut powers = (0..60).scan(1.0, |power, _| Some(std::mem::replace(power, *power * 10.0)));
    let exact = powers.by_ref().take_while(|&power| worth.iter().all(|worth| worth * power < LIMIT));
    if let Some(power) = exact.into_iter().find(|&power| error(power) <= 1e-9) {
        let whole = scaled(power).map(|factor| factor as i64);
        let common = whole.into_iter().fold(0, crate::distance::divisor).max(1);
        let scale = power / common as f64;
        if fits(scale) {
            return Ok((whole.map(|factor| factor / common), scale));
        }
    }
    let real: f64 = worth.iter().zip(bounds).map(|(worth, bound)| worth * bound).sum();
    let scale = 0.5 * LIMIT / real;
    let sound = scale.is_finite() && error(scale) <= PRECISION && fits(scale);
    if sound {
        Ok((scaled(scale).map(|factor| factor as i64), scale))
    } else {
        Err(ObjectiveError::new(
            "the metrics of the objective do not fit the 64-bit integers of the search with three digits of each weight",
            "leave out what hardly counts, bring the weights closer to each other, or give costs in a larger unit",
        ))
    }
}
