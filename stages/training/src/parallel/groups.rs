//! The groups of a training job, numbered as in Megatron-LM.
//!
//! Source: `RankGenerator` and `initialize_model_parallel` in `megatron/core/parallel_state.py`. A rank is a number
//! with mixed radices: rank = Σ coordinate · stride, and the stride of a dimension is the product of the sizes
//! before it in the order. There are two such numberings of the same ranks. The one of most layers has the
//! dimensions tp, cp, dp and pp; that of expert layers has etp, ep, edp and pp in the places of tp, ep, dp and
//! pp, and no cp. So an expert-parallel group is made of ranks of different data- and context-parallel groups.

use super::params::GroupSizes;
use crate::error::{MAX_RANKS, TrainingError};

const TP: usize = 0;
const CP: usize = 1;
const EP: usize = 2;
const DP: usize = 3;
const PP: usize = 4;
/// Names of the dimensions in an order.
const NAMES: [&str; 5] = ["tp", "cp", "ep", "dp", "pp"];
const HINT: &str = "such as `sizes = { tp = 8, pp = 4, dp = 16, ep = 8 }`";

/// The numbering of the ranks of a training job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankOrder {
    ranks: u32,
    /// Of layers without experts, and of layers with experts.
    dense: Radices,
    expert: Radices,
}

/// Sizes and strides by dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Radices {
    sizes: [u32; 5],
    strides: [u32; 5],
}

impl Radices {
    /// The product of the sizes is a valid number of ranks.
    fn new(sizes: [u32; 5], order: &[usize; 5]) -> Self {
        let mut strides = [1; 5];
        let mut stride = 1;
        for &dimension in order {
            strides[dimension] = stride;
            stride *= sizes[dimension];
        }
        Self { sizes, strides }
    }

    fn coordinate(&self, rank: u32, dimension: usize) -> u32 {
        rank / self.strides[dimension] % self.sizes[dimension]
    }

    /// Ranks that differ only in some dimensions, in ascending order of the first one of each group.
    fn groups(&self, ranks: u32, dimensions: &[usize]) -> Vec<Vec<u32>> {
        let is_first =
            |&rank: &u32| dimensions.iter().all(|&dimension| self.coordinate(rank, dimension) == 0);
        let mut dimensions = dimensions.to_vec();
        dimensions.sort_by_key(|&dimension| self.strides[dimension]);
        let members = |first: u32| {
            dimensions.iter().fold(vec![first], |members, &dimension| {
                let steps = (0..self.sizes[dimension]).map(|step| step * self.strides[dimension]);
                steps.flat_map(|step| members.iter().map(move |member| member + step)).collect()
            })
        };
        (0..ranks).filter(is_first).map(members).collect()
    }
}

impl RankOrder {
    /// The numbering for sizes of groups and an order of the dimensions such as `tp-cp-ep-dp-pp`.
    pub fn new(sizes: &GroupSizes, order: &str) -> Result<Self, TrainingError> {
        let &GroupSizes { tp, cp, ep, dp, pp, etp } = sizes;
        let etp = etp.unwrap_or(tp);
        let named = [("tp", tp), ("cp", cp), ("ep", ep), ("dp", dp), ("pp", pp), ("etp", etp)];
        if let Some((name, _)) = named.iter().find(|(_, size)| *size == 0) {
            return Err(TrainingError::new(format!("the size of `{name}` is 0"), HINT));
        }
        let product =
            |sizes: &[u32]| sizes.iter().fold(1u64, |all, &size| all.saturating_mul(u64::from(size)));
        let ranks = product(&[tp, cp, dp, pp]);
        if ranks > u64::from(MAX_RANKS) {
            let problem = format!("tp {tp} × cp {cp} × dp {dp} × pp {pp} are more than 1048576 ranks");
            return Err(TrainingError::new(problem, HINT));
        }
        let replica = product(&[etp, ep, pp]);
        if !ranks.is_multiple_of(replica) {
            let problem =
                format!("{ranks} ranks are not divisible by etp {etp} × ep {ep} × pp {pp} = {replica}");
            let help = "experts are spread over the data- and context-parallel ranks: let `ep` divide cp · dp · tp / etp";
            return Err(TrainingError::new(problem, help));
        }
        let (ranks, edp) = (ranks as u32, (ranks / replica) as u32);
        let order = dimensions(order, [tp, cp, ep, dp, pp])?;
        let dense = Radices::new([tp, cp, 1, dp, pp], &order);
        let expert = Radices::new([etp, 1, ep, edp, pp], &order);
        if pp > 1 && ep > 1 && dense.strides[PP] != expert.strides[PP] {
            let problem = "layers with and without experts would have different pipelines";
            let help = "let `pp` be the last in `order`, or let both kinds of layers have as many replicas";
            return Err(TrainingError::new(problem, help));
        }
        Ok(Self { ranks, dense, expert })
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The groups of a kind: `tp`, `cp`, `ep`, `pp`, `dp` (with the ranks of context parallelism, which hold the
    /// same parameters) or `edp` (replicas of the same experts); none of an unknown kind. Ranks are in the order
    /// of their ranks in the group.
    #[must_use]
    pub fn groups(&self, kind: &str) -> Vec<Vec<u32>> {
        let (radices, dimensions): (_, &[usize]) = match kind {
            "tp" => (&self.dense, &[TP]),
            "cp" => (&self.dense, &[CP]),
            "pp" => (&self.dense, &[PP]),
            "dp" => (&self.dense, &[CP, DP]),
            "ep" => (&self.expert, &[EP]),
            "edp" => (&self.expert, &[DP]),
            _ => return Vec::new(),
        };
        radices.groups(self.ranks, dimensions)
    }
}

/// The dimensions of an order, fastest first. Those that it omits follow, and must have size 1.
fn dimensions(order: &str, sizes: [u32; 5]) -> Result<[usize; 5], TrainingError> {
    let help = "name every dimension once, fastest first: `tp-cp-ep-dp-pp`";
    let mut found = Vec::new();
    for word in order.split('-') {
        let Some(dimension) = NAMES.iter().position(|name| name.eq_ignore_ascii_case(word)) else {
            let problem = format!("`{word}` in order `{order}` is none of tp, cp, ep, dp and pp");
            return Err(TrainingError::new(problem, help));
        };
        if found.contains(&dimension) {
            return Err(TrainingError::new(format!("order `{order}` has `{word}` twice"), help));
        }
        found.push(dimension);
    }
    for (dimension, name) in NAMES.iter().enumerate() {
        if found.contains(&dimension) {
            continue;
        }
        if sizes[dimension] > 1 {
            let problem = format!("order `{order}` lacks `{name}`, whose size is {}", sizes[dimension]);
            return Err(TrainingError::new(problem, help));
        }
        found.push(dimension);
    }
    found.try_into().map_err(|_| TrainingError::new(format!("order `{order}` is not complete"), help))
}
