//! Dumps the memory of a waiting process in the format of DMTCP.

use std::fs::{self, File};
use std::io::BufWriter;
use std::os::unix::fs::FileExt;
use std::path::Path;

use hopmap_checkpoint::series::dmtcp::{Area, ImageWriter, MappedFile, Program};

const PAGE: usize = 4096;

/// Areas that the kernel maps into every process; DMTCP omits them.
const KERNEL: [&str; 5] = ["[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]", "[vectors]"];

/// Writes an image of a process that is waiting.
pub(crate) fn dump(process: u32, path: &Path, name: &str) {
    let of = |name: &str| Path::new("/proc").join(process.to_string()).join(name);
    let executable = fs::read_link(of("exe")).unwrap().display().to_string();
    let program = Program { name: name.into(), executable, process, peers: 1 };
    let memory = File::open(of("mem")).unwrap();
    let areas = areas(&fs::read_to_string(of("maps")).unwrap());
    let mut image = ImageWriter::new(BufWriter::new(File::create(path).unwrap()), &program).unwrap();
    for area in &areas {
        let contents = contents(&memory, area);
        match area.file {
            Some(file) => {
                let shown = fs::metadata(&area.name).map_or(area.length, |data| data.len() - file.offset);
                let cut = if area.protection & 2 == 0 { area.length.min(shown) } else { area.length };
                image.mapped(area, &contents[..cut as usize]).unwrap();
            }
            None => image.anonymous(area, &contents).unwrap(),
        }
    }
    image.finish().unwrap();
}

/// The readable areas (`proc_pid_maps(5)`).
fn areas(maps: &str) -> Vec<Area> {
    maps.lines().map(area).filter(|area| area.protection & 1 == 1 && !KERNEL.contains(&&*area.name)).collect()
}

fn area(line: &str) -> Area {
    let mut fields = line.splitn(6, ' ');
    let mut field = || fields.next().unwrap();
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (start, end) = field().split_once('-').unwrap();
    let permissions = field();
    let offset = hexadecimal(field());
    let (major, minor) = field().split_once(':').unwrap();
    let inode: u64 = field().parse().unwrap();
    let name = field().trim_start().to_owned();
    let protection = (0..).zip("rwx".chars()).filter(|&(_, letter)| permissions.contains(letter));
    let device = (hexadecimal(major), hexadecimal(minor));
    Area {
        start: hexadecimal(start),
        length: hexadecimal(end) - hexadecimal(start),
        protection: protection.map(|(bit, _)| 1 << bit).sum(),
        shared: permissions.ends_with('s'),
        name,
        file: (inode != 0).then_some(MappedFile { offset, device, inode }),
    }
}

/// The contents of an area; zeros where it cannot be read, as after the end of a file.
fn contents(memory: &File, area: &Area) -> Vec<u8> {
    let mut contents = vec![0; area.length as usize];
    if memory.read_exact_at(&mut contents, area.start).is_err() {
        for (index, page) in contents.chunks_mut(PAGE).enumerate() {
            if memory.read_exact_at(page, area.start + (index * PAGE) as u64).is_err() {
                page.fill(0);
            }
        }
    }
    contents
}
