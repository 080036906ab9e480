//! From a file that people saved to the artifact it came from: by its bytes, else by the comment in it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use hopmap_artifact::Folder;
use hopmap_durable::DurableError;

use crate::engine::Store;

/// Bytes at the begin of a file in which a comment is looked for.
const HEAD: u64 = 64 << 10;

/// The artifact that a file came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOrigin {
    /// It is, byte for byte, a file of this artifact.
    Bytes {
        /// Digest of the artifact.
        digest: String,
    },
    /// A comment in it names the artifact it was made from.
    Comment {
        /// Kind of the artifact.
        kind: String,
        /// Its digest.
        digest: String,
    },
}

/// Finds out where a file comes from; none if nothing says so.
pub fn origin_of(path: &Path, store: Option<&Store>) -> Result<Option<FileOrigin>, DurableError> {
    let read = || DurableError::io("read", path);
    let mut file = File::open(path).map_err(|error| read()(error))?;
    let size = file.metadata().map_err(|error| read()(error))?.len();
    let mut head = Vec::new();
    (&mut file).take(HEAD).read_to_end(&mut head).map_err(|error| read()(error))?;
    if let Some(store) = store {
        let candidates = candidates(store, size);
        if !candidates.is_empty() {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&head);
            hasher.update_reader(file).map_err(|error| read()(error))?;
            let hash = hasher.finalize().to_hex();
            let is_it = |(digest, name): &&(&str, &str)| {
                let folder = Folder::open(&store.artifact(digest)).ok();
                folder.is_some_and(|folder| {
                    folder.description().files.get(*name).is_some_and(|found| *found == *hash)
                })
            };
            if let Some((digest, _)) = candidates.iter().find(is_it) {
                return Ok(Some(FileOrigin::Bytes { digest: (*digest).to_owned() }));
            }
        }
    }
    Ok(comment(&String::from_utf8_lossy(&head)).map(|(kind, digest)| FileOrigin::Comment { kind, digest }))
}

/// Artifacts of a store with a file of this size, and the name of the file; in a fixed order.
fn candidates(store: &Store, size: u64) -> Vec<(&str, &str)> {
    let outputs = store.results().flat_map(|result| result.outputs.values());
    let mut found: Vec<(&str, &str)> = outputs
        .flat_map(|output| {
            output.files.iter().map(|(name, bytes)| (output.digest.as_str(), name.as_str(), *bytes))
        })
        .filter(|(_, _, bytes)| *bytes == size)
        .filter_map(|(digest, name, _)| Some((digest, name.strip_prefix("files/")?)))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The first `hopmap KIND DIGEST` in a text.
fn comment(text: &str) -> Option<(String, String)> {
    let is_digest = |word: &str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let found = words.windows(3).find(|words| words[0] == "hopmap" && is_digest(words[2]))?;
        Some((found[1].to_owned(), found[2].to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_found_in_whatever_form() {
        let digest = "0123456789abcdef".repeat(4);
        let found = Some(("mapping".to_owned(), digest.clone()));
        assert_eq!(comment(&format!("# hopmap mapping {digest}\nn01\n")), found);
        assert_eq!(comment(&format!("<?xml?>\n<!-- hopmap mapping {digest} -->")), found);
        assert_eq!(comment(&format!("# hopmap mapping {digest}0")), None);
        assert_eq!(comment("hopmap"), None);
    }

    #[test]
    fn a_file_without_a_comment_came_from_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
        assert_eq!(origin_of(&path, None).unwrap(), None);
        assert!(origin_of(folder.path().join("y").as_path(), None).is_err());
    }
}
