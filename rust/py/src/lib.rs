//! The module `cenotaph._core`: convert, detach, wrap; nothing else.

#![allow(
    clippy::needless_pass_by_value,
    reason = "pyo3 hands arguments over as owned values"
)]
#![allow(
    clippy::struct_field_names,
    reason = "fields are named as the columns they come from"
)]

mod call;
mod error;
mod gather;
mod receipts;
mod residue;
mod scan;
mod state;
mod store;

use pyo3::prelude::*;

/// The compiled core of Cenotaph.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("DEBUG_BUILD", cfg!(debug_assertions))?;
    error::register(module)?;
    scan::register(module)?;
    store::register(module)?;
    state::register(module)?;
    receipts::register(module)?;
    gather::register(module)?;
    residue::register(module)
}
