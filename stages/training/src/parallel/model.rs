//! Bytes of the groups of a transformer in one step.
//!
//! Notation: b sequences of s tokens in a micro-batch, m micro-batches, hidden size h, l = layers / pp layers of a
//! rank; t, c, e are tp, cp, ep. An activation of a micro-batch has A = b · s / c · h elements.
//!
//! | groups | operations in a step | source |
//! |---|---|---|
//! | `tp` | 4 all-reduces of A per layer and micro-batch: 2 forward, 2 backward. With sequence parallelism each is a reduce-scatter and an all-gather, of the same bytes | Shoeybi et al. 2019, section 3; Narayanan et al. 2021, section 3.2: 8 b s h (t − 1) / t; Korthikanti et al. 2022, section 4.2 |
//! | `cp` | all-gather of keys and values, 2 · b · s · `kv_hidden` / t elements per layer and micro-batch, around the ring: once forward, and with their gradients twice backward | Liu et al. 2023 (ring attention), section 3 |
//! | `pp` | A to the next stage per micro-batch and chunk, and as much back; A / t with sequence parallelism | Narayanan et al. 2021, sections 2.2 and 4.1 |
//! | `ep` | 4 all-to-alls of A · k / t per layer and micro-batch, for k experts per token: dispatch and combine, forward and backward | Lepikhin et al. 2020 (`GShard`), section 3.2; Rajbhandari et al. 2022, section 5 |
//! | `dp`, `edp` | Ψ gradients: all-reduce (`ZeRO` 0), or reduce-scatter and all-gather of Ψ parameters (1, 2), or reduce-scatter and two all-gathers per micro-batch (3) | Rajbhandari et al. 2020, section 7 |
//!
//! A rank has Ψ = l · (2 h² + 2 h · `kv_hidden`) / t parameters of attention, and l · 2 h f / t of the feed-forward
//! part, or l · (experts / e) · 2 h f / etp of experts, which `edp` reduces (Narayanan et al. 2021, equation 2,
//! without biases, embeddings and norms). Embeddings are left out: they are the same for every order of hosts but
//! for those of the first and the last stage.

use hopmap_collectives::Operation;

use super::messages::{GroupOperation, Pattern};
use super::params::{GroupAlgorithm, GroupAlgorithms, GroupBytes, ModelSize, ParallelParams};
use crate::error::TrainingError;

