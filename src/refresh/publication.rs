//! The publish folder and its history: snapshots of the machine, and how many of them are kept.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopmap_artifact::{ArtifactError, Codec, Folder};
use hopmap_changes::{Change, Machine, Thresholds, changes};
use hopmap_durable::{
    DurableError, Lock, Staging, crash_point, is_leftover, replace_file, replace_symlink, sync_folder,
};
use hopmap_launchers::shell_word;
use hopmap_model::{Measurements, SystemGraph};
use jiff::Timestamp;
use miette::Diagnostic;
use serde_json::json;

use crate::accepted::{Accepted, AcceptedError, write_json};
use crate::engine::entries;

/// Folders that are made before the lock.
const FIRST: [&str; 2] = ["history", "state"];

/// Files and folders of the state.
const STATE: [&str; 7] =
    ["lock", "store", "pending", "told", "report.html", "refreshes.jsonl", "consumer.log"];

/// Result of work on a publish folder.
pub(super) type Result<T = (), E = RefreshError> = std::result::Result<T, E>;

/// The publish folder.
#[derive(Debug)]
pub struct Publication {
    root: PathBuf,
}

/// A snapshot that was published.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) entry: Entry,
    pub(super) machine: Machine,
}

impl Publication {
    /// A publish folder, from the root; it need not exist.
    #[must_use]
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Creates what is missing and takes the lock.
    pub(super) fn lock(&self, holder: &str) -> Result<Lock> {
        self.refuse_foreign()?;
        for folder in [self.history(), self.state()] {
            fs::create_dir_all(&folder).map_err(DurableError::io("create", &folder))?;
        }
        Lock::try_exclusive(&self.state().join("lock"), holder).map_err(|error| match error {
            DurableError::Busy { holder, .. } => RefreshError::Busy { path: self.root.clone(), holder },
            error => error.into(),
        })
    }

