//! Kinds of groups: the kind of parallelism that a group of ranks serves, such as `tp` or `dp`.
//!
//! A program describes its process groups: Megatron-LM with the names in [`KINDS`], PyTorch's device meshes with
//! `mesh_` and the name of the dimension. What is unambiguous gets the names of `instance/parallel`.

/// Descriptions of Megatron-LM (`megatron/core/parallel_state.py`), and that of the group of all ranks in PyTorch. As
/// in `instance/parallel`, the ranks of a context-parallel group belong to a data-parallel one.
const KINDS: [(&str, &str); 9] = [
    ("TENSOR_MODEL_PARALLEL_GROUP", "tp"),
    ("CONTEXT_PARALLEL_GROUP", "cp"),
    ("EXPERT_MODEL_PARALLEL_GROUP", "ep"),
    ("EXPERT_TENSOR_PARALLEL_GROUP", "etp"),
    ("DATA_PARALLEL_GROUP", "dp"),
    ("DATA_PARALLEL_GROUP_WITH_CP", "dp"),
    ("EXPERT_DATA_PARALLEL_GROUP", "edp"),
    ("PIPELINE_MODEL_PARALLEL_GROUP", "pp"),
    ("default_pg", WORLD),
];
/// Kind of a group of all ranks.
const WORLD: &str = "world";
/// Kind of messages between two ranks of no described group.
pub(crate) const POINT_TO_POINT: &str = "p2p";
/// Most descriptions that are kinds.
pub(crate) const MOST_KINDS: usize = 64;
/// Longest name of a kind.
const LONGEST: usize = 64;

/// The kind of a group by its description, or else by its name, such as `tp0`. `None` if neither says it; PyTorch
/// describes groups as `undefined` if the program does not.
pub(crate) fn kind(description: Option<&str>, name: &str) -> Option<String> {
    if let Some(description) = description.filter(|text| !["", "undefined"].contains(text)) {
        return Some(known(description).map_or_else(|| readable(description), str::to_owned));
    }
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || "_-.".contains(letter));
    known(stem).map(str::to_owned)
}

/// The kind of a group that has no description: its size, and the distance of its ranks if it is always the same.
pub(crate) fn shape(members: &[u32], ranks: usize) -> String {
    if members.len() == ranks {
        return WORLD.to_owned();
    }
    let mut members = members.to_vec();
    members.sort_unstable();
    let mut strides = members.array_windows().map(|[one, next]| next - one);
    match strides.next().filter(|first| strides.all(|stride| stride == *first)) {
        Some(stride) => format!("size-{}-stride-{stride}", members.len()),
        None => format!("size-{}", members.len()),
    }
}

fn known(text: &str) -> Option<&'static str> {
    let text = text.strip_prefix("mesh_").unwrap_or(text);
    let is = |(description, kind): &&(&str, &str)| text == *description || text.eq_ignore_ascii_case(kind);
    KINDS.iter().find(is).map(|(_, kind)| *kind)
}

/// A description as a key of parameters, metrics and tables.
fn readable(description: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    description.chars().take(LONGEST).map(|letter| if is_plain(letter) { letter } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unambiguous_descriptions_get_short_names() {
        let described = |text| kind(Some(text), "5").unwrap();
        for (text, expected) in [
            ("EXPERT_MODEL_PARALLEL_GROUP", "ep"),
            ("DATA_PARALLEL_GROUP_WITH_CP", "dp"),
            ("mesh_tp", "tp"),
            ("EP", "ep"),
            ("default_pg", "world"),
            ("EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP", "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP"),
            ("mesh_dp_shard", "mesh_dp_shard"),
            ("mesh_dim_1", "mesh_dim_1"),
            ("my group, \"b\"\n", "my-group---b--"),
        ] {
            assert_eq!(described(text), expected, "{text}");
        }
        assert_eq!(kind(Some("undefined"), "7"), None);
        assert_eq!(kind(None, "tp12").as_deref(), Some("tp"));
        assert_eq!(kind(None, "Dp_3").as_deref(), Some("dp"));
        assert_eq!([kind(None, "step3"), kind(None, "12"), kind(None, "")], [None, None, None]);
    }

    #[test]
    fn groups_without_description_are_told_apart_by_size_and_stride() {
        let of = |members: &[u32]| shape(members, 8);
        assert_eq!(of(&[2, 3]), "size-2-stride-1");
        assert_eq!(of(&[6, 0, 4, 2]), "size-4-stride-2");
        assert_eq!(of(&[0, 1, 3]), "size-3");
        assert_eq!(of(&[5]), "size-1");
        assert_eq!(of(&[0, 1, 2, 3, 4, 5, 6, 7]), "world");
    }
}
