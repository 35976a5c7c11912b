//! One conversion from the core's errors to the Python tree.

use cenotaph_core::Error;
use cenotaph_core::error::plain;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::{PyErr, create_exception};

create_exception!(
    cenotaph._core,
    CenotaphError,
    PyException,
    "Base of every error that this package raises on its own account."
);
create_exception!(
    cenotaph._core,
    StoreError,
    CenotaphError,
    "A database cannot be used."
);
create_exception!(
    cenotaph._core,
    StoreBusy,
    StoreError,
    "Another process holds the database or the workspace lock for longer than the wait limit."
);
create_exception!(
    cenotaph._core,
    StoreCorrupt,
    StoreError,
    "The file is not a database that can be read: damaged, truncated, of another agent or something else."
);
create_exception!(
    cenotaph._core,
    StoreTooNew,
    StoreError,
    "The database has a schema version that this program does not read."
);
create_exception!(
    cenotaph._core,
    ForgetRefused,
    CenotaphError,
    "The deletion was refused before anything was written."
);
create_exception!(
    cenotaph._core,
    LineageChanged,
    CenotaphError,
    "Rows that the plan rests on changed before the write; plan again."
);

/// Adds the exception types to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("CenotaphError", py.get_type::<CenotaphError>())?;
    module.add("StoreError", py.get_type::<StoreError>())?;
    module.add("StoreBusy", py.get_type::<StoreBusy>())?;
    module.add("StoreCorrupt", py.get_type::<StoreCorrupt>())?;
    module.add("StoreTooNew", py.get_type::<StoreTooNew>())?;
    module.add("ForgetRefused", py.get_type::<ForgetRefused>())?;
    module.add("LineageChanged", py.get_type::<LineageChanged>())
}

/// The Python error for a core error. I/O errors keep their number and file name.
pub fn raise(error: &Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Io { path, source } => {
            let file = path.clone().into_os_string();
            PyOSError::new_err((source.raw_os_error(), plain(source), file))
        }
        Error::Busy { .. } | Error::Locked(_) => StoreBusy::new_err(text),
        Error::Corrupt { .. } => StoreCorrupt::new_err(text),
        Error::Version { .. } => StoreTooNew::new_err(text),
        Error::Refused(_) => ForgetRefused::new_err(text),
        Error::LineageChanged => LineageChanged::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::Sqlite { .. } => StoreError::new_err(text),
    }
}
