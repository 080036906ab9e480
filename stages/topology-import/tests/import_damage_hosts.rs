//! Damages files of hosts and measured machines: importing any bytes ends in an error or in a consistent
//! machine.
//!
//! `HOPMAP_SOAK=1` runs many thousands of cases; `HOPMAP_SEED=N` repeats one.

use std::path::Path;

use hopmap_machines::params::CostMetric;
use hopmap_test_support::{Random, damage, has_little_memory, only_seed, seeds, with_extreme_numbers};
use hopmap_topology_import::import::{Format, ImportParams, files, read, recognise};

/// Reads damaged samples of one format.
fn damaged(format: Format, name: &str, sample: &[u8], telling: &[u8], params: &ImportParams) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, sample).unwrap();
    assert_eq!(recognise(&path).unwrap(), format);
    read(&path, params).unwrap().system.check().unwrap();
    with_extreme_numbers(sample).iter().for_each(|bytes| _ = is_valid(&path, bytes, format, params));
    let mut valid = 0;
    for seed in seeds(1000, 100_000) {
        let mut random = Random(seed);
        let mut bytes = sample.to_vec();
        damage(&mut bytes, &mut random, telling);
        valid += usize::from(is_valid(&path, &bytes, format, params));
    }
    // Not all damage is fatal.
    assert!(valid > 0 || only_seed().is_some(), "{format:?}");
}

