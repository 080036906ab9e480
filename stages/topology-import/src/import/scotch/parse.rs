//! Parser of target files.

use std::collections::HashSet;

use hopmap_text::{FileError, Words};

/// Largest number of terminals of a target other than a tree.
const MOST_TERMINALS: i64 = 1 << 20;
/// Largest number of terminals with a full distance list.
const MOST_LISTED: i64 = 4096;
/// Largest number of domains of a compiled decomposition.
const MOST_DOMAINS: i64 = 1 << 16;
/// Largest number in a file: Scotch uses 32 bits.
const MOST: i64 = i32::MAX as i64;
/// Largest number of levels of a tree.
const MOST_LEVELS: i64 = 32;
/// Largest number of dimensions in Scotch 7.
const MOST_DIMENSIONS: i64 = 5;
/// Largest nesting depth of `sub`.
const MOST_RESTRICTIONS: usize = 16;

/// A target, and the nested restrictions of its terminals, outermost first.
pub(super) struct Target {
    pub(super) restrictions: Vec<Vec<u32>>,
    pub(super) shape: Shape,
    /// Whether Scotch computes the distances of the class differently from its user guide.
    pub(super) is_measured_as_torus: bool,
}

/// Shapes of targets.
pub(super) enum Shape {
    /// Leaves of a regular tree.
    Tree {
        /// Branches and link cost of each level, outermost first.
        levels: Vec<(u32, f64)>,
        /// The permutation that is applied to every block of leaves, if they are not in order.
        numbers: Vec<u32>,
    },
    /// A grid, the first dimension first.
    Grid { sizes: Vec<u32>, wraps: bool },
    /// All at distance 1, with their weights.
    Complete { weights: Vec<u32> },
    /// Terminals sorted by number: number and weight of each, and the distance of each ordered pair.
    Listed { terminals: Vec<(u32, u32)>, distances: Vec<f64> },
}

/// The next word, an integer in a range.
fn number(words: &mut Words<'_>, what: &str, least: i64, most: i64) -> Result<i64, FileError> {
    let help = || format!("{what} must be an integer from {least} to {most}");
    if !words.next()? {
        let problem = format!("the file ends where {what} should be");
        return Err(words.error_at(words.here(), problem).with_help(help()));
    }
    match words.text()?.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(words.error(format!("{what} is `{}`", words.shown())).with_help(help())),
    }
}

/// Whether a class has no parameters; `None` for an unknown class.
pub(super) fn is_alone(class: &str) -> Option<bool> {
    Some(match class.to_ascii_lowercase().as_str() {
        "tleaf" | "ltleaf" | "mesh2d" | "mesh3d" | "meshxd" | "torus2d" | "torus3d" | "torusxd" | "hcub"
        | "cmplt" | "cmpltw" | "deco" | "sub" => false,
        "varcmplt" | "varhcub" => true,
        _ => return None,
    })
}

/// Reads a target. Class names are case-insensitive, as in Scotch.
pub(super) fn target(words: &mut Words<'_>) -> Result<Target, FileError> {
    let mut restrictions = Vec::new();
    loop {
        if !words.next()? {
            return Err(words
                .error("the file contains no target")
                .with_help("a target begins with its class, such as `tleaf`"));
        }
        let class = words.text()?.to_owned();
        let shape = match class.to_ascii_lowercase().as_str() {
            "sub" if restrictions.len() < MOST_RESTRICTIONS => {
                restrictions.push(restriction(words)?);
                continue;
            }
            "sub" => {
                return Err(words.error("too many nested `sub`").with_help("combine them into one"));
            }
            "tleaf" => Shape::Tree { levels: levels(words)?, numbers: Vec::new() },
            "ltleaf" => {
                let levels = levels(words)?;
                let numbers = numbers(words, &levels)?;
                Shape::Tree { levels, numbers }
            }
            "mesh2d" => grid(words, Some(2), false)?,
            "mesh3d" => grid(words, Some(3), false)?,
            "meshxd" => grid(words, None, false)?,
            "torus2d" => grid(words, Some(2), true)?,
            "torus3d" => grid(words, Some(3), true)?,
            "torusxd" => grid(words, None, true)?,
            "hcub" => {
                let dimensions = small(words, "the dimension of the hypercube", 1, 20)?;
                Shape::Grid { sizes: vec![2; dimensions as usize], wraps: false }
            }
            "cmplt" => {
                let count = small(words, "the number of terminals", 1, MOST_TERMINALS)?;
                Shape::Complete { weights: vec![1; count as usize] }
            }
            "cmpltw" => complete(words)?,
            "deco" => decomposition(words)?,
            "varcmplt" | "varhcub" => {
                return Err(words
                    .error(format!("a target of class `{class}` has no fixed size"))
                    .with_help("use a class with a size, such as `cmplt 64` or `hcub 6`"));
            }
            _ => {
                return Err(words.error(format!("unknown target class `{}`", words.shown())).with_help("known classes are tleaf, ltleaf, mesh2D, mesh3D, meshXD, torus2D, torus3D, torusXD, hcub, cmplt, cmpltw, deco and sub"));
            }
        };
        let is_measured_as_torus = class.eq_ignore_ascii_case("meshXD");
        return Ok(Target { restrictions, shape, is_measured_as_torus });
    }
}

