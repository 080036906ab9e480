//! Programs that hopmap starts and that come with it.

use std::env;
use std::path::PathBuf;

/// Where a program is: where the variable says, else beside us, else on the path. Where it is nowhere, the places that were searched.
pub(crate) fn find(program: &str, variable: &str) -> Result<PathBuf, String> {
    if let Some(named) = env::var_os(variable) {
        let path = PathBuf::from(named);
        return match path.is_file() {
            true => Ok(std::path::absolute(&path).unwrap_or(path)),
            false => Err(format!("{variable} names {}", path.display())),
        };
    }
    let beside = env::current_exe().ok().map(|hopmap| hopmap.with_file_name(program));
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join(program));
    let found = beside.iter().cloned().chain(on_path).find(|path| path.is_file());
    found.ok_or_else(|| {
        let beside = beside.map(|path| format!("not at {}, ", path.display())).unwrap_or_default();
        format!("{beside}not on PATH")
    })
}
