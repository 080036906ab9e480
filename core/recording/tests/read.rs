//! Reading and merging the files of ranks.

use std::fs;
use std::path::Path;

use hopmap_recording::{Description, Kind, Method, Pair, RankFile, Recording, Traffic, files, is_recording};

use crate::support::{file, recorded, write};

fn refused(folder: &Path) -> String {
    let message = Recording::read(folder).unwrap_err().to_string();
    message.replace(&format!("{}/", folder.display()), "").replace(&folder.display().to_string(), "FOLDER")
}

fn incomplete(folder: &Path) -> String {
    Recording::read(folder).unwrap().incomplete.unwrap()
}

#[test]
fn what_is_written_is_read_back() {
    for rank in 0..3 {
        let file = file(rank, 3);
        assert_eq!(RankFile::parse(&file.encode(), Path::new("x"), rank, 3).unwrap(), file);
    }
    let empty = RankFile { ranks: 1, ..RankFile::default() };
    assert_eq!(RankFile::parse(&empty.encode(), Path::new("x"), 0, 1).unwrap(), empty);
}

#[test]
fn the_files_of_all_ranks_are_merged() {
    let folder = recorded(3);
    assert!(is_recording(folder.path()));
    let recording = Recording::read(folder.path()).unwrap();
    assert_eq!(recording.incomplete, None);
    assert_eq!(recording.communicators, [[0, 1, 2]]);
    assert_eq!(recording.processes[2].host.as_deref(), Some("node2"));
    assert_eq!(recording.processes[2].times, Some((10.0, 1.0)));
    let of = |kind| recording.traffic.iter().filter(move |line| line.kind == kind);
    let ends = |line: &Traffic| (line.source, line.destination, line.bytes);
    // A get moves bytes from the partner.
    assert_eq!(of(Kind::Get).map(ends).collect::<Vec<_>>(), [(0, 2, 32), (1, 0, 32), (2, 1, 32)]);
    assert_eq!(of(Kind::Put).map(ends).collect::<Vec<_>>(), [(0, 1, 8), (1, 2, 8), (2, 0, 8)]);
    assert_eq!(recording.calls.len(), 6);
    let names: Vec<String> = files(folder.path()).unwrap().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["record.json", "rank-0.bin", "rank-1.bin", "rank-2.bin"]);
}

#[test]
fn numbers_of_communicators_are_those_of_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let files = [0, 1].map(|rank| {
        let mut file = file(rank, 2);
        let number = 100 + u64::from(rank);
        file.communicators[0].number = number;
        file.operations.iter_mut().for_each(|operation| operation.communicator = number);
        file
    });
    write(folder.path(), &Description::new(Method::Preload, 2), &files);
    let recording = Recording::read(folder.path()).unwrap();
    assert_eq!(recording.communicators, [[0, 1]]);
    assert!(recording.calls.iter().all(|calls| calls.communicator == 0));
}

#[test]
fn what_is_missing_is_said() {
    let folder = recorded(4);
    fs::remove_file(folder.path().join("rank-1.bin")).unwrap();
    assert_eq!(incomplete(folder.path()), "no file of rank 1");
    let killed = RankFile { finalized: false, ..file(2, 4) };
    fs::write(folder.path().join("rank-2.bin"), killed.encode()).unwrap();
    fs::remove_file(folder.path().join("rank-0.bin")).unwrap();
    let message = "no file of rank 0 and another rank; MPI_Finalize was not reached by rank 2";
    assert_eq!(incomplete(folder.path()), message);
    let reason = Some("rank 0 was killed".to_owned());
    let description = Description { complete: Some(false), reason, ..Description::new(Method::Preload, 4) };
    write(folder.path(), &description, &[RankFile { dropped: true, ..file(2, 4) }]);
    let message = "rank 0 was killed; no file of rank 0 and another rank; messages or calls are missing, because memory or disk space ran out, of rank 2";
    assert_eq!(incomplete(folder.path()), message);
    assert_eq!(Recording::read(folder.path()).unwrap().processes.len(), 4);
    let spawning = RankFile { foreign: true, ..file(2, 4) };
    write(folder.path(), &description, &[spawning]);
    assert!(incomplete(folder.path()).ends_with(
        "messages or calls to processes outside of MPI_COMM_WORLD, such as spawned ones, are missing of rank 2"
    ));
    fs::remove_file(folder.path().join("record.json")).unwrap();
    assert!(incomplete(folder.path()).starts_with("`record.json` is missing; no file of"));
}

