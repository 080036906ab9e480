//! Nodes by the patterns that match them.

use std::collections::BTreeSet;

use glob::Pattern;
use hopmap_model::NodeKind;

/// Names that are listed instead of a pattern.
const MOST_SHOWN: usize = 9;

/// An adapter, a host without adapters, or a switch.
pub(in crate::import) struct Member<'a> {
    pub(in crate::import) kind: NodeKind,
    /// The first adapter of the same host, or the node itself.
    pub(in crate::import) host: usize,
    /// Of the host or switch.
    pub(in crate::import) name: &'a str,
    pub(in crate::import) address: &'a str,
    /// What patterns are compared with as well; may be empty.
    pub(in crate::import) others: [&'a str; 2],
}

/// A pattern for names, and the same for addresses.
pub(super) type Patterns = [Pattern; 2];

/// Patterns that match these switches and nothing else: what their names begin with, or the names, as far as they can be listed.
pub(super) fn patterns_of(nodes: &[Member<'_>], switches: &[usize]) -> String {
    let names: Vec<&str> = switches.iter().map(|&node| nodes[node].name).collect();
    let first = names.first().copied().unwrap_or_default();
    let is_common = |end: &usize| names.iter().all(|name| name.starts_with(&first[..*end]));
    let end = (1..=first.len()).rev().filter(|&end| first.is_char_boundary(end)).find(is_common);
    let pattern = end.map(|end| Pattern::escape(&first[..end]) + "*").filter(|_| names.len() > 1);
    let own: BTreeSet<usize> = switches.iter().copied().collect();
    let is_exact = |text: &String| {
        let patterns = patterns(std::slice::from_ref(text));
        (0..nodes.len()).all(|node| own.contains(&node) || !any(&patterns, &nodes[node]))
    };
    if let Some(pattern) = pattern.filter(is_exact) {
        return format!("\"{pattern}\"");
    }
    let quoted = |name: &&str| format!("\"{}\"", Pattern::escape(name));
    let list: Vec<String> = names.iter().take(MOST_SHOWN).map(quoted).collect();
    let more = names.len() - list.len();
    list.join(", ") + &if more > 0 { format!(", and the other {more} names") } else { String::new() }
}

/// Patterns for names, and for addresses.
pub(super) fn patterns(texts: &[String]) -> Vec<Patterns> {
    // A pattern that is not valid is a name with a bracket.
    let pattern =
        |text: &str| Pattern::new(text).or_else(|_| Pattern::new(&Pattern::escape(text))).unwrap_or_default();
    texts.iter().map(|text| [pattern(text), pattern(&digits(text))]).collect()
}

pub(super) fn any(patterns: &[Patterns], node: &Member<'_>) -> bool {
    patterns.iter().any(|pattern| matches(pattern, node))
}

/// Whether a pattern matches one of the texts of a node.
pub(super) fn matches([name, address]: &Patterns, node: &Member<'_>) -> bool {
    let texts = [(name, node.name), (name, node.address), (name, node.others[0]), (name, node.others[1])];
    let mut texts = texts.into_iter().chain([(address, node.address)]);
    texts.any(|(pattern, text)| !text.is_empty() && pattern.matches(text))
}

/// The digits of a GUID in the forms of various programs: `0xc42a10300bb0001`, `S-0c42a10300bb0001`, `0c42:a103:00bb:*`.
fn digits(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let after = ["0x", "s-", "h-", "r-"].iter().find_map(|prefix| lower.strip_prefix(prefix));
    let digits = after.unwrap_or(&lower).replace(':', "");
    let count = digits.bytes().filter(u8::is_ascii_hexdigit).count();
    match digits.len() - count {
        0 if count > 0 => format!("{digits:0>16}"),
        _ if count > 5 && digits.bytes().all(|byte| byte.is_ascii_hexdigit() || b"*?".contains(&byte)) => {
            digits
        }
        // A pattern of names, such as `s-*`.
        _ => text.to_owned(),
    }
}
