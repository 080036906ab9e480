//! Parameters of `instance/parallel`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `instance/parallel`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParallelParams {
    /// Sizes of the groups, 1 by default: `tp` (tensor), `cp` (context), `dp` (data) and `pp` (pipeline) give
    /// tp · cp · dp · pp ranks. `ep` (experts) divides these ranks again, with `etp` tensor-parallel ranks
    /// for each expert, by default `tp`: expert layers have ranks / (etp · ep · pp) replicas.
    #[serde(default)]
    pub sizes: GroupSizes,
    /// Order in which ranks are numbered, fastest first, as `order` in Megatron-LM.
    #[serde(default = "megatron_order")]
    pub order: String,
    /// Ranks on each host: consecutive ones, as `torchrun` and Slurm start them. The mappers keep them together
    /// with `blocks = "host"`.
    #[serde(default = "hopmap_model::number::<8, u32>")]
    pub gpus_per_host: u32,
    /// Bytes of each kind of group in a step; or else `model`.
    #[serde(default)]
    pub bytes: Option<GroupBytes>,
    /// Size of the model, from which the bytes follow; or else `bytes`.
    #[serde(default)]
    pub model: Option<ModelSize>,
    /// Algorithms of all-reduces: `ring` (default) or `tree`, the double binary tree of NCCL.
    #[serde(default)]
    pub algorithms: GroupAlgorithms,
}

hopmap_model::parameters! {
    /// Sizes of the groups.
    #[derive(Copy, Eq)]
    pub struct GroupSizes {
        /// Tensor parallelism.
        pub tp: u32 = 1,
        /// Context parallelism.
        pub cp: u32 = 1,
        /// Expert parallelism.
        pub ep: u32 = 1,
        /// Data parallelism, of the layers without experts.
        pub dp: u32 = 1,
        /// Pipeline parallelism.
        pub pp: u32 = 1,
        /// Tensor parallelism of each expert; by default `tp`.
        pub etp: Option<u32>,
    }
}

/// Bytes of groups in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GroupBytes {
    /// Vectors that a tensor-parallel group all-reduces.
    pub tp: u64,
    /// Keys and values that a context-parallel group all-gathers around its ring.
    pub cp: u64,
    /// What a rank hands to the all-to-alls of its expert-parallel group, its own share included.
    pub ep: u64,
    /// Gradients that a data-parallel group all-reduces; ranks of a context-parallel group belong to it.
    pub dp: u64,
    /// Gradients of experts that a group of replicas of the same experts all-reduces.
    pub edp: u64,
    /// Activations that a rank sends to the next stage; as many bytes of gradients come back.
    pub pp: u64,
}

/// Size of a transformer, and how a step trains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSize {
    /// Layers; a multiple of `pp` · `interleaving`.
    pub layers: u32,
    /// Hidden size.
    pub hidden: u32,
    /// Tokens of a sequence.
    pub sequence: u32,
    /// Micro-batches of every pipeline in a step.
    pub micro_batches: u32,
    /// Sequences of a micro-batch.
    #[serde(default = "hopmap_model::number::<1, u32>")]
    pub micro_batch_size: u32,
    /// Size of keys and of values, smaller than `hidden` with grouped queries; by default `hidden`.
    #[serde(default)]
    pub kv_hidden: Option<u32>,
    /// Size between the two matrices of the feed-forward part, of every expert if there are experts; by default
    /// 4 · `hidden`.
    #[serde(default)]
    pub feed_forward: Option<u32>,
    /// Experts of every layer, a multiple of `ep`; 0 for a dense model.
    #[serde(default)]
    pub experts: u32,
    /// Experts of every token.
    #[serde(default = "hopmap_model::number::<1, u32>")]
    pub top_k: u32,
    /// Model chunks of every rank in an interleaved pipeline.
    #[serde(default = "hopmap_model::number::<1, u32>")]
    pub interleaving: u32,
    /// Bytes of an activation or a parameter: 2 for bf16.
    #[serde(default = "hopmap_model::number::<2, u32>")]
    pub precision_bytes: u32,
    /// Bytes of a gradient: 4 if gradients are reduced in fp32.
    #[serde(default = "hopmap_model::number::<4, u32>")]
    pub gradient_bytes: u32,
    /// Stage of `ZeRO`, 0 to 3. 1 is the distributed optimizer of Megatron-LM, 3 is FSDP.
    #[serde(default)]
    pub zero: u8,
    /// Whether the ranks of a tensor-parallel group split the sequence outside of their matrices.
    #[serde(default = "yes")]
    pub sequence_parallel: bool,
}

/// Algorithms of the all-reduces of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GroupAlgorithms {
    /// Of tensor-parallel groups.
    pub tp: GroupAlgorithm,
    /// Of data-parallel groups.
    pub dp: GroupAlgorithm,
    /// Of replicas of experts.
    pub edp: GroupAlgorithm,
}

/// Algorithm of an all-reduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupAlgorithm {
    /// Around a ring, in the order of ranks.
    #[default]
    Ring,
    /// Up and down two complementary binary trees, each with half of the vector.
    Tree,
}

fn megatron_order() -> String {
    "tp-cp-ep-dp-pp".to_owned()
}

fn yes() -> bool {
    true
}
