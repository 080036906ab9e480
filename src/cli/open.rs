//! What several commands begin with: a pipeline, its parameters, a store (waited for, if need be), Ctrl-C, and times.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
pub(crate) use hopmap_command::duration;
use hopmap_command::{Exit, Failure, holder, refuse, shown};
use hopmap_durable::DurableError;
use hopmap_model::read_input;
use hopmap_text::closest;
use miette::Report;

use super::fault::SystemError;
use super::output::{Output, Result};
use crate::archive::ImportedProject;
use crate::engine::{Store, StoreError, Writer};
use crate::lock::Request;
use crate::pipeline::{EMBEDDED, Pipeline};
use crate::source::Source;

/// Bytes of a pipeline file.
const MOST_BYTES: u64 = 64 << 20;

/// A pipeline and its parameters.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct PipelineArguments {
    /// Pipeline file, or the name of a bundled pipeline such as `place` [default: the only pipeline file of this folder].
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) pipeline: String,
    /// Set a parameter of the pipeline, also written as `--NAME VALUE`; paths are relative to the working directory. With `--help`, a
    /// named pipeline lists its parameters.
    #[arg(short = 'p', long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
}

/// A pipeline with the parameters that are given, else with those of its last run; and its store.
pub(super) fn opened(
    pipeline: &PipelineArguments,
    store: &StoreArguments,
    output: Output,
) -> Result<(Pipeline, Store)> {
    let root = store.root(pipeline)?;
    Ok((pipeline.as_last_run(&root, output)?.open()?, Store::load(&root)?))
}

/// Where results are kept.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct StoreArguments {
    /// Folder of the store [default: .hopmap next to the pipeline file or in a folder above].
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

impl PipelineArguments {
    pub(crate) fn new(pipeline: String, parameters: Vec<String>) -> Self {
        Self { pipeline, parameters }
    }

    /// Reads the pipeline.
    pub(crate) fn open(&self) -> Result<Pipeline> {
        Ok(self.request()?.open()?)
    }

    /// What was asked for, so that it can be remembered.
    pub(crate) fn request(&self) -> Result<Request> {
        let working = working_directory()?;
        let parameters = pairs(&self.parameters, "-p")?;
        let (source, folder) = self.source(&working)?;
        let (pipeline, text) = (source.name().to_owned(), source.text().to_owned());
        Ok(Request { pipeline, text, folder, working, root: None, parameters, jobs: None })
    }

    /// The same; without parameters, with those of the last run of the pipeline in a store, which it says.
    pub(crate) fn as_last_run(&self, root: &Path, output: Output) -> Result<Request> {
        let request = self.request()?;
        let last = request.last(root).filter(|last| !last.parameters.is_empty());
        let Some(last) = last.filter(|_| self.parameters.is_empty()) else { return Ok(request) };
        let quoted = |text| shlex::try_quote(text).unwrap_or_default();
        let words = last.parameters.iter().map(|(name, value)| format!(" -p {name}={}", quoted(value)));
        output.note(format!("with the parameters of the last run:{}", words.collect::<String>()));
        // Paths of a bundled pipeline are relative to where it ran.
        let folder = if Path::new(&self.pipeline).is_file() { request.folder } else { last.folder };
        Ok(Request { parameters: last.parameters, working: last.working, folder, ..request })
    }

    /// The text of the pipeline and the folder its paths are relative to.
    fn source(&self, working: &Path) -> Result<(Source, PathBuf)> {
        if self.pipeline.is_empty() {
            // One that is the only one was named before the arguments were read, unless the folder has changed since.
            let only = only_pipeline(working)?;
            return Self::new(only, Vec::new()).source(working);
        }
        let path = Path::new(&self.pipeline);
        if path.is_file() {
            let text = read_text(path)?;
            let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let folder = folder.map_or(working.to_owned(), |folder| working.join(folder));
            // Its paths would be those of another folder, and so would the consent.
            let file = path.canonicalize().unwrap_or_default();
            let is_elsewhere = file.parent() != folder.canonicalize().ok().as_deref();
            if is_elsewhere && file.parent().and_then(ImportedProject::of).is_some() {
                return refuse(
                    format!("{} is a link into an imported project", self.pipeline),
                    format!("name the file itself: {}", shown(&file)),
                );
            }
            return Ok((Source::new(&self.pipeline, text), folder));
        }
        if let Some(embedded) = EMBEDDED.iter().find(|embedded| embedded.name == self.pipeline) {
            return Ok((Source::new(embedded.name, embedded.text), working.to_owned()));
        }
        let names = bundled();
        let what = if path.is_dir() { "is a folder, not a pipeline file" } else { "does not exist" };
        let help = match closest(&self.pipeline, &names) {
            Some(meant) => {
                format!("did you mean `{meant}`? `hopmap init --list` lists the bundled pipelines")
            }
            None => format!("name a TOML file, or one of: {}", names.join(", ")),
        };
        refuse(format!("{} {what}", self.pipeline), help)
    }

    /// Folder in which the search for a store begins.
    fn folder(&self) -> Result<PathBuf> {
        let working = working_directory()?;
        let path = Path::new(&self.pipeline);
        Ok(if path.is_file() { working.join(path).parent().map_or(working, Path::to_owned) } else { working })
    }
}

impl StoreArguments {
    /// Folder of the store of a pipeline.
    pub(crate) fn root(&self, pipeline: &PipelineArguments) -> Result<PathBuf> {
        match &self.store {
            Some(store) => Ok(working_directory()?.join(store)),
            None => Ok(Store::find(&normal(&pipeline.folder()?))),
        }
    }