    /// Rejects a folder with other content.
    fn refuse_foreign(&self) -> Result {
        let holds_nothing_else = || -> Result<bool> {
            let is_own = |entry: &fs::DirEntry| FIRST.iter().any(|name| entry.file_name() == **name);
            Ok(entries(&self.root)?.iter().all(is_own)
                && entries(&self.state())?.is_empty()
                && entries(&self.history())?.is_empty())
        };
        // A first refresh that failed or was killed left nothing but files of the state and whole entries.
        let was_begun = || -> Result<bool> {
            let is_state = |entry: &fs::DirEntry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                STATE.contains(&&*name) || is_leftover(&name)
            };
            let is_entry = |entry: &fs::DirEntry| {
                is_leftover(&entry.file_name().to_string_lossy()) || read_machine(&entry.path()).is_ok()
            };
            let is_own = |entry: &fs::DirEntry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                FIRST.iter().chain(&["accepted.json"]).any(|own| name == **own) || is_leftover(&name)
            };
            Ok(self.state().join("lock").is_file()
                && entries(&self.root)?.iter().all(is_own)
                && entries(&self.state())?.iter().all(is_state)
                && entries(&self.history())?.iter().all(is_entry))
        };
        let is_published = self.current().is_ok_and(|entry| entry.is_some());
        match is_published || holds_nothing_else()? || was_begun()? {
            true => Ok(()),
            false => Err(RefreshError::Foreign(self.root.clone())),
        }
    }

    /// Removes what killed refreshes left behind. The caller holds the lock.
    pub(super) fn tidy(&self) -> Result {
        for folder in [&self.root, &self.history(), &self.state()] {
            for path in entries(folder)?.iter().map(fs::DirEntry::path) {
                if path.file_name().is_some_and(|name| is_leftover(&name.to_string_lossy())) {
                    let is_folder = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
                    let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                    removed.map_err(DurableError::io("remove", &path))?;
                }
            }
        }
        Ok(())
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The link to the published entry.
    pub(crate) fn current_link(&self) -> PathBuf {
        self.root.join("current")
    }

    /// The file with the accepted entry.
    pub(crate) fn accepted_file(&self) -> PathBuf {
        self.root.join("accepted.json")
    }

    /// The folder of all entries.
    #[must_use]
    pub fn history(&self) -> PathBuf {
        self.root.join("history")
    }

    /// The folder with the state of refreshes.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// The folder of an entry.
    #[must_use]
    pub fn folder(&self, entry: &Entry) -> PathBuf {
        self.history().join(&entry.0)
    }

    fn pending_file(&self) -> PathBuf {
        self.state().join("pending")
    }

    fn told_file(&self) -> PathBuf {
        self.state().join("told")
    }

    /// All entries, in the order of their names.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let names = entries(&self.history())?.into_iter().map(|entry| entry.file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let mut entries: Vec<Entry> = names.map(Entry).filter(|entry| entry.made_s().is_some()).collect();
        entries.sort();
        Ok(entries)
    }

    /// The entry that is published.
    pub fn current(&self) -> Result<Option<Entry>> {
        let link = self.current_link();
        match fs::read_link(&link) {
            Ok(target) => self.entry_of(&target).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DurableError::io("read", &link)(error).into()),
        }
    }

    /// The entry that is accepted.
    pub fn accepted(&self) -> Result<Option<Entry>> {
        match Accepted::read(&self.accepted_file()) {
            Ok(accepted) => {
                let folder = accepted.artifact.parent().unwrap_or(Path::new(""));
                self.entry_of(folder).map(Some)
            }
            Err(AcceptedError::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The entry that a path relative to the publish folder points to.
    fn entry_of(&self, path: &Path) -> Result<Entry> {
        let name =
            path.strip_prefix("history").ok().and_then(Path::to_str).filter(|name| !name.contains('/'));
        match name {
            Some(name) if self.history().join(name).is_dir() => Ok(Entry(name.to_owned())),
            _ => Err(RefreshError::NoEntry(self.root.join(path))),
        }
    }

    /// The published machine, checked byte by byte.
    pub(super) fn read_current(&self) -> Result<Option<Published>> {
        let damaged = |source| RefreshError::Damaged { path: self.current_link(), source: Box::new(source) };
        let Some(entry) = self.current().map_err(damaged)? else { return Ok(None) };
        let machine = read_machine(&self.folder(&entry)).map_err(damaged)?;
        Ok(Some(Published { entry, machine }))
    }

    /// The accepted machine, checked byte by byte.
    pub(super) fn read_accepted(&self) -> Result<Option<Published>> {
        let damaged = |source| RefreshError::Damaged { path: self.accepted_file(), source: Box::new(source) };
        let Some(entry) = self.accepted().map_err(damaged)? else { return Ok(None) };
        let accepted = Accepted::read(&self.accepted_file())?;
        let folder = self.folder(&entry);
        let machine = read_machine(&folder).map_err(damaged)?;
        let system = Folder::open(&folder.join(SYSTEM)).map_err(|error| damaged(error.into()))?;
        match accepted.digest == system.digest() {
            true => Ok(Some(Published { entry, machine })),
            false => Err(damaged(RefreshError::NoEntry(folder.join(&accepted.digest[..12])))),
        }
    }

    /// Adds an entry to the history: complete and on disk when this returns.
    pub(super) fn add(&self, machine: &Machine, before: Option<&Entry>, changes: &[Change]) -> Result<Entry> {
        let staging = Staging::new(&self.history())?;
        let digest = write_machine(&staging, machine)?;
        write_changes(staging.path(), before, changes)?;
        let entry = self.free_name(&digest);
        staging.commit(&self.folder(&entry))?;
        Ok(entry)
    }

    /// A name that no entry has, even if the clock was set back.
    fn free_name(&self, digest: &str) -> Entry {
        let stamp = Timestamp::now().strftime("%Y-%m-%dT%H-%M-%SZ").to_string();
        let name = format!("{stamp}-{}", &digest[..12]);
        let names = std::iter::once(name.clone()).chain((2_u32..).map(|number| format!("{name}.{number}")));
        let mut free = names.map(Entry).filter(|entry| !self.folder(entry).exists());
        free.next().unwrap_or(Entry(name))
    }

    /// Publishes an entry.
    pub(super) fn point_to(&self, entry: &Entry) -> Result {
        Ok(replace_symlink(&self.current_link(), &Path::new("history").join(&entry.0))?)
    }

    /// Accepts an entry that its consumer has taken.
    pub(super) fn accept(&self, entry: &Entry) -> Result {
        self.set_accepted(entry)?;
        self.clear(&self.told_file())?;
        self.clear_pending()
    }

    /// Remembers what the consumer knows, before another entry is accepted without it.
    pub(super) fn keep_told(&self) -> Result {
        if self.told().is_some() {
            return Ok(());
        }
        let known = self.accepted().ok().flatten().map_or(String::new(), |entry| entry.0);
        Ok(replace_file(&self.told_file(), known.as_bytes())?)
    }

    /// The entry that the consumer was told of last, if it is not the accepted one.
    fn told(&self) -> Option<Entry> {
        fs::read_to_string(self.told_file()).ok().map(|text| Entry(text.trim_end().to_owned()))
    }

    /// The machine that the consumer was told of last: the accepted one, unless another was accepted without it. None if that cannot be
    /// read any more: everything is news then.
    pub(super) fn read_told(&self) -> Result<Option<Published>> {
        let Some(entry) = self.told() else { return self.read_accepted() };
        Ok(read_machine(&self.folder(&entry)).ok().map(|machine| Published { entry, machine }))
    }

    /// Makes an entry the accepted one. Nothing changes if it is.
    pub(super) fn set_accepted(&self, entry: &Entry) -> Result {
        let system = Folder::open(&self.folder(entry).join(SYSTEM))?;
        let place = self.accepted_file();
        Accepted::of(&system, &place, None)?.write(&place)?;
        Ok(())
    }

    /// Records that the consumer has to run, with the changes it has to process.
    pub(super) fn set_pending(&self, changes: &Path) -> Result {
        let text = changes.strip_prefix(&self.root).unwrap_or(changes).to_string_lossy().into_owned();
        Ok(replace_file(&self.pending_file(), text.as_bytes())?)
    }

    /// The changes that the consumer has yet to process.
    pub(super) fn pending(&self) -> Option<PathBuf> {
        let text = fs::read_to_string(self.pending_file()).ok()?;
        Some(self.root.join(text.trim_end()))
    }

    fn clear_pending(&self) -> Result {
        self.clear(&self.pending_file())
    }

    /// Removes a file of the state, if it is there.
    fn clear(&self, file: &Path) -> Result {
        match fs::remove_file(file) {
            Ok(()) => {
                crash_point("refresh.pending-cleared", file);
                Ok(sync_folder(&self.state())?)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(DurableError::io("remove", file)(error).into()),
        }
    }

    /// Whether the consumer has yet to run for the published machine.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.pending().is_some() || self.current().ok().flatten() != self.accepted().ok().flatten()
    }
}

/// Folder of the system graph in an entry.
pub(super) const SYSTEM: &str = "system";
/// Folder of the measurements in an entry.
pub(super) const MEASUREMENTS: &str = "measurements";
/// Changes since the entry that was accepted before.
pub(super) const CHANGES: &str = "changes.json";

/// An entry of the history by its name: its time and the first digits of its digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry(pub String);

impl Entry {
    /// Its time in seconds since 1970; none if its name was changed.
    pub(crate) fn made_s(&self) -> Option<i64> {
        let (date, time) = self.0.get(..20)?.split_once('T')?;
        let time = time.replace('-', ":");
        Some(format!("{date}T{time}").parse::<Timestamp>().ok()?.as_second())
    }
}

/// Reads the machine in a folder: an entry, or a folder with a system graph and optional measurements. Every byte is checked.
pub fn read_machine(folder: &Path) -> Result<Machine> {
    let measured = folder.join(MEASUREMENTS);
    Ok(Machine {
        system: Folder::read::<SystemGraph>(&folder.join(SYSTEM))?,
        measurements: if measured.is_dir() { Some(Folder::read::<Measurements>(&measured)?) } else { None },
    })
}

/// Fills the folder of a new entry, reads it back, and returns its digest.
pub(super) fn write_machine(staging: &Staging, machine: &Machine) -> Result<String> {
    let folder = staging.path();
    let mut digests = write(&folder.join(SYSTEM), &machine.system)?;
    if let Some(measured) = &machine.measurements {
        digests.push_str(&write(&folder.join(MEASUREMENTS), measured)?);
    }
    read_machine(folder)?;
    Ok(blake3::hash(digests.as_bytes()).to_hex().to_string())
}

fn write<C: Codec>(folder: &Path, value: &C) -> Result<String> {
    fs::create_dir(folder).map_err(DurableError::io("create", folder))?;
    Ok(Folder::write(folder, value)?.digest().to_owned())
}

/// Writes changes as `changes.json` and `changes.txt`.
pub(super) fn write_changes(folder: &Path, before: Option<&Entry>, found: &[Change]) -> Result {
    let value = json!({
        "format": 1,
        "before": before.map(|entry| &entry.0),
        "changes": found.iter().map(Change::as_json).collect::<Vec<_>>(),
    });
    write_json(&folder.join(CHANGES), &value)?;
    let mut lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    if before.is_none() {
        lines.push("first snapshot".to_owned());
    }
    Ok(replace_file(&folder.join("changes.txt"), (lines.join("\n") + "\n").as_bytes())?)
}

/// Changes between two machines.
pub(super) fn differences(before: &Machine, after: &Machine, thresholds: &Thresholds) -> Vec<Change> {
    changes(&before.snapshot(), &after.snapshot(), thresholds)
}

/// How much of the history is kept. The published and the accepted entry are always kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retention {
    /// Maximum number of entries.
    pub(crate) entries: usize,
    /// Age after which entries are removed.
    pub(crate) age: Option<Duration>,
}

impl Retention {
    /// The entries to remove, of all in the order of their names. Names are not reliable within a second or after the clock was set
    /// back: entries in use count as the newest, and an entry from the future is not old.
    fn gone<'e>(self, entries: &'e [Entry], used: &[Entry], now_s: i64) -> Vec<&'e Entry> {
        let unused: Vec<&Entry> = entries.iter().filter(|entry| !used.contains(entry)).collect();
        let surplus = unused.len().saturating_sub(self.entries.saturating_sub(entries.len() - unused.len()));
        let is_old = |entry: &Entry| {
            let age = entry.made_s().and_then(|made| u64::try_from(now_s - made).ok());
            self.age.zip(age).is_some_and(|(most, age)| age > most.as_secs())
        };
        let candidates = unused.into_iter().enumerate();
        let gone = candidates.filter(|(index, entry)| *index < surplus || is_old(entry));
        gone.map(|(_, entry)| entry).collect()
    }

    /// Removes entries that are not kept. Removal is atomic: a kill leaves the entry or nothing.
    pub(super) fn apply(self, publication: &Publication) -> Result {
        let entries = publication.entries()?;
        let used = [publication.current()?, publication.accepted()?, publication.told()];
        let used: Vec<Entry> = used.into_iter().flatten().collect();
        for entry in self.gone(&entries, &used, Timestamp::now().as_second()) {
            let folder = publication.folder(entry);
            let aside = Staging::new(&publication.history())?;
            let place = aside.path().join(&entry.0);
            fs::rename(&folder, &place).map_err(DurableError::io("remove", &folder))?;
            crash_point("refresh.entry-aside", &folder);
            sync_folder(&publication.history())?;
            fs::remove_dir_all(aside.path()).map_err(DurableError::io("remove", &place))?;
            crash_point("refresh.entry-removed", &folder);
        }
        Ok(())
    }
}

