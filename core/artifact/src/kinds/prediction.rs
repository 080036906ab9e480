//! `prediction`: tables `ranks`, `links` and, if requested, `intervals`.

use hopmap_model::{Activity, Interval, LinkUse, Prediction, RankTimes, to_u32};

use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

const ACTIVITIES: [(Activity, &str); 3] =
    [(Activity::Computing, "computing"), (Activity::Sending, "sending"), (Activity::Waiting, "waiting")];

impl Codec for Prediction {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let ranks = Table::new("ranks").u32("rank", 0..to_u32(self.ranks.len()));
        let contents = Contents::new()
            .table(encode_ranks(ranks, &self.ranks))
            .table(encode_links(Table::new("links"), &self.links))
            .metrics(&self.metrics)
            .attribute("contended", self.is_contended.into())
            .attribute("calibrated", self.is_calibrated.into())
            .attribute("complete", self.complete.into());
        match self.intervals.is_empty() {
            true => contents,
            false => contents.table(encode_intervals(Table::new("intervals"), &self.intervals)),
        }
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let ranks = folder.table("ranks")?;
        ranks.index("rank")?;
        let intervals = folder.optional_table("intervals")?;
        let prediction = Self {
            ranks: decode_ranks(&ranks)?,
            links: decode_links(&folder.table("links")?)?,
            intervals: intervals.map_or_else(|| Ok(Vec::new()), |table| decode_intervals(&table))?,
            metrics: folder.description().metrics.clone(),
            is_contended: folder.attribute("contended")?,
            is_calibrated: folder.attribute::<Option<bool>>("calibrated")?.unwrap_or(false),
            complete: folder.attribute("complete")?,
        };
        prediction.check().map_err(|error| folder.invalid(error))?;
        Ok(prediction)
    }
}

rows!(encode_ranks, decode_ranks: RankTimes {
    u32 slot,
    f64 computing_s,
    f64 sending_s,
    f64 waiting_s,
    f64 finish_s,
});

rows!(encode_links, decode_links: LinkUse { u32 link, text source, text destination, f64 bytes, f64 saturated });

rows!(encode_intervals, decode_intervals: Interval {
    u32 rank,
    f64 start_s,
    f64 finish_s,
    text activity in ACTIVITIES,
    optional_u32 peer,
});
