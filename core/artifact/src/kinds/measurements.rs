//! `measurements`: tables `endpoints`, `samples` and `fits`.

use hopmap_model::{Endpoint, Fit, Measurements, NodeState, ProbePhase, Sample};

use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

impl Codec for Measurements {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let endpoints = Table::new("endpoints")
            .u32("endpoint", 0..self.endpoints.len() as u32)
            .text("host", self.endpoints.iter().map(|endpoint| &endpoint.host))
            .u32("core", self.endpoints.iter().map(|endpoint| endpoint.core))
            .text("state", self.endpoints.iter().map(|endpoint| state_name(endpoint.state)));
        Contents::new()
            .table(endpoints)
            .table(encode_samples(&self.samples))
            .table(encode_fits(Table::new("fits"), &self.fits))
            .metric("hosts", self.hosts().count() as f64)
            .metric("pairs", self.latencies().len() as f64)
            .metric("coverage", self.coverage())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let measured = Self {
            endpoints: decode_endpoints(&folder.table("endpoints")?)?,
            samples: decode_samples(&folder.table("samples")?)?,
            fits: decode_fits(&folder.table("fits")?)?,
        };
        measured.check().map_err(|error| folder.invalid(error))?;
        Ok(measured)
    }
}

fn state_name(state: NodeState) -> &'static str {
    match state {
        NodeState::Up => "up",
        NodeState::Down => "down",
    }
}

fn phase_name(phase: ProbePhase) -> &'static str {
    match phase {
        ProbePhase::Latency => "latency",
        ProbePhase::Isolated => "isolated",
        ProbePhase::Loaded => "loaded",
    }
}

fn encode_samples(samples: &[Sample]) -> Table {
    Table::new("samples")
        .u32("source", samples.iter().map(|sample| sample.source))
        .u32("destination", samples.iter().map(|sample| sample.destination))
        .text("phase", samples.iter().map(|sample| phase_name(sample.phase)))
        .u64("bytes", samples.iter().map(|sample| sample.bytes))
        .u64("messages", samples.iter().map(|sample| sample.messages))
        .f64("minimum_s", samples.iter().map(|sample| sample.minimum_s))
        .f64("first_decile_s", samples.iter().map(|sample| sample.first_decile_s))
        .f64("median_s", samples.iter().map(|sample| sample.median_s))
        .f64("ninth_decile_s", samples.iter().map(|sample| sample.ninth_decile_s))
        .f64("maximum_s", samples.iter().map(|sample| sample.maximum_s))
}

fn decode_endpoints(table: &Columns) -> Result<Vec<Endpoint>, ArtifactError> {
    table.index("endpoint")?;
    let rows = table.text("host")?.into_iter().zip(table.u32("core")?).zip(table.text("state")?);
    let endpoint = |((host, core), state): ((String, u32), String)| {
        let state = match state.as_str() {
            "up" => NodeState::Up,
            "down" => NodeState::Down,
            other => {
                return Err(table.error("state", format!("holds `{other}`, which is neither up nor down")));
            }
        };
        Ok(Endpoint { host, core, state })
    };
    rows.map(endpoint).collect()
}

fn decode_samples(table: &Columns) -> Result<Vec<Sample>, ArtifactError> {
    let (source, destination) = (table.u32("source")?, table.u32("destination")?);
    let (phase, bytes, messages) = (table.text("phase")?, table.u64("bytes")?, table.u64("messages")?);
    let (minimum, first_decile) = (table.f64("minimum_s")?, table.f64("first_decile_s")?);
    let (median, ninth_decile) = (table.f64("median_s")?, table.f64("ninth_decile_s")?);
    let maximum = table.f64("maximum_s")?;
    let sample = |row: usize| {
        let phase = match phase[row].as_str() {
            "latency" => ProbePhase::Latency,
            "isolated" => ProbePhase::Isolated,
            "loaded" => ProbePhase::Loaded,
            other => return Err(table.error("phase", format!("holds `{other}`, which is no phase"))),
        };
        Ok(Sample {
            source: source[row],
            destination: destination[row],
            phase,
            bytes: bytes[row],
            messages: messages[row],
            minimum_s: minimum[row],
            first_decile_s: first_decile[row],
            median_s: median[row],
            ninth_decile_s: ninth_decile[row],
            maximum_s: maximum[row],
        })
    };
    (0..table.rows()).map(sample).collect()
}

rows!(encode_fits, decode_fits: Fit {
    u32 source,
    u32 destination,
    u64 from_bytes,
    f64 latency_s,
    optional_f64 bandwidth_bytes_per_s,
});
