//! Files by a pattern such as `traces/**/*.otf2`.
//!
//! The crate `glob` defines the patterns. The walk is our own, because that crate silently skips names that are not
//! UTF-8.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

/// Name of the folder of a store, which no pattern of files looks into.
pub(crate) const STORE_FOLDER: &str = ".hopmap";

/// One level of a pattern.
enum Part {
    /// A literal name.
    Name(String),
    /// `*.otf2`
    Like(Pattern),
    /// `**`: any number of folders.
    Folders,
}

/// Files and folders that fit a pattern, in the order of their names; as the pattern, they are relative to `base` or absolute.
pub(crate) fn find(base: &Path, pattern: &str) -> Result<Vec<String>, String> {
    let parts = parts(pattern)?;
    let mut search = Search { base, found: BTreeSet::new() };
    let start = if pattern.starts_with('/') { Path::new("/") } else { Path::new("") };
    search.descend(start, &parts)?;
    let text = |path: PathBuf| {
        path.into_os_string()
            .into_string()
            .map_err(|name| format!("the name `{}` fits `{pattern}` and is not UTF-8", name.display()))
    };
    search.found.into_iter().map(text).collect()
}

fn parts(pattern: &str) -> Result<Vec<Part>, String> {
    let mut parts: Vec<Part> = Vec::new();
    for text in pattern.split('/').filter(|text| !text.is_empty() && *text != ".") {
        match text {
            "**" if matches!(parts.last(), Some(Part::Folders)) => {}
            "**" => parts.push(Part::Folders),
            _ if !text.contains(['*', '?', '[']) => parts.push(Part::Name(text.to_owned())),
            _ => {
                let like = Pattern::new(text)
                    .map_err(|error| format!("`{pattern}` is not a valid pattern: {}", error.msg))?;
                parts.push(Part::Like(like));
            }
        }
    }
    if let Some(Part::Folders) = parts.last() {
        parts.push(Part::Like(Pattern::new("*").unwrap_or_default()));
    }
    Ok(parts)
}

struct Search<'a> {
    base: &'a Path,
    found: BTreeSet<PathBuf>,
}

impl Search<'_> {
    fn descend(&mut self, place: &Path, parts: &[Part]) -> Result<(), String> {
        let Some((part, rest)) = parts.split_first() else {
            self.found.insert(place.to_owned());
            return Ok(());
        };
        match part {
            Part::Name(name) => {
                let next = place.join(name);
                let is_there = name != STORE_FOLDER && self.base.join(&next).symlink_metadata().is_ok();
                if is_there { self.descend(&next, rest) } else { Ok(()) }
            }
            Part::Like(pattern) => {
                const OPTIONS: MatchOptions = MatchOptions {
                    case_sensitive: true,
                    require_literal_separator: true,
                    require_literal_leading_dot: true,
                };
                for (name, _) in self.entries(place)? {
                    if name != STORE_FOLDER && pattern.matches_with(&name.to_string_lossy(), OPTIONS) {
                        self.descend(&place.join(name), rest)?;
                    }
                }
                Ok(())
            }
            Part::Folders => {
                self.descend(place, rest)?;
                for (name, is_folder) in self.entries(place)? {
                    if is_folder && !name.to_string_lossy().starts_with('.') {
                        self.descend(&place.join(name), parts)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// What is in a folder, and whether it is a folder itself; links are none, so that no walk goes in circles.
    fn entries(&self, place: &Path) -> Result<Vec<(OsString, bool)>, String> {
        let folder = self.base.join(place);
        let cannot = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(cannot(error)),
        };
        let entry = |entry: std::io::Result<std::fs::DirEntry>| {
            let entry = entry?;
            Ok((entry.file_name(), entry.file_type()?.is_dir()))
        };
        entries.map(entry).collect::<Result<_, _>>().map_err(cannot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn files_are_found_in_the_order_of_their_names() {
        let folder =
            folder(&["t/b/x.csv", "t/a/x.csv", "t/a/y.txt", "t/x.csv", "t/a/deep/er/x.csv", "x.csv"]);
        let find = |pattern: &str| find(folder.path(), pattern).unwrap().join(" ");
        assert_eq!(find("t/**/*.csv"), "t/a/deep/er/x.csv t/a/x.csv t/b/x.csv t/x.csv");
        assert_eq!(find("./t/*/x.csv"), "t/a/x.csv t/b/x.csv");
        assert_eq!(find("t/?"), "t/a t/b");
        assert_eq!(find("t/[!b]/*"), "t/a/deep t/a/x.csv t/a/y.txt");
        assert_eq!(find("t/../x.*"), "t/../x.csv");
        assert_eq!(find("**/**/y.txt"), "t/a/y.txt");
        assert_eq!(find("t/b/**"), "t/b/x.csv");
        assert_eq!(find("none/*.csv"), "");
        assert_eq!(find("x.csv/*"), "");
        let absolute = format!("{}/t/b/*", folder.path().display());
        assert_eq!(find(&absolute), format!("{}/t/b/x.csv", folder.path().display()));
    }

    #[test]
    fn hidden_files_and_the_store_are_skipped() {
        let folder = folder(&[".hopmap/a.csv", ".git/b.csv", ".c.csv", "d.csv", "e/.hopmap/f.csv"]);
        let find = |pattern: &str| find(folder.path(), pattern).unwrap().join(" ");
        assert_eq!(find("**/*.csv"), "d.csv");
        assert_eq!(find(".hopmap/*"), "");
        assert_eq!(find(".h*/*"), "");
        assert_eq!(find(".*.csv"), ".c.csv");
    }

    #[test]
    fn a_cycle_of_links_does_not_stop_the_search() {
        let folder = folder(&["a/x.csv"]);
        std::os::unix::fs::symlink("..", folder.path().join("a/up")).unwrap();
        assert_eq!(find(folder.path(), "**/*.csv").unwrap(), ["a/x.csv"]);
    }

    #[test]
    fn a_matching_name_that_is_not_utf_8_is_an_error() {
        let folder = folder(&["a.csv"]);
        std::fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.csv")), "").unwrap();
        let error = find(folder.path(), "*.csv").unwrap_err();
        assert_eq!(error, "the name `\u{fffd}.csv` fits `*.csv` and is not UTF-8");
        assert_eq!(find(folder.path(), "*.txt").unwrap(), [""; 0]);
    }

    #[test]
    fn an_invalid_pattern_is_refused_with_the_reason() {
        let folder = folder(&[]);
        assert!(find(folder.path(), "a/[x").unwrap_err().starts_with("`a/[x` is not a valid pattern: "));
        assert!(find(folder.path(), "a**/x").is_err());
    }
}
