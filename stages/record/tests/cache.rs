//! The cache holds only what this user has built.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use hopmap_record::library::Compiler;

use crate::support::mpis;

#[test]
fn a_changed_library_and_an_open_folder_are_refused() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let compiler = Compiler::find(Some(&format!("mpicc.{mpi}")), None, None).unwrap();
        let library = compiler.library(&cache).unwrap();
        assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(compiler.library(&cache).unwrap(), library);
        let error = |compiler: &Compiler| compiler.library(&cache).unwrap_err().to_string();
        fs::write(&library, b"changed").unwrap();
        assert!(error(&compiler).ends_with(" has been changed"), "{}", error(&compiler));
        fs::remove_file(&library).unwrap();
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(error(&compiler).ends_with(" can be changed by other users"), "{}", error(&compiler));
    }
}

#[test]
fn many_processes_build_once() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let compiler = Compiler::find(Some(&format!("mpicc.{mpi}")), None, None).unwrap();
        let paths: Vec<_> = std::thread::scope(|scope| {
            let build = || compiler.library(folder.path()).unwrap();
            let all: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(paths.iter().all(|path| *path == paths[0]));
    }
}
