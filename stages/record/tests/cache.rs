//! The cache holds only what this user has built.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;

use hopmap_mpi_environment::{Cache, Compiler, Mpi};
use hopmap_record::library::sources;

use crate::support::mpis;

#[test]
fn a_changed_library_and_an_open_folder_are_refused() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let open = || Cache::open(Some(&path));
        let compiler = Compiler::named(&format!("mpicc.{mpi}"), Mpi::default()).unwrap();
        let said = Mutex::new(Vec::new());
        let build = || compiler.compile(&sources(), &open()?, &|line| said.lock().unwrap().push(line));
        let library = build().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(build().unwrap(), library);
        let expected = format!("building the recorder for {} with mpicc.{mpi} (once)", compiler.identity);
        assert_eq!(*said.lock().unwrap(), [expected]);
        let error = || build().unwrap_err().to_string();
        fs::write(&library.path, b"changed").unwrap();
        assert!(error().ends_with(" has been changed"), "{}", error());
        fs::remove_file(&library.path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(error().ends_with(" can be changed by other users"), "{}", error());
    }
}

#[test]
fn many_processes_build_once() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(folder.path())).unwrap();
        let compiler = Compiler::named(&format!("mpicc.{mpi}"), Mpi::default()).unwrap();
        let paths: Vec<_> = std::thread::scope(|scope| {
            let build = || compiler.compile(&sources(), &cache, &|_| {}).unwrap();
            let all: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(paths.iter().all(|path| *path == paths[0]));
    }
}
