//! Files of PARUS (Salnikov and Sazonov, Moscow State University) and of the network tests that followed it.

mod netcdf;
mod network;
mod text;

pub use network::{Kind, NetworkFile, hosts_of_netcdf};

#[cfg(test)]
mod tests;
