//! Latencies and bandwidths of links.

use hopmap_model::Link;

use crate::params::{MachineError, SyntheticParams, unfit};

/// Checks that latencies and bandwidths are in range, and given for all links or for every kind of them.
pub(crate) fn check_rates(params: &SyntheticParams, kinds: usize) -> Result<(), MachineError> {
    for (parameter, values) in
        [("bandwidth_bytes_per_s", &params.bandwidth_bytes_per_s), ("link_latency_s", &params.link_latency_s)]
    {
        if !(values.len() <= 1 || values.len() == kinds) {
            let problem = format!("has {} values, but there are {kinds} kinds of links", values.len());
            return Err(unfit(&params.shape, parameter, &problem));
        }
        let (least, expected) = match parameter {
            "bandwidth_bytes_per_s" => (f64::MIN_POSITIVE, "more than 0"),
            _ => (0.0, "0 or more"),
        };
        if let Some(value) = values.iter().find(|value| !(value.is_finite() && **value >= least)) {
            let problem = format!("has the value {value}, but must be {expected}");
            return Err(unfit(&params.shape, parameter, &problem));
        }
    }
    Ok(())
}

/// The links of a cable, one in each direction, with the rates of its kind.
pub(crate) fn cable((a, b, kind): (u32, u32, usize), params: &SyntheticParams) -> [Link; 2] {
    let value = |values: &[f64]| values.get(kind.min(values.len().max(1) - 1)).copied();
    let link = Link {
        latency_s: value(&params.link_latency_s),
        bandwidth_bytes_per_s: value(&params.bandwidth_bytes_per_s),
        ..Link::new(a, b)
    };
    [link, link.reversed()]
}
