//! `trace-summary`: tables `ranks` and `heaviest`; `phases` if phases were told apart. The totals are its metrics.

use hopmap_model::{Edge, PhaseSummary, RankSummary, TraceSummary};

use crate::{ArtifactError, Codec, Contents, Folder, Table};

impl Codec for TraceSummary {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let ranks = || self.ranks.iter();
        let by_rank = Table::new("ranks")
            .u32("rank", 0..self.ranks.len() as u32)
            .u64("messages_sent", ranks().map(|rank| rank.messages_sent))
            .u64("bytes_sent", ranks().map(|rank| rank.bytes_sent))
            .u64("messages_received", ranks().map(|rank| rank.messages_received))
            .u64("bytes_received", ranks().map(|rank| rank.bytes_received))
            .u32("partners", ranks().map(|rank| rank.partners))
            .optional_f64("compute_s", ranks().map(|rank| rank.compute_s))
            .optional_f64("communication_s", ranks().map(|rank| rank.communication_s))
            .optional_f64("collective_s", ranks().map(|rank| rank.collective_s));
        let pairs = || self.heaviest.iter();
        let heaviest = Table::new("heaviest")
            .u32("source", pairs().map(|pair| pair.source))
            .u32("destination", pairs().map(|pair| pair.destination))
            .u64("messages", pairs().map(|pair| pair.messages))
            .u64("bytes", pairs().map(|pair| pair.bytes));
        let contents = Contents::new().table(by_rank).table(heaviest).metrics(&self.totals);
        if self.phases.is_empty() {
            return contents;
        }
        let phases = || self.phases.iter();
        contents.table(
            Table::new("phases")
                .u32("phase", 0..self.phases.len() as u32)
                .optional_text("name", phases().map(|phase| phase.name.as_deref()))
                .u64("messages", phases().map(|phase| phase.messages))
                .u64("bytes", phases().map(|phase| phase.bytes))
                .optional_f64("compute_s", phases().map(|phase| phase.compute_s)),
        )
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        Ok(Self {
            totals: folder.description().metrics.clone(),
            ranks: ranks(folder)?,
            heaviest: heaviest(folder)?,
            phases: phases(folder)?,
        })
    }
}

fn ranks(folder: &Folder) -> Result<Vec<RankSummary>, ArtifactError> {
    let table = folder.table("ranks")?;
    table.index("rank")?;
    let (messages_sent, bytes_sent) = (table.u64("messages_sent")?, table.u64("bytes_sent")?);
    let (messages_received, bytes_received) = (table.u64("messages_received")?, table.u64("bytes_received")?);
    let partners = table.u32("partners")?;
    let (compute, communication) = (table.optional_f64("compute_s")?, table.optional_f64("communication_s")?);
    let collective = table.optional_f64("collective_s")?;
    let rank = |row: usize| RankSummary {
        messages_sent: messages_sent[row],
        bytes_sent: bytes_sent[row],
        messages_received: messages_received[row],
        bytes_received: bytes_received[row],
        partners: partners[row],
        compute_s: compute[row],
        communication_s: communication[row],
        collective_s: collective[row],
    };
    Ok((0..table.rows()).map(rank).collect())
}

fn heaviest(folder: &Folder) -> Result<Vec<Edge>, ArtifactError> {
    let table = folder.table("heaviest")?;
    let (source, destination) = (table.u32("source")?, table.u32("destination")?);
    let (messages, bytes) = (table.u64("messages")?, table.u64("bytes")?);
    let pair = |row: usize| Edge {
        source: source[row],
        destination: destination[row],
        messages: messages[row],
        bytes: bytes[row],
    };
    Ok((0..table.rows()).map(pair).collect())
}

fn phases(folder: &Folder) -> Result<Vec<PhaseSummary>, ArtifactError> {
    if !folder.description().tables.contains_key("phases") {
        return Ok(Vec::new());
    }
    let table = folder.table("phases")?;
    table.index("phase")?;
    let (messages, bytes) = (table.u64("messages")?, table.u64("bytes")?);
    let rows = table.optional_text("name")?.into_iter().zip(table.optional_f64("compute_s")?);
    let phase = |((name, compute_s), (messages, bytes))| PhaseSummary { name, messages, bytes, compute_s };
    Ok(rows.zip(messages.into_iter().zip(bytes)).map(phase).collect())
}