    /// Folder of the store that is used from here.
    pub(crate) fn root_here(&self) -> Result<PathBuf> {
        let working = working_directory()?;
        Ok(match &self.store {
            Some(store) => working.join(store),
            None => Store::find(&working),
        })
    }

    /// Whether a store is named.
    pub(crate) fn is_named(&self) -> bool {
        self.store.is_some()
    }

    /// The same; a store that is named has to exist.
    pub(crate) fn readable_root(&self) -> Result<PathBuf> {
        let root = self.root_here()?;
        Ok(if self.store.is_some() { existing(root)? } else { root })
    }
}

/// The only pipeline file of a folder.
pub(super) fn only_pipeline(folder: &Path) -> Result<String> {
    match pipelines_in(folder).as_slice() {
        [only] => Ok(only.clone()),
        [] => refuse(
            "no pipeline is named, and this folder has no pipeline file",
            format!("name a TOML file, or one of: {}", bundled().join(", ")),
        ),
        several => refuse(
            "no pipeline is named, and this folder has several",
            format!("name one: {}", several.join(", ")),
        ),
    }
}

/// The first pipeline files of a folder, by name.
pub(super) fn pipelines_in(folder: &Path) -> Vec<String> {
    const MOST_LISTED: usize = 10;
    let pattern = glob::Pattern::escape(&folder.to_string_lossy());
    let files =
        glob::glob(&Path::new(&pattern).join("*.toml").to_string_lossy()).into_iter().flatten().flatten();
    let is_pipeline = |path: &PathBuf| {
        let text = read_text(path).ok().and_then(|text| text.parse::<toml::Table>().ok());
        text.is_some_and(|text| text.get("stages").is_some_and(toml::Value::is_table))
    };
    let files = files.filter(is_pipeline).filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    files.take(MOST_LISTED).collect()
}

/// The text of a pipeline that is named, if it can be read.
pub(super) fn pipeline_text(name: &str) -> Option<String> {
    let path = Path::new(name);
    match path.is_file() {
        true => read_text(path).ok(),
        false => {
            EMBEDDED.iter().find(|embedded| embedded.name == name).map(|embedded| embedded.text.to_owned())
        }
    }
}

pub(super) fn bundled() -> Vec<&'static str> {
    EMBEDDED.iter().map(|embedded| embedded.name).collect()
}

/// The folder of a store, if it is there.
pub(crate) fn existing(root: PathBuf) -> Result<PathBuf, StoreError> {
    if root.is_dir() { Ok(root) } else { Err(StoreError::Missing(root)) }
}

/// `NAME=VALUE` as name and value.
pub(crate) fn pairs(texts: &[String], option: &str) -> Result<Vec<(String, String)>> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if is_dotted_name(name.trim()) => Ok((name.trim().to_owned(), value.to_owned())),
        None if is_dotted_name(text) => {
            let help = match option {
                "-p" => format!("give one: --{} VALUE, or -p {text}=VALUE", text.replace('_', "-")),
                option => format!("give one: {option} {text}=VALUE"),
            };
            refuse(format!("`{text}` has no value"), help)
        }
        _ => refuse(format!("`{option} {text}` is not of the form NAME=VALUE"), "for example seed=7"),
    };
    texts.iter().map(pair).collect()
}

fn is_dotted_name(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
    };
    text.split('.').all(is_part)
}

pub(crate) fn working_directory() -> Result<PathBuf> {
    std::env::current_dir().map_err(|error| Failure::failed(SystemError::NoDirectory(error)))
}

/// A file that is named as seen from the working directory, else the one by default.
pub(crate) fn place_or(given: Option<&PathBuf>, default: impl FnOnce() -> PathBuf) -> Result<PathBuf> {
    given.map_or_else(|| Ok(default()), |path| Ok(working_directory()?.join(path)))
}

fn read_text(path: &Path) -> Result<String> {
    let shown = path.display();
    let bytes = read_input(path, MOST_BYTES)
        .or_else(|error| refuse(format!("cannot read {shown}: {error}"), "is it readable for you?"))?;
    String::from_utf8(bytes)
        .or_else(|_| refuse(format!("{shown} is not text"), "a pipeline file is TOML in UTF-8"))
}

/// A path without `.` and `..`, so that a search upwards goes where people expect.
fn normal(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// How long to wait.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct WaitArguments {
    /// Wait up to TIME, such as 10m, while another process has locked the store [default: exit at once, with status 75].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
}

impl WaitArguments {
    /// Whether time may pass until the store is ours.
    pub(crate) fn waits(&self) -> bool {
        self.wait.is_some()
    }

    /// The right to write to a store. Ctrl-C ends the waiting for it.
    pub(crate) fn writer(&self, root: &Path, command: &str) -> Result<Writer> {
        let cancelled = on_interrupt()?;
        let stop = || cancelled.load(Ordering::Relaxed);
        match Writer::open_within(root, &holder(command), self.wait.unwrap_or_default(), &stop) {
            Err(error @ StoreError::Durable(DurableError::Busy { .. })) if stop() => {
                Err(Failure::new(Exit::Interrupted, [Report::new(error)]))
            }
            result => Ok(result?),
        }
    }
}

/// A first Ctrl-C asks the stages to deliver what they have, a second one ends at once: the store is sound either way. Whoever asks
/// again gets the same flag.
pub(super) fn on_interrupt() -> Result<Arc<AtomicBool>> {
    static CANCELLED: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut there = CANCELLED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cancelled) = there.as_ref() {
        return Ok(Arc::clone(cancelled));
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            #[expect(clippy::exit, reason = "the user asked twice")]
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::failed(SystemError::NoSignals(error)))?;
    Ok(Arc::clone(there.insert(cancelled)))
}
