//! Costs of messages at both ends, and how the length of a message changes latency and bandwidth.

use std::str::FromStr;

use hopmap_model::{CalibratedCost, CostName, is_cost};
use miette::Diagnostic;

/// Costs of messages at both ends: overheads, protocols, and factors of the network by length. By default
/// nothing costs time but the network.
///
/// The parameters are those of SMPI (`smpi/os`, `smpi/ois`, `smpi/or`, `smpi/lat-factor`, `smpi/bw-factor`,
/// `smpi/async-small-thresh`, `smpi/send-is-detached-thresh`, `smpi/test`), and LogGP's o, L and G are a special case.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// Time in a blocking send of a message that does not wait for its receiver.
    pub send: Overhead,
    /// Time in a nonblocking send.
    pub isend: Overhead,
    /// Time at the receiver of a message whose sender did not wait for it, after its arrival.
    pub recv: Overhead,
    /// Multiplies the latency of a route.
    pub latency_factor: Factors,
    /// Multiplies the bandwidth that a message gets.
    pub bandwidth_factor: Factors,
    /// Bytes that the network transfers beyond those of the message.
    pub envelope_bytes: u64,
    /// Shorter messages are eager: they are transferred at once, and the sender does not wait.
    pub eager_limit: u64,
    /// Shorter messages that are not eager are detached: they are transferred when the receive is posted, but
    /// the sender does not wait. All others are rendezvous: both ends wait for the end of the transfer.
    pub detached_limit: u64,
    /// Seconds of an `MPI_Test`, after which it looks for the message.
    pub test_s: f64,
    /// Whether every `MPI_Test` that finds no message makes the next one longer by `test_s`, at all ranks,
    /// until one finds its message (`smpi/grow-injected-times`).
    pub test_grows: bool,
    /// Window of a TCP connection in bytes: a message gets at most window / (2 · latency) of the bandwidth
    /// (`network/TCP-gamma`).
    pub window_bytes: Option<f64>,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            send: Overhead::default(),
            isend: Overhead::default(),
            recv: Overhead::default(),
            latency_factor: Factors::default(),
            bandwidth_factor: Factors::default(),
            envelope_bytes: 0,
            eager_limit: 1 << 16,
            detached_limit: 1 << 16,
            test_s: 0.0,
            test_grows: false,
            window_bytes: None,
        }
    }
}

impl Costs {
    /// Those of the calibration of a machine.
    #[must_use]
    pub fn calibrated(calibration: &[CalibratedCost]) -> Self {
        let rows = |cost| calibration.iter().filter(move |row| row.cost == cost);
        let overhead = |cost| Overhead::new(rows(cost).map(|row| (row.above_bytes, row.value, row.per_byte)));
        let factors = |cost| Factors::new(rows(cost).map(|row| (row.above_bytes, row.value)));
        let eager_limit =
            rows(CostName::EagerLimit).next().map_or(Self::default().eager_limit, |row| row.value as u64);
        Self {
            send: overhead(CostName::Send),
            isend: overhead(CostName::Isend),
            recv: overhead(CostName::Recv),
            latency_factor: factors(CostName::LatencyFactor),
            bandwidth_factor: factors(CostName::BandwidthFactor),
            eager_limit,
            detached_limit: eager_limit,
            ..Self::default()
        }
    }

    /// Whether anything but links and memory costs time.
    #[must_use]
    pub fn has_overheads(&self) -> bool {
        let Self { send, isend, recv, latency_factor, bandwidth_factor, .. } = self;
        [send, isend, recv].iter().any(|overhead| **overhead != Overhead::default())
            || [latency_factor, bandwidth_factor].iter().any(|factors| **factors != Factors::default())
    }

    /// Only the protocols of SMPI: no factors, no overheads.
    #[must_use]
    pub fn smpi_protocols() -> Self {
        Self { envelope_bytes: 16, eager_limit: 0, test_s: 1e-4, test_grows: true, ..Self::default() }
    }

    /// The default costs of SMPI in SimGrid 3.32, without cross-traffic.
    #[must_use]
    pub fn smpi_defaults() -> Self {
        let latency = [11.6436, 3.48845, 2.59299, 2.18796, 1.88101, 1.61075, 1.9503, 1.95341, 2.01467];
        let bandwidth =
            [0.940_694, 0.697_866, 0.58729, 1.08739, 0.77493, 0.608_902, 0.341_987, 0.338_112, 0.812_084];
        let above = [65472, 15424, 9376, 5776, 3484, 1426, 732, 257, 0];
        let factors = |factors: [f64; 9]| Factors::new(above.into_iter().zip(factors));
        Self {
            latency_factor: factors(latency),
            bandwidth_factor: factors(bandwidth),
            window_bytes: Some(4_194_304.0),
            ..Self::smpi_protocols()
        }
    }
}