/// Whether damaged bytes are still a machine.
fn is_valid(path: &Path, bytes: &[u8], format: Format, params: &ImportParams) -> bool {
    // Some file systems flush a file that is overwritten, but not a new one.
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
    let _ = recognise(path);
    let _ = files(path, Some(format));
    let params = ImportParams { format: Some(format), ..params.clone() };
    match read(path, &params) {
        Ok(imported) => {
            imported.system.check().unwrap();
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

const TOPOLOGY: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n\
    <object type=\"Machine\" allowed_cpuset=\"0x0000000f\"><info name=\"HostName\" value=\"n1\"/>\n\
    <object type=\"Package\" cpuset=\"0x3\"><object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x3\"/>\n\
    <object type=\"L3Cache\" depth=\"3\"><object type=\"Core\"><object type=\"PU\" os_index=\"0\"/></object>\n\
    <object type=\"Core\"><object type=\"PU\" os_index=\"1\"/></object></object></object>\n\
    <object type=\"Package\" cpuset=\"0xc\"><object type=\"NUMANode\" os_index=\"1\" cpuset=\"0xc\"/>\n\
    <object type=\"Core\"><object type=\"PU\" os_index=\"2\" cpuset=\"0x4\"/><object type=\"PU\" os_index=\"3\"/></object></object></object>\n\
    <distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\" indexing=\"os\"><indexes length=\"4\">0 1 </indexes>\n\
    <u64values length=\"12\">10 20 21 10 </u64values></distances2></topology>\n";

#[test]
fn damaged_hosts_of_hwloc() {
    let telling = b"<>/=\"&;#[]!? 0123456789xfPUNAode,\n";
    for threads in [false, true] {
        let params = ImportParams { hardware_threads: threads, ..ImportParams::default() };
        damaged(Format::Hwloc, "n1.xml", TOPOLOGY.as_bytes(), telling, &params);
    }
    let distances = "<distances nbobjs=\"2\" relative_depth=\"1\" latency_base=\"10.0\"><latency value=\"1\"/><latency value=\"2\"/>\n\
                     <latency value=\"2.5\"/><latency value=\"1\"/></distances>\n<object type=\"Socket\"";
    let old = TOPOLOGY.replacen("<object type=\"Package\"", distances, 1).replace("L3Cache", "Cache");
    damaged(Format::Hwloc, "n1.xml", old.as_bytes(), telling, &ImportParams::default());
}

#[test]
fn damaged_differences_of_hwloc() {
    let difference = "<topologydiff refname=\"n1\">\n<diff type=\"0\" obj_depth=\"0\" obj_index=\"0\" obj_attr_type=\"2\" \
                      obj_attr_name=\"HostName\" obj_attr_oldvalue=\"n1\" obj_attr_newvalue=\"n2\"/>\n</topologydiff>\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("n1.xml"), TOPOLOGY).unwrap();
    let path = folder.path().join("n2.diff.xml");
    let mut valid = 0;
    for seed in 0..500 {
        let mut bytes = difference.as_bytes().to_vec();
        damage(&mut bytes, &mut Random(seed), b"<>/=\"&; 0123456789n.xml");
        valid += u32::from(is_valid(&path, &bytes, Format::Hwloc, &ImportParams::default()));
        let _ = read(folder.path(), &ImportParams::default());
    }
    assert!(valid > 0);
}

#[test]
fn damaged_latencies_between_cores() {
    damaged(
        Format::CoreToCore,
        "x.csv",
        b",,,\n1.5,,,\n2,3,,\n40,5e1,6,\n",
        b",.\n0123456789e-+naif",
        &ImportParams::default(),
    );
}

#[test]
fn damaged_matrices() {
    let telling = b",;\t .\n\"#:0123456789e-+naifrm";
    for sample in ["name,a:0,a:1,b:0\na:0,0,1,2\na:1,1,0,2\nb:0,5,6.5,0\n", "# costs\n0 1 2\n1 0 2\n3 4 0\n"]
    {
        damaged(Format::Matrix, "x.csv", sample.as_bytes(), telling, &ImportParams::default());
    }
}

#[test]
fn damaged_output_of_mpigraph() {
    let sample = "START mpiGraph v1.5\nMsgSize\t1024\nTimes\t1\nWindow\t1\nProcs\t2\n\n1 of 2 (50.0%)\nGathering results\n\n\
                  Send max\t9.0\nSend avg\t1.0\n\nSend\ta:0\tb:1\t\na:0 to\t0.000\t2.000\t\nb:1 to\t5.000\t0.000\t\n\n\
                  Recv max\t9.0\nRecv avg\t1.0\n\nRecv\ta:0\tb:1\t\na:0 from\t0.000\t2.000\t\nb:1 from\t9.000\t0.000\t\nEND mpiGraph\n";
    damaged(
        Format::Mpigraph,
        "x.out",
        sample.as_bytes(),
        b"\t\n:.0123456789ab tofrmSendRcv",
        &ImportParams::default(),
    );
}

fn timed() -> ImportParams {
    ImportParams { cost: Some(CostMetric::Time), bytes: Some(150), ..ImportParams::default() }
}

#[test]
fn damaged_text_of_parus() {
    let sample = "processors 2\n\ntest type \"one_to_one\"\ndata type \"average\"\nbegin message length 0\nend message length 200\n\
                  step length 100\nnoise message length 0\nnumber of noise messages 0\nnumber of noise processes 0\n\
                  number of repeates 7\n\nhosts:\na\nb\n\nMessage length 0\n0.0 1e-6\n2e-6 0\n\nMessage length 100\n0.0 3e-6\n4e-6 0\n";
    damaged(Format::Parus, "network.average", sample.as_bytes(), b" \n\"/*0123456789.e-+aMl", &timed());
}

/// Two processes and two lengths, in the format of network-tests2.
fn netcdf() -> Vec<u8> {
    fn put(bytes: &mut Vec<u8>, numbers: &[u32]) {
        numbers.iter().for_each(|number| bytes.extend(number.to_be_bytes()));
    }
    fn put_name(bytes: &mut Vec<u8>, name: &str) {
        put(bytes, &[name.len() as u32]);
        bytes.extend(name.bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    let numbers = [
        ("proc_num", 2),
        ("test_type", 1),
        ("data_type", 2),
        ("begin_mes_length", 100),
        ("end_mes_length", 300),
        ("step_length", 100),
    ];
    let header = |begin: u32| {
        let mut bytes = b"CDF\x02".to_vec();
        put(&mut bytes, &[2, 10, 3]);
        for (name, length) in [("x", 2), ("y", 2), ("n", 0)] {
            put_name(&mut bytes, name);
            put(&mut bytes, &[length]);
        }
        put(&mut bytes, &[0, 0, 11, 1 + numbers.len() as u32]);
        for (place, (name, _)) in (0..).zip(numbers) {
            put_name(&mut bytes, name);
            put(&mut bytes, &[0, 0, 0, 4, 4, 0, begin + 4 * place]);
        }
        put_name(&mut bytes, "data");
        put(&mut bytes, &[3, 2, 0, 1, 0, 0, 6, 32, 0, begin + 4 * numbers.len() as u32]);
        bytes
    };
    let mut bytes = header(header(0).len() as u32);
    numbers.iter().for_each(|(_, number)| put(&mut bytes, &[*number]));
    (1..9).for_each(|time| bytes.extend((f64::from(time) * 1e-6).to_be_bytes()));
    bytes
}

#[test]
fn damaged_netcdf_of_parus() {
    damaged(Format::ParusNetcdf, "x_median.nc", &netcdf(), b"\x00\x01\x02\x04\x06\x0b\x7f\x80\xff", &timed());
    damaged(
        Format::ParusNetcdf,
        "x.nc",
        &netcdf(),
        b"\x00\x01\x02\x04\x06\x0b\x7f\x80\xff",
        &ImportParams::default(),
    );
}

#[test]
fn extreme_numbers_end_in_an_error_or_a_machine_in_little_memory() {
    if !has_little_memory() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (format, name, sample, params) in [
        (Format::Hwloc, "n1.xml", TOPOLOGY.as_bytes().to_vec(), ImportParams::default()),
        (Format::ParusNetcdf, "p.nc", netcdf(), timed()),
    ] {
        let path = folder.path().join(name);
        for bytes in with_extreme_numbers(&sample) {
            is_valid(&path, &bytes, format, &params);
        }
    }
}
