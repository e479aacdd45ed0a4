//! How noise is correlated over time: what a cell keeps between its reads, and the draws of a read.

pub(crate) mod store;
pub(crate) mod tree;