/// Time by length of the message, piecewise linear: start + bytes · time per byte.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overhead(Vec<Segment>);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Segment {
    above: u64,
    start_s: f64,
    per_byte_s: f64,
}

impl Overhead {
    /// From segments: lengths above which a segment applies, seconds, and seconds per byte. The first segment
    /// applies to all shorter messages, too.
    #[must_use]
    pub fn new(segments: impl IntoIterator<Item = (u64, f64, f64)>) -> Self {
        let segment = |(above, start_s, per_byte_s)| Segment { above, start_s, per_byte_s };
        let mut segments: Vec<_> = segments.into_iter().map(segment).collect();
        segments.sort_by_key(|segment| segment.above);
        Self(segments)
    }

    /// Seconds for a message of this length.
    #[must_use]
    pub fn of(&self, bytes: u64) -> f64 {
        let later = self.0.iter().skip(1).take_while(|segment| bytes > segment.above).last();
        later.or(self.0.first()).map_or(0.0, |segment| segment.start_s + segment.per_byte_s * bytes as f64)
    }
}

/// `min_size:start:per_byte;…` as in SMPI, in bytes, seconds and seconds per byte.
impl FromStr for Overhead {
    type Err = CostsSyntaxError;

    fn from_str(text: &str) -> Result<Self, CostsSyntaxError> {
        let segments = parse(text)?.into_iter().map(|(above, values)| match values.as_slice() {
            [start, per_byte, ..] => Ok((above, *start, *per_byte)),
            _ => Err(CostsSyntaxError(text.to_owned())),
        });
        Ok(Self::new(segments.collect::<Result<Vec<_>, _>>()?))
    }
}

/// A factor by length of the message, 1 for messages up to the lowest limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Factors(Vec<(u64, f64)>);

impl Factors {
    /// From factors and the lengths above which they apply.
    #[must_use]
    pub fn new(factors: impl IntoIterator<Item = (u64, f64)>) -> Self {
        let mut factors: Vec<_> = factors.into_iter().collect();
        factors.sort_by_key(|(above, _)| *above);
        Self(factors)
    }

    /// The factor for a message of this length.
    #[must_use]
    pub fn of(&self, bytes: u64) -> f64 {
        self.0.iter().take_while(|(above, _)| bytes > *above).last().map_or(1.0, |(_, factor)| *factor)
    }
}

/// `size:factor;…` as in SMPI.
impl FromStr for Factors {
    type Err = CostsSyntaxError;

    fn from_str(text: &str) -> Result<Self, CostsSyntaxError> {
        let factors = parse(text)?.into_iter().map(|(above, values)| match values.as_slice() {
            [factor] if *factor > 0.0 => Ok((above, *factor)),
            _ => Err(CostsSyntaxError(text.to_owned())),
        });
        Ok(Self::new(factors.collect::<Result<Vec<_>, _>>()?))
    }
}

/// Costs that are not written as in SMPI.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("`{0}` does not have the form `size:value;…`")]
#[diagnostic(
    code(prediction::costs_syntax),
    help(
        "overheads are `size:seconds:seconds_per_byte;…`, factors `size:factor;…`, finite and non-negative"
    )
)]
pub struct CostsSyntaxError(String);

/// `size:value:…;…`
fn parse(text: &str) -> Result<Vec<(u64, Vec<f64>)>, CostsSyntaxError> {
    let wrong = || CostsSyntaxError(text.to_owned());
    let part = |part: &str| {
        let mut fields = part.split(':').map(str::trim);
        let above = fields.next().and_then(|field| field.parse().ok())?;
        let value = |field: &str| field.parse().ok().filter(|value| is_cost(*value));
        Some((above, fields.map(value).collect::<Option<Vec<f64>>>()?))
    };
    text.split(';').filter(|part| !part.trim().is_empty()).map(|text| part(text).ok_or_else(wrong)).collect()
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the compared values are exact")]
mod tests {
    use super::*;

    #[test]
    fn segments_apply_above_their_limit_as_in_smpi() {
        let overhead: Overhead = "100:2:0.5;0:1:0".parse().unwrap();
        assert_eq!([0, 1, 100, 101].map(|bytes| overhead.of(bytes)), [1.0, 1.0, 1.0, 52.5]);
        let factors: Factors = "10:0.5;100:0.25".parse().unwrap();
        assert_eq!([0, 10, 11, 100, 101].map(|bytes| factors.of(bytes)), [1.0, 1.0, 0.5, 0.5, 0.25]);
        assert_eq!((Overhead::default().of(7), Factors::default().of(7)), (0.0, 1.0));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["1", "1:", "a:1:1", "1:nan:0", "1:-1:0", "1:1"] {
            assert!(text.parse::<Overhead>().is_err(), "{text}");
        }
        for text in ["1", "1:0", "1:2:3", "1:inf"] {
            assert!(text.parse::<Factors>().is_err(), "{text}");
        }
    }
}