/// A number from `least` to `most`, which are not negative.
fn small(words: &mut Words<'_>, what: &str, least: i64, most: i64) -> Result<u32, FileError> {
    let number = number(words, what, least, most)?;
    u32::try_from(number).map_err(|_| words.error(format!("{what} is {number}")))
}

fn restriction(words: &mut Words<'_>) -> Result<Vec<u32>, FileError> {
    let count = number(words, "the number of kept terminals", 1, MOST)?;
    let mut terminals = Vec::new();
    let mut known = HashSet::new();
    for _ in 0..count {
        let terminal = small(words, "a kept terminal", 0, MOST)?;
        if !known.insert(terminal) {
            return Err(words
                .error(format!("duplicate terminal {terminal}"))
                .with_help("list every terminal once"));
        }
        terminals.push(terminal);
    }
    Ok(terminals)
}

fn levels(words: &mut Words<'_>) -> Result<Vec<(u32, f64)>, FileError> {
    let count = number(words, "the number of levels", 0, MOST_LEVELS)?;
    let level = |_| {
        let branches = small(words, "the number of branches of a level", 2, MOST)?;
        let cost = number(words, "the cost of the links of a level", 1, MOST)?;
        Ok((branches, cost as f64))
    };
    (0..count).map(level).collect()
}

/// The leaf numbers of `ltleaf`: a permutation of the leaves of some of the innermost levels.
fn numbers(words: &mut Words<'_>, levels: &[(u32, f64)]) -> Result<Vec<u32>, FileError> {
    let count = number(words, "the size of the permutation", 1, MOST)?;
    let mut size = 1_u64;
    let mut sizes = vec![1];
    sizes.extend(levels.iter().rev().map(|(branches, _)| {
        size = size.saturating_mul(u64::from(*branches));
        size
    }));
    if !sizes.contains(&count.unsigned_abs()) {
        return Err(words
            .error(format!(
                "the length {count} of the permutation is not the number of leaves of some innermost levels"
            ))
            .with_help(format!(
                "allowed: {}",
                sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
            )));
    }
    let mut numbers = Vec::new();
    let mut known = HashSet::new();
    for _ in 0..count {
        let number = small(words, "a number of the permutation", 0, count - 1)?;
        if !known.insert(number) {
            return Err(words
                .error(format!("duplicate {number}"))
                .with_help("a permutation contains every number once"));
        }
        numbers.push(number);
    }
    let is_in_order = (0..).zip(&numbers).all(|(place, &number): (u32, _)| place == number);
    Ok(if is_in_order { Vec::new() } else { numbers })
}

fn grid(words: &mut Words<'_>, dimensions: Option<i64>, wraps: bool) -> Result<Shape, FileError> {
    let dimensions =
        dimensions.map_or_else(|| number(words, "the number of dimensions", 1, MOST_DIMENSIONS), Ok)?;
    let mut count = 1_i64;
    let mut sizes = Vec::new();
    for _ in 0..dimensions {
        let size = small(words, "the size of a dimension", 1, MOST_TERMINALS)?;
        count = count.saturating_mul(size.into());
        sizes.push(size);
    }
    if count > MOST_TERMINALS {
        return Err(words
            .error(format!("the target has more than {MOST_TERMINALS} terminals"))
            .with_help("reduce some dimensions"));
    }
    Ok(Shape::Grid { sizes, wraps })
}

fn complete(words: &mut Words<'_>) -> Result<Shape, FileError> {
    let count = number(words, "the number of terminals", 1, MOST_TERMINALS)?;
    let mut weights = Vec::new();
    for _ in 0..count {
        weights.push(small(words, "the weight of a terminal", 1, MOST)?);
    }
    Ok(Shape::Complete { weights })
}

