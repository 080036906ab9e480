//! The script of a job.

use std::path::Path;

use hopmap_durable::{DurableError, replace_file};

use crate::ranks::{DONE, OUT};

/// Written by the script when the stage has ended, with its exit status: whatever it left is there.
pub(super) const ENDED: &str = "ended";

/// Writes the script that runs `command` on the task in `folder`.
///
/// The stage runs behind the shell so that the shell hears signals: one that comes before the end of the job asks the stage for
/// what it has. A job that its batch system starts again begins anew.
pub(super) fn write(
    place: &Path,
    title: &str,
    command: &[String],
    folder: &Path,
) -> Result<(), DurableError> {
    let quoted =
        |word: &str| shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned);
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let text = format!(
        "#!/bin/sh
# {title}, written by hopmap
folder={folder}
rm -rf \"$folder/begun\" \"$folder/stop\" \"$folder/{ENDED}\" \"$folder/{DONE}\" \"$folder/{OUT}\" \"$folder\"/fault*.json
trap 'touch \"$folder/stop\" 2> /dev/null' TERM
{command} \"$folder\" &
child=$!
status=0
wait $child || status=$?
while kill -0 $child 2> /dev/null; do
  status=0
  wait $child || status=$?
done
[ -e \"$folder/task.json\" ] || exit $status
echo $status > \"$folder/{ENDED}.part\" && mv \"$folder/{ENDED}.part\" \"$folder/{ENDED}\"
exit $status
",
        title = title.replace(['\n', '\r'], " "),
        folder = quoted(&folder.to_string_lossy()),
        command = command.join(" "),
    );
    replace_file(place, text.as_bytes())
}

/// The exit status that the script of a task left.
pub(super) fn ended(folder: &Path) -> Option<i32> {
    std::fs::read_to_string(folder.join(ENDED)).ok()?.trim().parse().ok()
}
