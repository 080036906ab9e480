//! Short names of cells for people: keys whose value all cells of a stage share are left out, of keys that change together (lists that
//! are zipped) only the first stays, and paths are cut to the components in which they differ. `placement[trace=traces/lu.A/traces.otf2,shape=tree:2x4]` becomes `placement[trace=lu.A]`.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value as Json;

use crate::selector::show;

/// Keys and values that distinguish the cells of a stage, for each of its matrices.
pub(crate) fn labels<'a>(matrices: &[Vec<(&'a str, &Json)>]) -> Vec<Vec<(&'a str, String)>> {
    let texts =
        |matrix: &Vec<(&'a str, &Json)>| matrix.iter().map(|(key, value)| (*key, show(value))).collect();
    let mut labels: Vec<Vec<(&str, String)>> = matrices.iter().map(texts).collect();
    let keys: BTreeSet<&str> = matrices.iter().flatten().map(|(key, _)| *key).collect();
    leave_out_followers(&mut labels);
    for key in keys {
        let of_key = || labels.iter().flatten().filter(|(name, _)| *name == key).map(|(_, value)| value);
        let values: BTreeSet<&str> = of_key().map(String::as_str).collect();
        if values.len() == 1 && of_key().count() == labels.len() {
            labels.iter_mut().for_each(|label| label.retain(|(name, _)| *name != key));
            continue;
        }
        let Some((begin, end)) = shared(&values) else { continue };
        for (_, value) in labels.iter_mut().flatten().filter(|(name, _)| *name == key) {
            let components: Vec<&str> = value.split('/').collect();
            *value = components[begin..components.len() - end].join("/");
        }
    }
    labels
}

/// Leaves out keys whose value follows from that of an earlier key, and the other way round.
fn leave_out_followers(labels: &mut [Vec<(&str, String)>]) {
    let Some(keys) = labels.first().map(|label| label.iter().map(|(key, _)| *key).collect::<Vec<_>>()) else {
        return;
    };
    let have_same_keys =
        |label: &Vec<(&str, String)>| label.iter().map(|(key, _)| *key).eq(keys.iter().copied());
    if !labels.iter().all(have_same_keys) {
        return;
    }
    let distinct = |columns: &[usize]| {
        let rows = labels.iter().map(|label| columns.iter().map(|&at| &label[at].1).collect::<Vec<_>>());
        rows.collect::<HashSet<_>>().len()
    };
    let mut leaders: Vec<usize> = Vec::new();
    for key in 0..keys.len() {
        let values = distinct(&[key]);
        let follows = |&leader: &usize| {
            values > 1 && distinct(&[leader]) == values && distinct(&[leader, key]) == values
        };
        if !leaders.iter().any(follows) {
            leaders.push(key);
        }
    }
    let leaders: HashSet<&str> = leaders.into_iter().map(|key| keys[key]).collect();
    labels.iter_mut().for_each(|label| label.retain(|(key, _)| leaders.contains(key)));
}

/// How many components at the beginning and at the end all paths share, where at least one of each is left.
fn shared(values: &BTreeSet<&str>) -> Option<(usize, usize)> {
    let paths: Vec<Vec<&str>> = values.iter().map(|value| value.split('/').collect()).collect();
    let (first, rest) = paths.split_first()?;
    let most = paths.iter().map(Vec::len).min()? - 1;
    let from_begin = |at: &usize| rest.iter().all(|path| path[*at] == first[*at]);
    let from_end =
        |at: &usize| rest.iter().all(|path| path[path.len() - 1 - at] == first[first.len() - 1 - at]);
    let begin = (0..most).take_while(from_begin).count();
    let end = (0..most - begin).take_while(from_end).count();
    Some((begin, end))
}

/// The name of a cell with these keys and values.
pub(crate) fn cell_name<K: AsRef<str>>(stage: &str, label: &[(K, String)]) -> String {
    if label.is_empty() {
        return stage.to_owned();
    }
    let pairs: Vec<String> = label.iter().map(|(key, value)| format!("{}={value}", key.as_ref())).collect();
    format!("{stage}[{}]", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn named(cells: &[&[(&'static str, Json)]]) -> Vec<String> {
        let matrices: Vec<Vec<(&str, &Json)>> =
            cells.iter().map(|cell| cell.iter().map(|(key, value)| (*key, value)).collect()).collect();
        labels(&matrices).iter().map(|label| cell_name("m", label)).collect()
    }

    #[test]
    fn keys_that_all_cells_share_are_left_out() {
        let cell = |seed: i64| [("shape", json!("tree:2x4")), ("seed", json!(seed))];
        assert_eq!(named(&[&cell(1), &cell(2)]), ["m[seed=1]", "m[seed=2]"]);
        assert_eq!(named(&[&cell(1)]), ["m"]);
    }

    #[test]
    fn paths_are_cut_to_the_components_in_which_they_differ() {
        let paths = |paths: &[&str]| {
            let cells: Vec<_> = paths.iter().map(|path| [("t", json!(path))]).collect();
            named(&cells.iter().map(<[_; 1]>::as_slice).collect::<Vec<_>>())
        };
        assert_eq!(paths(&["traces/lu.A/t.otf2", "traces/mg.A/t.otf2"]), ["m[t=lu.A]", "m[t=mg.A]"]);
        assert_eq!(
            paths(&["a/x.csv", "a/y.csv", "b/x.csv"]),
            ["m[t=a/x.csv]", "m[t=a/y.csv]", "m[t=b/x.csv]"]
        );
        // Nothing is left empty, and what is shorter stays apart.
        assert_eq!(paths(&["a/b", "a/b/b"]), ["m[t=b]", "m[t=b/b]"]);
        assert_eq!(paths(&["/a", "/b"]), ["m[t=a]", "m[t=b]"]);
        assert_eq!(paths(&["linear", "random"]), ["m[t=linear]", "m[t=random]"]);
    }

    /// Both lists of `zip` were in the names of all cells.
    #[test]
    fn of_keys_that_change_together_the_first_is_shown() {
        let cell = |shape: &str, costs: [i64; 1], seed: i64| {
            [("shape", json!(shape)), ("costs", json!(costs)), ("seed", json!(seed))]
        };
        let cells = [cell("tree:2", [1], 1), cell("tree:4", [9], 1), cell("tree:2", [1], 2)];
        let [one, other, third] = &cells;
        assert_eq!(named(&[one, other]), ["m[shape=tree:2]", "m[shape=tree:4]"]);
        let names = ["m[shape=tree:2,seed=1]", "m[shape=tree:4,seed=1]", "m[shape=tree:2,seed=2]"];
        assert_eq!(named(&[one, other, third]), names);
        // Equal values of one key with different ones of the other: both are needed.
        let both = cell("tree:2", [9], 1);
        assert_eq!(named(&[one, &both]), ["m[costs=1]", "m[costs=9]"]);
        let names = ["m[shape=tree:2,costs=1]", "m[shape=tree:4,costs=9]", "m[shape=tree:2,costs=9]"];
        assert_eq!(named(&[one, other, &both]), names);
    }

    #[test]
    fn a_key_that_some_cells_lack_stays() {
        assert_eq!(named(&[&[("seed", json!(1))], &[]]), ["m[seed=1]", "m"]);
    }
}