/// A failed refresh. The published machine has not changed unless the message says so.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum RefreshError {
    /// An operation of the system failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// An artifact is damaged.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Artifact(#[from] ArtifactError),
    /// The accepted state cannot be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Accepted(#[from] AcceptedError),
    /// Another refresh is running.
    #[error("{} is being refreshed by {holder}", path.display())]
    #[diagnostic(code(refresh::busy), help("wait until it ends; the lock is released with the process"))]
    Busy {
        /// The publish folder.
        path: PathBuf,
        /// Process, host and command of the holder.
        holder: String,
    },
    /// The folder holds something else.
    #[error("{} holds something that is not a published topology", .0.display())]
    #[diagnostic(
        code(refresh::foreign),
        help("name a new folder, an empty one, or one that `hopmap topology refresh` made")
    )]
    Foreign(PathBuf),
    /// Nothing is published.
    #[error("nothing is published in {}", .0.display())]
    #[diagnostic(code(refresh::nothing), help("`hopmap topology refresh --publish {}` publishes the current machine", shell_word(&.0.to_string_lossy())))]
    Nothing(PathBuf),
    /// The published or accepted entry is damaged or missing.
    #[error("{} points to a snapshot that is missing or damaged", path.display())]
    #[diagnostic(
        code(refresh::damaged),
        help("check the entries in `history`, or publish and accept the current machine with `--baseline`")
    )]
    Damaged {
        /// `current` or `accepted.json`.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: Box<Self>,
    },
    /// An entry of the history is missing.
    #[error("there is no topology snapshot {}", .0.display())]
    #[diagnostic(code(refresh::no_entry), help("`hopmap topology status` lists all snapshots"))]
    NoEntry(PathBuf),
    /// A stage was stopped early.
    #[error("stage `{0}` did not finish: nothing was published")]
    #[diagnostic(code(refresh::unfinished), help("give it more time with --deadline"))]
    Unfinished(String),
    /// The machine has no hosts.
    #[error("the pipeline gave a machine without hosts")]
    #[diagnostic(code(refresh::no_hosts), help("check the source of the machine; nothing was published"))]
    NoHosts,
    /// Too few hosts are up.
    #[error("only {up} of {hosts} previously available hosts are up ({:.1} %), below --min-coverage: nothing was published", 100.0 * *up as f64 / *hosts as f64)]
    #[diagnostic(
        code(refresh::coverage),
        help(
            "not up: {missing}; if these hosts are gone for good, run once with --baseline or a lower --min-coverage"
        )
    )]
    Coverage {
        /// Hosts that were up and still are.
        up: usize,
        /// Hosts that were up.
        hosts: usize,
        /// Those that are not up.
        missing: String,
    },
    /// The consumer did not succeed.
    #[error("the consumer {how}: {} is published, but not accepted", entry)]
    #[diagnostic(code(refresh::consumer), help("the next refresh runs it again. Its output:\n{said}"))]
    Consumer {
        /// How it ended.
        how: String,
        /// The entry that it was run for.
        entry: String,
        /// The end of its output.
        said: String,
    },
    /// The user interrupted it.
    #[error("interrupted")]
    #[diagnostic(code(refresh::interrupted))]
    Interrupted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_entry_says_when_it_was_made() {
        assert_eq!(Entry("1970-01-02T00-00-01Z-abc".into()).made_s(), Some(86_401));
        for name in ["", "1970-01-02", "1970-99-02T00-00-01Z-abc", "a-name-that-is-long-enough"] {
            assert_eq!(Entry(name.into()).made_s(), None);
        }
    }

    fn entries(days: &[u32]) -> Vec<Entry> {
        days.iter().map(|day| Entry(format!("1970-01-{day:02}T00-00-00Z-abcdef"))).collect()
    }

    fn gone(retention: Retention, entries: &[Entry], used: &[Entry], day: i64) -> Vec<String> {
        let gone = retention.gone(entries, used, (day - 1) * 86_400);
        gone.iter().map(|entry| entry.0[8..10].to_owned()).collect()
    }

    #[test]
    fn the_newest_stay_and_what_is_used() {
        let all = entries(&[1, 2, 3, 4]);
        assert_eq!(gone(Retention { entries: 2, age: None }, &all, &[], 9), ["01", "02"]);
        assert_eq!(gone(Retention { entries: 2, age: None }, &all, &all[..1], 9), ["02", "03"]);
        assert_eq!(gone(Retention { entries: 0, age: None }, &all, &all[3..], 9), ["01", "02", "03"]);
        assert_eq!(
            gone(Retention { entries: 9, age: Some(Duration::from_hours(6 * 24)) }, &all, &[], 9),
            ["01", "02"]
        );
        // The clock was set back.
        assert_eq!(
            gone(Retention { entries: 9, age: Some(Duration::from_hours(6 * 24)) }, &all, &[], 1),
            [""; 0]
        );
    }
}
