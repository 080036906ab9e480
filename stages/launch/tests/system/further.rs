//! The MPIs of `ci/mpi.sh`, which are in `HOPMAP_MPIS` in a soak, and Flux, which `ci/flux.sh` builds.

use std::path::PathBuf;

use hopmap_launchers::{Launch, launch_file};
use hopmap_model::Mapping;
use hopmap_mpi_environment::AS_ROOT;
use hopmap_test_support::{only_in_a_soak, program, system_tests};

use crate::lab::{Lab, expected_hosts, mapping, of_two_programs};

const HOST: &str = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $LAB_HOST";

/// Where the ranks run.
fn hosts(mpi: &str, launch: Launch, mapping: &Mapping, is_of_two: bool) -> Vec<String> {
    let bin = PathBuf::from(std::env::var_os("HOPMAP_MPIS").unwrap()).join(mpi).join("bin");
    let lab = Lab::new();
    let agent = lab.agent().display().to_string();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut file = launch_file(mapping, "d", launch, false).unwrap();
    file.command =
        file.command.replacen("-bootstrap ssh", &format!("-bootstrap ssh -bootstrap-exec {agent}"), 1);
    if is_of_two {
        file = of_two_programs(file, launch, mapping.ranks.len());
    }
    let environment =
        [("PATH", path.as_str()), ("HYDRA_LAUNCHER_EXEC", &agent), ("PRTE_MCA_plm_ssh_agent", &agent)];
    lab.run(&file, HOST, &[&environment[..], &AS_ROOT].concat())
}

#[test]
fn further_mpis_obey_their_launch_files() {
    if !only_in_a_soak() || !system_tests() {
        return;
    }
    for (mpi, launch, slots) in [
        ("openmpi-5", Launch::OpenMpi5, 2),
        ("openmpi-5", Launch::OpenMpi5Hosts, 4),
        ("mpich-5", Launch::Mpich, 4),
        ("intel", Launch::IntelMpi, 4),
    ] {
        let mapping = mapping(&["aa", "bb", "cc"], slots, &[1, slots, 0, 2 * slots + 1, slots + 1]);
        for is_of_two in [false, true] {
            if is_of_two && launch == Launch::OpenMpi5Hosts {
                continue;
            }
            let hosts = hosts(mpi, launch, &mapping, is_of_two);
            assert_eq!(hosts, expected_hosts(&mapping), "{mpi} {launch:?}");
        }
    }
}

#[test]
fn flux_starts_every_task_on_the_host_of_the_mapping() {
    if !only_in_a_soak() || !system_tests() || program("flux").is_none() {
        return;
    }
    let lab = Lab::new();
    lab.write(
        "resource.toml",
        "[resource]\nnoverify = true\n[[resource.config]]\nhosts = \"n[1-4]\"\ncores = \"0-1\"\n",
    );
    let instance =
        format!("flux start --test-size=4 --test-hosts=n[1-4] --config-path={}", lab.path().display());
    for taken in [&[5, 0, 1, 6, 2][..], &[7, 1, 4, 2, 3, 6, 0, 5], &[3, 2, 7]] {
        let mapping = mapping(&["n1", "n2", "n3", "n4"], 2, taken);
        let mut file = launch_file(&mapping, "d", Launch::Flux, false).unwrap();
        file.command = format!("{instance} {}", file.command);
        let hosts = lab.run(&file, "$FLUX_TASK_RANK $(flux getattr hostname)", &[]);
        assert_eq!(hosts, expected_hosts(&mapping));
    }
    // A blank before the name of the option was ignored without a message.
    for (taken, cores) in [([0, 1], ["0", "1"]), ([1, 0], ["1", "0"])] {
        let mut file = launch_file(&mapping(&["n1"], 2, &taken), "d", Launch::Flux, true).unwrap();
        file.command = format!("{instance} {}", file.command);
        let core = "$FLUX_TASK_RANK $(sed -n 's/Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)";
        assert_eq!(lab.run(&file, core, &[]), cores);
    }
}
