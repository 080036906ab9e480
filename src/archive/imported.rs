//! The mark of a project that was imported from an archive: somebody else chose the commands and copies of its pipelines.
//!
//! The mark is beside the store and not in it: people remove stores to compute everything again. Consent is a random number in
//! both. No archive can bring one that fits, because `import` refuses names that hopmap reserves, and a `save` to such a name needs
//! consent itself.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use hopmap_durable::{DurableError, replace_file};
use hopmap_model::open_input;

use crate::pipeline::{Pipeline, STORE_FOLDER};

const NAME: &str = ".hopmap-imported";
const ASK: &str = "ask before commands run\n";
const ALLOWED: &str = "commands may run: ";
/// The file of the store with the number of the consent.
const CONSENT: &str = "consent";

/// How names begin that only hopmap gives: its stores, marks and temporary folders.
const RESERVED: &str = ".hopmap";

/// Names whose files other programs run unasked: hooks and drivers of version control, and commands of shells and editors.
const RUN_BY_OTHERS: [&str; 9] =
    [".git", ".hg", ".svn", ".bzr", ".envrc", ".direnv", ".vscode", ".idea", ".devcontainer"];

/// Whether a part of a path is, on any file system, a name that only hopmap gives or whose files other programs run: whatever its case,
/// how it is composed, or as a short name of Windows. Of hidden names with other letters than ASCII this cannot be known without the
/// tables of the file system.
pub(crate) fn is_reserved(part: &str) -> bool {
    /// What file systems ignore, or take for a dot.
    const DOTS: fn(char) -> bool = |c| {
        matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
            || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{2024}' | '\u{fe52}' | '\u{ff0e}')
    };
    if !part.is_ascii() {
        return part.starts_with('.') || part.starts_with(DOTS);
    }
    let lower = part.to_ascii_lowercase();
    let plain = lower.split(':').next().unwrap_or_default().trim_end_matches([' ', '.']);
    lower.starts_with(RESERVED)
        || ["hopmap~", "git~"].iter().any(|short| lower.starts_with(short))
        || RUN_BY_OTHERS.contains(&plain)
}

/// Marks a folder as imported.
pub(super) fn mark(folder: &Path) -> Result<(), DurableError> {
    replace_file(&folder.join(NAME), ASK.as_bytes())
}

/// Whether the user has allowed what a marked folder starts and writes: its mark and its store have the same number.
fn is_allowed(folder: &Path) -> bool {
    let read = |path: PathBuf| open_input(&path).and_then(std::io::read_to_string);
    let (Ok(mark), Ok(consent)) = (read(folder.join(NAME)), read(folder.join(STORE_FOLDER).join(CONSENT)))
    else {
        return false;
    };
    mark.strip_prefix(ALLOWED).is_some_and(|number| !number.trim().is_empty() && number == consent)
}

/// An imported project whose commands have not been allowed yet.
#[derive(Debug)]
pub(crate) struct ImportedProject {
    /// The marked folders that do not allow them, the nearest first.
    folders: Vec<PathBuf>,
}