fn decomposition(words: &mut Words<'_>) -> Result<Shape, FileError> {
    match number(words, "the type of the decomposition", 0, 2)? {
        0 => listed(words),
        1 => compiled(words),
        _ => Err(words
            .error("decompositions of type 2 contain coarsened graphs instead of distances")
            .with_help("write the target as type 0, such as with `amk_grf` without `-2`")),
    }
}

/// Type 0: label, weight and domain of every terminal, then the lower triangle of distances in the order of the terminals.
fn listed(words: &mut Words<'_>) -> Result<Shape, FileError> {
    let count = number(words, "the number of terminals", 1, MOST_LISTED)?;
    let most = number(words, "the largest number of a domain", count, MOST)?;
    let mut terminals = Vec::new();
    let mut domains = HashSet::new();
    for _ in 0..count {
        let label = small(words, "the number of a terminal", 0, MOST)?;
        let weight = small(words, "the weight of a terminal", 0, MOST)?;
        let domain = number(words, "the number of a domain", 1, most)?;
        if !domains.insert(domain) {
            return Err(words
                .error(format!("two terminals are domain {domain}"))
                .with_help("domains must be unique"));
        }
        terminals.push((label, weight));
    }
    let mut triangle = Vec::new();
    for _ in 0..count * (count - 1) / 2 {
        triangle.push(number(words, "a distance", 1, MOST)? as f64);
    }
    let distance = |a: usize, b: usize| {
        let (low, high) = (a.min(b), a.max(b));
        if low == high { 0.0 } else { triangle.get(high * (high - 1) / 2 + low).copied().unwrap_or(0.0) }
    };
    sorted(words, &terminals, distance)
}

/// Type 1: label, size and weight of every domain, then the lower triangle of distances between all domains.
fn compiled(words: &mut Words<'_>) -> Result<Shape, FileError> {
    let count = number(words, "the number of terminals", 1, MOST_LISTED)?;
    let domains = number(words, "the number of domains", count, MOST_DOMAINS)?;
    let mut terminals = Vec::new();
    // The terminal index of each domain.
    let mut places = Vec::new();
    for _ in 0..domains {
        let label = number(words, "the number of a terminal", -1, MOST)?;
        let size = number(words, "the number of terminals in a domain", 0, MOST)?;
        let weight = small(words, "the weight of a domain", 0, MOST)?;
        places.push((size == 1).then_some(terminals.len()));
        if size == 1 {
            let label = u32::try_from(label).map_err(|_| {
                words.error(format!("a terminal has number {label}")).with_help("numbers start at zero")
            })?;
            terminals.push((label, weight));
        }
    }
    if i64::try_from(terminals.len()) != Ok(count) {
        return Err(words
            .error(format!("{} domains have one terminal, but there are {count} terminals", terminals.len()))
            .with_help("check whether the file is damaged"));
    }
    let mut table = vec![0.0; terminals.len() * terminals.len()];
    for (high, at_high) in places.iter().enumerate() {
        for at_low in places.iter().take(high) {
            let distance = number(words, "a distance", 0, MOST)?;
            let (Some(a), Some(b)) = (at_high, at_low) else { continue };
            if distance == 0 {
                return Err(words
                    .error("two terminals are at distance 0")
                    .with_help("distances between terminals must be positive"));
            }
            for place in [a * terminals.len() + b, b * terminals.len() + a] {
                if let Some(entry) = table.get_mut(place) {
                    *entry = distance as f64;
                }
            }
        }
    }
    let distance = |a: usize, b: usize| table.get(a * terminals.len() + b).copied().unwrap_or(0.0);
    sorted(words, &terminals, distance)
}

/// The terminals sorted by number.
fn sorted(
    words: &Words<'_>,
    terminals: &[(u32, u32)],
    distance: impl Fn(usize, usize) -> f64,
) -> Result<Shape, FileError> {
    let mut order: Vec<usize> = (0..terminals.len()).collect();
    let at = |place: usize| terminals.get(place).copied().unwrap_or_default();
    order.sort_by_key(|&place| at(place));
    let sorted: Vec<(u32, u32)> = order.iter().map(|&place| at(place)).collect();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(words
            .error(format!("two terminals have number {}", pair[0].0))
            .with_help("numbers must be unique"));
    }
    let distance = &distance;
    let row = |&a: &usize| order.iter().map(move |&b| distance(a, b)).collect::<Vec<_>>();
    Ok(Shape::Listed { distances: order.iter().flat_map(row).collect(), terminals: sorted })
}