#[test]
fn a_truncated_file_gives_what_it_has() {
    let whole = file(0, 1).encode();
    let full = RankFile::parse(&whole, Path::new("x"), 0, 1).unwrap();
    for length in 0..whole.len() {
        let part = RankFile::parse(&whole[..length], Path::new("x"), 0, 1).unwrap();
        assert!(part.truncated && full.pairs.starts_with(&part.pairs), "{length}");
    }
    let folder = recorded(1);
    // Before the list of communicators: the operations cannot be assigned.
    fs::write(folder.path().join("rank-0.bin"), &whole[..whole.len() - 20]).unwrap();
    let recording = Recording::read(folder.path()).unwrap();
    assert_eq!((recording.traffic.len(), recording.calls.len()), (4, 0));
    assert_eq!(recording.incomplete.as_deref(), Some("a truncated file of rank 0"));
}

#[test]
fn damaged_files_are_refused_with_their_place() {
    let folder = recorded(2);
    let path = folder.path().join("rank-1.bin");
    let whole = fs::read(&path).unwrap();
    let pairs = whole.windows(8).position(|bytes| bytes == 4u64.to_le_bytes()).unwrap() + 8;
    let with = |offset: usize, bytes: &[u8]| {
        let mut damaged = whole.clone();
        damaged[offset..offset + bytes.len()].copy_from_slice(bytes);
        fs::write(&path, damaged).unwrap();
        refused(folder.path())
    };
    assert_eq!(with(0, b"HOPREC2"), "rank-1.bin: not the file of a rank");
    assert_eq!(with(8, &[2]), "`rank-1.bin` has version 2 of the format, but this hopmap reads version 1");
    assert!(with(12, &[0]).ends_with("it is of rank 0 of 2, not of rank 1 of 2"));
    assert!(with(24, &f64::NAN.to_le_bytes()).ends_with("a time is negative or not finite"));
    let message = with(pairs, &[2]);
    assert!(message.starts_with("`rank-1.bin` is damaged at byte "), "{message}");
    assert!(message.ends_with("a partner is rank 2, but there are 2 ranks"), "{message}");
    assert!(with(pairs + 4, &[9]).ends_with("unknown kind 9 of traffic"));
    assert!(with(pairs + 8, &[65]).ends_with("unknown length class 65"));
    let operations = pairs + 4 * 32 + 8;
    let message = with(operations, &[0]);
    let place = format!("`rank-1.bin` is damaged at byte {operations}: ");
    assert_eq!(message, place + "`allreduce` is on communicator 0x1200 of 2 ranks, which is not listed");
    assert!(with(operations + 8, &[22]).ends_with("unknown collective operation 22"));
    fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
    assert!(refused(folder.path()).ends_with("more bytes than the file should have"));
}

#[test]
fn no_changed_byte_goes_unnoticed() {
    let whole = file(1, 3).encode();
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[place] ^= 1 << bit;
            let is_noticed = match RankFile::parse(&damaged, Path::new("x"), 1, 3) {
                // A length that points beyond the end.
                Ok(file) => file.truncated,
                Err(_) => true,
            };
            assert!(is_noticed, "byte {place}, bit {bit}");
        }
    }
}