impl ImportedProject {
    /// The project of a folder, if it is one: a mark further up holds as well as the nearest.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        let is_marked = |folder: &&Path| folder.join(NAME).symlink_metadata().is_ok();
        let marked = folder.ancestors().filter(is_marked).filter(|folder| !is_allowed(folder));
        let folders: Vec<PathBuf> = marked.map(Path::to_owned).collect();
        (!folders.is_empty()).then_some(Self { folders })
    }

    /// Allows its commands and copies from now on.
    pub(crate) fn allow(&self) -> Result<(), DurableError> {
        let source = Path::new("/dev/urandom");
        for folder in &self.folders {
            let mut bytes = [0; 16];
            let read = std::fs::File::open(source).and_then(|mut file| file.read_exact(&mut bytes));
            read.map_err(DurableError::io("read", source))?;
            let number = format!("{:032x}\n", u128::from_ne_bytes(bytes));
            let store = folder.join(STORE_FOLDER);
            std::fs::create_dir_all(&store).map_err(DurableError::io("create", &store))?;
            replace_file(&store.join(CONSENT), number.as_bytes())?;
            replace_file(&folder.join(NAME), format!("{ALLOWED}{number}").as_bytes())?;
        }
        Ok(())
    }

    /// Where its pipeline would write copies that need consent: outside of the project, or under names that only hopmap gives.
    pub(crate) fn outside<'a>(&self, pipeline: &'a Pipeline) -> Vec<&'a Path> {
        let of_cells = pipeline.cells.iter().flat_map(|cell| &cell.saves).map(|save| save.path.as_path());
        let of_tables = pipeline.tables.iter().filter_map(|table| table.save.as_deref());
        of_cells.chain(of_tables).filter(|path| !self.has(path)).collect()
    }

    /// Whether a copy belongs to the project, wherever links lead.
    fn has(&self, path: &Path) -> bool {
        let there = path.ancestors().find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
        let Some((folder, real)) = there else { return false };
        let Ok(rest) = path.strip_prefix(folder) else { return false };
        let is_plain = |part: Component<'_>| match part {
            Component::Normal(name) => name.to_str().is_some_and(|name| !is_reserved(name)),
            _ => false,
        };
        let place = real.join(rest);
        let inside = self.folders.first().and_then(|folder| place.strip_prefix(folder).ok());
        inside.is_some_and(|inside| inside.components().all(is_plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_folder_asks_until_it_is_allowed_and_so_do_folders_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("a/b");
        std::fs::create_dir_all(&inside).unwrap();
        assert!(ImportedProject::of(&inside).is_none());
        mark(folder.path()).unwrap();
        assert!(ImportedProject::of(folder.path()).is_some());
        ImportedProject::of(&inside).unwrap().allow().unwrap();
        assert!(ImportedProject::of(&inside).is_none());
        // A second project inside is asked for, and the consent is bound to its store.
        mark(&inside).unwrap();
        assert!(ImportedProject::of(folder.path()).is_none());
        ImportedProject::of(&inside).unwrap().allow().unwrap();
        assert!(ImportedProject::of(&inside).is_none());
        std::fs::remove_dir_all(folder.path().join(STORE_FOLDER)).unwrap();
        assert!(ImportedProject::of(&inside).is_some());
    }

    #[test]
    fn a_mark_inside_a_project_does_not_allow_what_one_further_up_forbids() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("sub");
        std::fs::create_dir_all(inside.join(STORE_FOLDER)).unwrap();
        mark(folder.path()).unwrap();
        for text in
            ["commands may run\n", "commands may run: ", "commands may run: \n", "commands may run: 7\n"]
        {
            std::fs::write(inside.join(NAME), text).unwrap();
            assert!(ImportedProject::of(&inside).is_some(), "{text}");
        }
        std::fs::write(inside.join(STORE_FOLDER).join(CONSENT), "7\n").unwrap();
        assert_eq!(ImportedProject::of(&inside).unwrap().folders.len(), 1);
    }

    #[test]
    fn copies_belong_to_a_project_or_not_wherever_links_lead() {
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path().canonicalize().unwrap();
        let project = outer.join("project");
        std::fs::create_dir_all(project.join("out")).unwrap();
        std::os::unix::fs::symlink(&outer, project.join("link")).unwrap();
        mark(&project).unwrap();
        let imported = ImportedProject::of(&project.join("out")).unwrap();
        for (path, is_inside) in [
            ("out/x", true),
            ("new/folder/x", true),
            ("out/../x", true),
            ("new/../x", false),
            ("../x", false),
            ("/etc/cron.d/x", false),
            ("link/x", false),
            ("out/.hopmap/consent", false),
            ("sub/.HopMap-imported", false),
        ] {
            assert_eq!(imported.has(&project.join(path)), is_inside, "{path}");
        }
    }

    #[test]
    fn reserved_names_are_found_however_they_are_written() {
        for name in [
            ".hopmap",
            ".HOPMAP",
            ".hopmap-imported",
            ".Hopmap-Imported",
            ".hopmap ",
            ".hopmap.",
            "HOPMAP~1",
            ".hopmap::$INDEX_ALLOCATION",
            ".hop\u{200c}map",
            ".git",
            ".Git",
            ".git . ",
            ".git::$INDEX_ALLOCATION",
            "GIT~1",
            ".envrc",
            ".vscode",
            "\u{feff}.hopmap",
            "\u{2024}hopmap",
            ".ｈopmap",
        ] {
            assert!(is_reserved(name), "{name:?}");
        }
        for name in [
            "hopmap",
            "hopmap.toml",
            ".gitignore",
            "git",
            ".c.csv",
            "données.csv",
            "データ.csv",
            "a.hopmap",
            "~",
            ".",
        ] {
            assert!(!is_reserved(name), "{name:?}");
        }
    }
}
