//! Arguments of `hopmap rank-order`.

use std::path::PathBuf;

use clap::Args;
use toml::Value;

use crate::cli::hosts::HostArguments;
use crate::cli::open::StoreArguments;

/// Arguments of `rank-order`.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    mut_arg("hosts", |hosts| hosts.help("Hosts in their present order, such as node[7,66,70,8]; those beyond the job are spares [default: those of the batch job]")),
    after_help = "\
Frameworks such as Megatron-LM fix the groups of a rank, and torchrun starts the GPUs of a host as consecutive ranks. So the order of \
the hosts is all that is left to choose. The cost is that of the bytes between hosts times the links that they pass: up to 16 \
hosts, without spares and borders, its optimum is proven. The better order is the one with the shortest predicted communication that was found, and of equally fast ones the one that costs least. DIR gets the pipeline file \
rank-order.toml, the groups with their hosts (groups-present.csv, groups-better.csv), and the better order: a node rank and its \
host in every line of node-ranks, or, with the hosts of a Slurm job, the hosts for srun in slurm-hosts.

Without --model and --bytes, the model is an example that fits the groups: the answer then depends on its proportions.

Examples:
  hopmap rank-order --topology topograph.json --hosts 'node[7,66,70,8]' --tp 8 --pp 2
  scontrol show topology > fabric; hopmap rank-order --topology fabric --tp 8 --pp 8 --ep 16   # in a Slurm job
  hopmap rank-order --topology topology.conf --hosts 'node[1-64]' --tp 8 --ep 16 --model layers=64,hidden=8192,experts=64,top_k=4
  hopmap rank-order --topology labels.csv --tp 8 --ep 4 --pp 2 --borders ep=1   # no expert group crosses a leaf or NVLink domain
  hopmap rank-order --topology labels.csv --hosts-file hosts --tp 8 --bytes dp=20000000000 --bandwidth 400e9,200e9"
)]
pub(crate) struct Arguments {
    /// Topology of the network: any file that topology/import reads, or the folder of a stored topology. A file that needs parameters is
    /// imported first: `hopmap exec topology/import -p path=FILE -p 'leave_out=["storage-*"]' --out network`.
    #[arg(long, value_name = "FILE")]
    pub(super) topology: PathBuf,
    #[command(flatten)]
    pub(super) hosts: HostArguments,
    /// Ranks on each host, at most 1024, and 262144 on all hosts [default: the slots in --hosts-file, the GPUs or tasks of the job, or 8].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) gpus: Option<u32>,
    /// Tensor-parallel ranks.
    #[arg(long, value_name = "SIZE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) tp: u32,
    /// Context-parallel ranks.
    #[arg(long, value_name = "SIZE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) cp: u32,
    /// Expert-parallel ranks.
    #[arg(long, value_name = "SIZE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) ep: u32,
    /// Stages of the pipeline.
    #[arg(long, value_name = "SIZE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) pp: u32,
    /// Data-parallel ranks [default: as many as fill the hosts].
    #[arg(long, value_name = "SIZE", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) dp: Option<u32>,
    /// Tensor-parallel ranks of each expert [default: --tp].
    #[arg(long, value_name = "SIZE", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) etp: Option<u32>,
    /// Order in which ranks are numbered, fastest first, as in Megatron-LM.
    #[arg(long, value_name = "ORDER", default_value = "tp-cp-ep-dp-pp")]
    pub(super) order: String,
    /// Size of the model: keys of `model` of the stage instance/parallel.
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = pair, conflicts_with = "bytes")]
    pub(super) model: Vec<(String, Value)>,
    /// Bytes of each kind of group in a step: keys of `bytes` of the stage instance/parallel.
    #[arg(long, value_name = "KIND=BYTES,…", value_delimiter = ',', value_parser = pair)]
    pub(super) bytes: Vec<(String, Value)>,
    /// Groups that must not cross switches of a level, such as ep=1: those that hosts are linked to, leaf switches or
    /// accelerator domains or their sub-domains.
    #[arg(long, value_name = "KIND=LEVEL,…", value_delimiter = ',', value_parser = pair)]
    pub(super) borders: Vec<(String, Value)>,
    /// Bytes per second of links whose bandwidth the topology lacks: those of hosts first, then level by level.
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "400e9", value_parser = positive)]
    pub(super) bandwidth: Vec<f64>,
    /// Seconds of a message on a link whose latency the topology lacks.
    #[arg(long, value_name = "SECONDS", default_value = "1e-6", value_parser = positive)]
    pub(super) latency: f64,
    /// Bytes per second of all GPUs of a host together, inside it.
    #[arg(long, value_name = "RATE", default_value = "3.6e12", value_parser = positive)]
    pub(super) inside: f64,
    /// Write everything to this folder.
    #[arg(short, long, value_name = "DIR", default_value = "rank-order")]
    pub(super) out: PathBuf,
    #[command(flatten)]
    pub(super) store: StoreArguments,
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "give a number above 0".to_owned())
}

/// A key and a value that is a number or a boolean.
fn pair(text: &str) -> std::result::Result<(String, Value), String> {
    let help = "give a key and a whole number, such as layers=96 or dp=1e9";
    let (key, value) = text.split_once('=').ok_or(help)?;
    let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let whole =
        value.parse().ok().filter(|number: &f64| *number >= 0.0 && *number < 1e15 && number.fract() == 0.0);
    let value = match whole {
        Some(number) => Value::from(number as i64),
        None => value.parse::<bool>().map_err(|_| help)?.into(),
    };
    if is_key { Ok((key.to_owned(), value)) } else { Err(help.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_numbers() {
        assert_eq!(pair("layers=96"), Ok(("layers".to_owned(), 96.into())));
        assert_eq!(pair("dp=1e9"), Ok(("dp".to_owned(), 1_000_000_000.into())));
        assert_eq!(pair("sequence_parallel=false"), Ok(("sequence_parallel".to_owned(), false.into())));
        for wrong in ["layers", "layers=", "=3", "layers=many", "a b=3", "dp=-1"] {
            assert!(pair(wrong).is_err(), "{wrong}");
        }
        assert!(positive("-1").is_err() && positive("fast").is_err() && positive("50e9").is_ok());
    }
}