/// What no recorder writes is damage with its place, not the end of a truncated file.
#[test]
fn implausible_numbers_are_refused_with_their_place() {
    let whole = file(1, 3);
    let refused = |change: &dyn Fn(&mut RankFile)| {
        let mut file = whole.clone();
        change(&mut file);
        RankFile::parse(&file.encode(), Path::new("x"), 1, 3).unwrap_err().to_string()
    };
    let pairs = whole.encode().len() - 8 - 24 - 2 * 40 - 16 - 4 * 32;
    let at = |place: usize, what: &str| format!("`x` is damaged at byte {place}: {what}");
    let first =
        |messages, bytes| refused(&|file| (file.pairs[0].messages, file.pairs[0].bytes) = (messages, bytes));
    // Lengths of 64 to 127 bytes.
    assert_eq!(first(2, 127), at(pairs, "length class 7 contradicts messages = 2, bytes = 127"));
    assert_eq!(first(2, 255), at(pairs, "length class 7 contradicts messages = 2, bytes = 255"));
    assert_eq!(first(0, 64), at(pairs, "length class 7 contradicts messages = 0, bytes = 64"));
    let message = refused(&|file| file.pairs[1].bytes = 1);
    assert_eq!(message, at(pairs + 32, "length class 0 contradicts messages = 1, bytes = 1"));
    let message = refused(&|file| file.pairs[3] = file.pairs[0]);
    let twice = "a pair with rank 2, kind 0 and length class 7 is there twice";
    assert_eq!(message, at(pairs + 96, twice));
    let long = Pair { log2_bytes: 64, messages: 1, bytes: u64::MAX, ..whole.pairs[2] };
    let message = refused(&|file| file.pairs[2] = long);
    assert_eq!(message, at(pairs + 64, "the messages or bytes up to here exceed 64 bits"));
    let operations = pairs + 4 * 32 + 8;
    let message = refused(&|file| file.operations[1].bytes = u64::MAX);
    assert_eq!(message, at(operations + 40, "the calls or bytes up to here exceed 64 bits"));
    let message = refused(&|file| file.operations[0].calls = 0);
    assert_eq!(message, at(operations, "`allreduce` without a call has 16 bytes"));
    let communicators = operations + 2 * 40 + 8;
    let members = |members: [u32; 3]| refused(&|file| file.communicators[0].members = members.to_vec());
    assert_eq!(members([0, 9, 1]), at(communicators, "a communicator has rank 9, but there are 3 ranks"));
    assert_eq!(members([2, 0, 2]), at(communicators, "a communicator has rank 2 twice"));
    let message = refused(&|file| file.communicators.push(file.communicators[0].clone()));
    assert_eq!(message, at(communicators + 24, "communicator 0x1234 is there twice"));
    for (place, what) in [
        (pairs - 8, "pairs"),
        (operations - 8, "collective operations"),
        (communicators - 8, "communicators"),
    ] {
        let mut bytes = whole.encode();
        bytes[place..place + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
        let message = RankFile::parse(&bytes, Path::new("x"), 1, 3).unwrap_err().to_string();
        assert_eq!(message, at(place, &format!("it has 1099511627776 {what}")));
    }
}

#[test]
fn a_wrong_description_is_refused() {
    let folder = recorded(2);
    let path = folder.path().join("record.json");
    let wrong = |description: &Description| {
        fs::write(&path, serde_json::to_string(description).unwrap()).unwrap();
        refused(folder.path())
    };
    let right = Description::new(Method::Preload, 2);
    let other = Description { format: "other".into(), ..right.clone() };
    assert_eq!(wrong(&other), "record.json: its format is `other`");
    let later = Description { version: 2, ..right.clone() };
    assert_eq!(wrong(&later), "`record.json` has version 2 of the format, but this hopmap reads version 1");
    let many = Description { ranks: u32::MAX, ..right.clone() };
    assert_eq!(wrong(&many), "record.json: `ranks` is 4294967295");
    let few = Description { ranks: 1, ..right };
    assert_eq!(wrong(&few), "FOLDER: there is a file of rank 1, but the program had 1 ranks");
    fs::write(&path, "").unwrap();
    assert_eq!(refused(folder.path()), "record.json: the file is empty");
    fs::write(&path, "{\n\"format\": 1}").unwrap();
    assert!(refused(folder.path()).starts_with("record.json:2:"));
    let nothing = tempfile::tempdir().unwrap();
    for method in [Method::Preload, Method::Openmpi] {
        write(nothing.path(), &Description::new(method, 2), &[]);
        assert_eq!(refused(nothing.path()), "`FOLDER` has no file of a rank");
    }
}

#[test]
fn a_recording_is_finished_with_what_its_ranks_wrote() {
    let folder = recorded(3);
    fs::remove_file(folder.path().join("record.json")).unwrap();
    let reason = Some("the launcher failed".to_owned());
    let description = Description { complete: Some(false), reason, ..Description::new(Method::Preload, 1) };
    let finished = Recording::finish(folder.path(), description).unwrap().unwrap();
    assert_eq!(finished.incomplete.as_deref(), Some("the launcher failed"));
    assert_eq!(Recording::read(folder.path()).unwrap(), finished);
    assert_eq!(Description::read(&folder.path().join("record.json")).unwrap().ranks, 3);
    let nothing = tempfile::tempdir().unwrap();
    for method in [Method::Preload, Method::Openmpi] {
        assert_eq!(Recording::finish(nothing.path(), Description::new(method, 1)).unwrap(), None);
    }
    assert_eq!(fs::read_dir(nothing.path()).unwrap().count(), 0);
}
