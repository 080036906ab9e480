//! Distances between the objects of a host, and the costs that follow from them.

use std::path::Path;

use super::super::ImportError;
use super::super::reader::malformed;
use super::super::xml::Element;
use super::host::{Object, Range, number};

/// Bits of `kind`: the values are latencies.
const MEANS_LATENCY: u64 = 1 << 2;
/// Bits of `kind`: the values are bandwidths.
const MEANS_BANDWIDTH: u64 = 1 << 3;

/// Distances between objects of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Distances {
    /// What they are between, for people.
    pub(super) between: String,
    /// The slots of every object.
    ranges: Vec<Range>,
    /// From object `a` to object `b` of `n` at `a * n + b`.
    values: Vec<f64>,
}

/// The latencies between objects that hold slots; what is between other objects, or no latency, is left out.
pub(super) fn read(
    path: &Path,
    topology: Element<'_>,
    machine: Element<'_>,
    objects: &[Object],
) -> Result<Vec<Distances>, ImportError> {
    let mut all = Vec::new();
    for element in topology.all("distances2") {
        all.extend(version_2(path, element, objects)?);
    }
    for element in machine.all("distances") {
        all.extend(version_1(path, element, objects)?);
    }
    Ok(all)
}

fn wrong(path: &Path, line: usize, problem: impl Into<String>) -> ImportError {
    malformed(
        path,
        line,
        problem,
        "distances are a square of numbers, one row and one column for every object",
    )
}

fn numbers<T: std::str::FromStr>(
    path: &Path,
    elements: Element<'_>,
    name: &'static str,
) -> Result<Vec<T>, ImportError> {
    let mut numbers = Vec::new();
    for element in elements.all(name) {
        for text in element.text().split_ascii_whitespace() {
            let number =
                text.parse().map_err(|_| wrong(path, element.line(), "this is no list of whole numbers"))?;
            numbers.push(number);
        }
    }
    Ok(numbers)
}

/// `<distances2 type="NUMANode" nbobjs="2" kind="5" indexing="os">` of version 2.
fn version_2(
    path: &Path,
    element: Element<'_>,
    objects: &[Object],
) -> Result<Option<Distances>, ImportError> {
    let kind = number::<u64>(path, element, "kind")?.unwrap_or(0);
    let name = element.attribute("type").unwrap_or_default();
    let indexes: Vec<u64> = numbers(path, element, "indexes")?;
    let values: Vec<u64> = numbers(path, element, "u64values")?;
    let is_claimed =
        number::<u64>(path, element, "nbobjs")?.is_none_or(|count| count == indexes.len() as u64);
    if !is_claimed || indexes.len().checked_mul(indexes.len()) != Some(values.len()) {
        let problem = format!("{} objects have {} distances", indexes.len(), values.len());
        return Err(wrong(path, element.line(), problem));
    }
    if kind & MEANS_BANDWIDTH != 0 || kind & MEANS_LATENCY == 0 {
        return Ok(None);
    }
    let by_os = element.attribute("indexing") == Some("os");
    let known: std::collections::HashMap<u64, Range> = objects
        .iter()
        .filter(|object| object.kind.is_called(name))
        .filter_map(|object| Some((if by_os { object.os_index } else { object.gp_index }?, object.range)))
        .collect();
    let ranges: Option<Vec<Range>> = indexes.iter().map(|index| known.get(index).copied()).collect();
    Ok(ranges.map(|ranges| Distances {
        between: format!("{name}s"),
        ranges,
        values: values.into_iter().map(|value| value as f64).collect(),
    }))
}

/// `<distances nbobjs="2" relative_depth="1" latency_base="10.0">` of version 1, which are of NUMA nodes if there are as many.
fn version_1(
    path: &Path,
    element: Element<'_>,
    objects: &[Object],
) -> Result<Option<Distances>, ImportError> {
    let base = number::<f64>(path, element, "latency_base")?.unwrap_or(1.0);
    let mut values = Vec::new();
    for latency in element.all("latency") {
        let value = number::<f64>(path, latency, "value")?.map(|value| value * base);
        let value = value.filter(|value| value.is_finite() && *value >= 0.0);
        values.push(value.ok_or_else(|| wrong(path, latency.line(), "a latency is no number"))?);
    }
    let count = number::<usize>(path, element, "nbobjs")?.unwrap_or(0);
    if count.checked_mul(count) != Some(values.len()) {
        let problem = format!("{count} objects have {} distances", values.len());
        return Err(wrong(path, element.line(), problem));
    }
    let nodes = objects.iter().filter(|object| object.kind.is_numa_node());
    let ranges: Vec<Range> = nodes.map(|object| object.range).collect();
    Ok((ranges.len() == count).then(|| Distances { between: "NUMANodes".into(), ranges, values }))
}

impl Distances {
    /// The costs of levels, innermost first: between objects the mean of the distances of those that first meet there, as multiples of
    /// what an object has to itself; inside objects equal steps up to that. `None` if there is only one object.
    ///
    /// # Errors
    /// Says why distances and levels do not go together.
    pub(super) fn costs(&self, groups: &[Vec<u32>]) -> Result<Option<LevelCosts>, String> {
        let count = self.ranges.len();
        let mut met = vec![Met::default(); groups.len()];
        let mut own = Met::default();
        for (a, &(first, end)) in self.ranges.iter().enumerate() {
            own.add(self.values[a * count + a]);
            for (b, &(other, other_end)) in self.ranges.iter().enumerate() {
                // Two kinds of memory of the same processors are no two places.
                if end <= other || other_end <= first {
                    let level =
                        groups.iter().position(|groups| groups[first as usize] == groups[other as usize]);
                    met[level.unwrap_or(groups.len() - 1)].add(self.values[a * count + b]);
                }
            }
        }
        let Some(outer) = met.iter().position(|met| met.count > 0) else { return Ok(None) };
        let rising = |met: &[Met]| met.windows(2).all(|pair| pair[0].most <= pair[1].least);
        if met[outer..].iter().any(|met| met.count == 0) {
            return Err("they are not between all objects".into());
        }
        if !rising(&met[outer..]) {
            return Err("some objects that meet further out are nearer to each other".into());
        }
        let unit = own.mean();
        if unit <= 0.0 && outer > 0 || own.most > met[outer].least {
            return Err("an object is not nearer to itself than to others".into());
        }
        let unit = if unit > 0.0 { unit } else { 1.0 };
        let inner = (1..=outer).map(|level| level as f64 / outer as f64);
        let costs = inner.chain(met[outer..].iter().map(|met| met.mean() / unit)).collect();
        let uneven = met[outer..].iter().find(|met| met.least < met.most);
        Ok(Some(LevelCosts { costs, uneven: uneven.map(|met| (met.least, met.most)) }))
    }
}

/// What levels cost by distances.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LevelCosts {
    pub(super) costs: Vec<f64>,
    /// The least and the largest distance that meet on one level, if there is a level where they differ.
    pub(super) uneven: Option<(f64, f64)>,
}

/// The distances of those that first meet on a level.
#[derive(Debug, Clone, Copy)]
struct Met {
    count: u32,
    sum: f64,
    least: f64,
    most: f64,
}

impl Default for Met {
    fn default() -> Self {
        Self { count: 0, sum: 0.0, least: f64::INFINITY, most: 0.0 }
    }
}

impl Met {
    fn add(&mut self, value: f64) {
        *self = Self {
            count: self.count.saturating_add(1),
            sum: self.sum + value,
            least: self.least.min(value),
            most: self.most.max(value),
        };
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }
}
