//! `events`: table `messages`.

use hopmap_model::Events;

use crate::{ArtifactError, Codec, Contents, Folder};

impl Codec for Events {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new()
            .written_table("messages", self.table(), self.rows())
            .metric("messages", self.rows() as f64)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let rows = folder.description().tables.get("messages").map(|table| table.rows);
        let rows = rows.ok_or_else(|| ArtifactError::Damaged {
            path: folder.path().into(),
            reason: "it holds no table `messages`".into(),
        })?;
        Ok(Self::new(folder.table_path("messages"), rows))
    }
}