/// Kinds of groups in the order of their phases, with their operations.
pub(super) type Operations = [(&'static str, Vec<GroupOperation>); 6];

impl GroupBytes {
    pub(super) fn operations(&self, algorithms: GroupAlgorithms) -> Operations {
        let ring = GroupAlgorithm::Ring;
        let stages =
            GroupOperation { pattern: Pattern::Pipeline { is_cyclic: false }, bytes: self.pp, calls: 1 };
        [
            ("tp", vec![GroupOperation::once(Operation::AllReduce, algorithms.tp, self.tp)]),
            ("cp", vec![GroupOperation::once(Operation::AllGather, ring, self.cp)]),
            ("ep", vec![all_to_all(self.ep, 1)]),
            ("pp", vec![stages]),
            ("dp", vec![GroupOperation::once(Operation::AllReduce, algorithms.dp, self.dp)]),
            ("edp", vec![GroupOperation::once(Operation::AllReduce, algorithms.edp, self.edp)]),
        ]
    }
}

/// All-to-alls; the bytes are those of a member, its own share included.
fn all_to_all(bytes: u64, calls: u64) -> GroupOperation {
    let pattern = Pattern::Collective(Operation::AllToAll, GroupAlgorithm::Ring);
    GroupOperation { pattern, bytes, calls }
}

impl ModelSize {
    /// The operations of all kinds of groups.
    pub(super) fn operations(&self, params: &ParallelParams) -> Result<Operations, TrainingError> {
        self.check(params)?;
        let sizes = params.sizes;
        let [tp, cp, ep, etp] = [sizes.tp, sizes.cp, sizes.ep, sizes.etp.unwrap_or(sizes.tp)].map(u64::from);
        let of_rank = u64::from(self.layers / sizes.pp);
        let micro_batches = u64::from(self.micro_batches);
        let [h, precision] = [self.hidden, self.precision_bytes].map(u64::from);
        let kv = u64::from(self.kv_hidden.unwrap_or(self.hidden));
        let f = u64::from(self.feed_forward.unwrap_or(self.hidden.saturating_mul(4)));
        let tokens = [u64::from(self.micro_batch_size), u64::from(self.sequence)];
        // Bytes of `width` values of every token of a micro-batch.
        let activation =
            |width: u64, over: u64| quotient(&[tokens[0], tokens[1], width, precision], &[cp, over]);
        let split = if self.sequence_parallel { tp } else { 1 };
        let layer_calls = of_rank.saturating_mul(micro_batches);
        let chunks = u64::from(self.interleaving);
        let attention = quotient(&[of_rank, 2, h, h + kv], &[tp])?;
        let experts = u64::from(self.experts);
        let (dense, of_experts) = match experts {
            0 => (attention.saturating_add(quotient(&[of_rank, 2, h, f], &[tp])?), 0),
            _ => (attention, quotient(&[of_rank, experts, 2, h, f], &[ep, etp])?),
        };
        let routed = if experts == 0 { 0 } else { activation(h * u64::from(self.top_k), split)? };
        let call = |operation, algorithm, bytes, calls| GroupOperation {
            calls,
            ..GroupOperation::once(operation, algorithm, bytes)
        };
        let algorithms = params.algorithms;
        Ok([
            (
                "tp",
                vec![call(
                    Operation::AllReduce,
                    algorithms.tp,
                    activation(h, 1)?,
                    layer_calls.saturating_mul(4),
                )],
            ),
            (
                "cp",
                vec![call(
                    Operation::AllGather,
                    GroupAlgorithm::Ring,
                    quotient(&[tokens[0], tokens[1], 2 * kv, precision], &[tp])?,
                    layer_calls.saturating_mul(3),
                )],
            ),
            ("ep", vec![all_to_all(routed, layer_calls.saturating_mul(4))]),
            (
                "pp",
                vec![GroupOperation {
                    pattern: Pattern::Pipeline { is_cyclic: chunks > 1 },
                    bytes: activation(h, split)?,
                    calls: micro_batches.saturating_mul(chunks),
                }],
            ),
            ("dp", self.gradients(dense, algorithms.dp)?),
            ("edp", self.gradients(of_experts, algorithms.edp)?),
        ])
    }

    fn check(&self, params: &ParallelParams) -> Result<(), TrainingError> {
        let (sizes, algorithms) = (params.sizes, params.algorithms);
        let positive = [
            ("layers", self.layers),
            ("hidden", self.hidden),
            ("sequence", self.sequence),
            ("micro_batches", self.micro_batches),
            ("micro_batch_size", self.micro_batch_size),
            ("top_k", self.top_k),
            ("interleaving", self.interleaving),
            ("precision_bytes", self.precision_bytes),
            ("gradient_bytes", self.gradient_bytes),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(TrainingError::new(format!("`{name}` of the model is 0"), "give 1 or more"));
        }
        let chunks = u64::from(sizes.pp) * u64::from(self.interleaving);
        if !u64::from(self.layers).is_multiple_of(chunks) {
            let problem =
                format!("{} layers do not divide into {chunks} stages of the pipeline", self.layers);
            return Err(TrainingError::new(problem, "`layers` is a multiple of pp · interleaving"));
        }
        if self.experts == 0 && sizes.ep > 1 {
            let problem = format!("ep is {}, but the model has no experts", sizes.ep);
            return Err(TrainingError::new(problem, "set `experts` and `top_k` of the model"));
        }
        if self.experts > 0 && !self.experts.is_multiple_of(sizes.ep) {
            let problem = format!("{} experts do not divide among ep = {} ranks", self.experts, sizes.ep);
            return Err(TrainingError::new(problem, "`experts` is a multiple of `ep`"));
        }
        if self.zero > 3 {
            return Err(TrainingError::new(format!("`zero` is {}", self.zero), "ZeRO has the stages 0 to 3"));
        }
        if self.zero > 0 && [algorithms.dp, algorithms.edp].contains(&GroupAlgorithm::Tree) {
            let problem =
                "a tree is an algorithm of all-reduces, but ZeRO uses reduce-scatters and all-gathers";
            return Err(TrainingError::new(problem, "omit `algorithms`, or set `zero = 0`"));
        }
        Ok(())
    }

    /// The reduction of gradients, and the collection of parameters.
    fn gradients(
        &self,
        parameters: u64,
        algorithm: GroupAlgorithm,
    ) -> Result<Vec<GroupOperation>, TrainingError> {
        let reduced = quotient(&[parameters, u64::from(self.gradient_bytes)], &[])?;
        let gathered = quotient(&[parameters, u64::from(self.precision_bytes)], &[])?;
        let ring = |operation, bytes| GroupOperation::once(operation, GroupAlgorithm::Ring, bytes);
        let scatter = ring(Operation::ReduceScatterBlock, reduced);
        Ok(match self.zero {
            0 => vec![GroupOperation::once(Operation::AllReduce, algorithm, reduced)],
            1 | 2 => vec![scatter, ring(Operation::AllGather, gathered)],
            _ => {
                let calls = 2 * u64::from(self.micro_batches);
                vec![scatter, GroupOperation { calls, ..ring(Operation::AllGather, gathered) }]
            }
        })
    }
}

/// A quotient of products, rounded up.
fn quotient(factors: &[u64], divisors: &[u64]) -> Result<u64, TrainingError> {
    let product = factors.iter().try_fold(1u128, |all, &factor| all.checked_mul(u128::from(factor)));
    let divisor: u128 = divisors.iter().map(|&divisor| u128::from(divisor)).product();
    product
        .and_then(|product| u64::try_from(product.div_ceil(divisor)).ok())
        .ok_or_else(TrainingError::too_many_bytes)
}
