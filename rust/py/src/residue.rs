//! What is left of forgotten texts in the bytes of files.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use cenotaph_core::error::plain;
use cenotaph_core::residue::{self, Needle};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::{detached, interruptible};

/// Adds functions and classes of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Needles>()?;
    module.add_class::<Place>()?;
    module.add_function(wrap_pyfunction!(find_residue, module)?)?;
    module.add_function(wrap_pyfunction!(files_below, module)?)
}

type Failure = (OsString, String);

#[pyclass(frozen, module = "cenotaph._core")]
pub struct Needles {
    pub inner: Arc<residue::Needles>,
}

impl From<residue::Needles> for Needles {
    fn from(inner: residue::Needles) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }
}

#[pymethods]
impl Needles {
    #[new]
    #[pyo3(signature = (texts = Vec::new(), words = Vec::new(), raw = Vec::new(), vectors = Vec::new()))]
    fn new(
        py: Python<'_>,
        texts: Vec<Vec<u8>>,
        words: Vec<Vec<u8>>,
        raw: Vec<Vec<u8>>,
        vectors: Vec<Vec<f32>>,
    ) -> Self {
        py.detach(|| {
            let texts = texts.into_iter().map(Needle::Text);
            let words = words.into_iter().map(Needle::Word);
            let raw = raw.into_iter().map(Needle::Raw);
            let vectors = vectors.into_iter().map(Needle::Vector);
            let all = texts.chain(words).chain(raw).chain(vectors);
            residue::Needles::new(all.collect()).into()
        })
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: Vec<u8>) -> PyResult<Self> {
        let inner = detached(py, || residue::Needles::from_bytes(&data))?;
        Ok(inner.into())
    }

    #[staticmethod]
    fn from_shingles(py: Python<'_>, shingles: Vec<Vec<u8>>, key: Vec<u8>) -> PyResult<Self> {
        let inner = detached(py, || residue::Needles::from_shingles(&shingles, &key))?;
        Ok(inner.into())
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.to_bytes())
    }

    fn shingles<'py>(&self, py: Python<'py>, key: Vec<u8>) -> Bound<'py, PyBytes> {
        let kept = py.detach(|| self.inner.shingles(&key));
        PyBytes::new(py, &kept)
    }
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct Place {
    path: OsString,
    part: &'static str,
    table: Option<String>,
    needles: u64,
    offset: u64,
}

impl From<residue::Place> for Place {
    fn from(place: residue::Place) -> Self {
        Self {
            path: place.path.into_os_string(),
            part: place.part.name(),
            table: place.table,
            needles: place.needles,
            offset: place.offset,
        }
    }
}

#[pyfunction]
#[pyo3(signature = (files, needles, kept_tables = Vec::new(), threads = 0))]
fn find_residue(
    py: Python<'_>,
    files: Vec<PathBuf>,
    needles: &Needles,
    kept_tables: Vec<String>,
    threads: usize,
) -> PyResult<(Vec<Place>, Vec<Failure>, u64)> {
    let needles = Arc::clone(&needles.inner);
    let found = interruptible(py, move || {
        residue::find_residue(&files, &needles, &kept_tables, threads)
    })?;
    let failures = found.failures.into_iter();
    Ok((
        found.places.into_iter().map(Into::into).collect(),
        failures
            .map(|(path, reason)| (path.into_os_string(), reason))
            .collect(),
        found.bytes,
    ))
}

#[pyfunction]
fn files_below(py: Python<'_>, roots: Vec<PathBuf>) -> PyResult<(Vec<OsString>, Vec<Failure>)> {
    let (files, failures) = interruptible(py, move || residue::files_below(&roots))?;
    let failures = failures
        .into_iter()
        .map(|(path, error)| (path.into_os_string(), plain(&error)));
    Ok((
        files.into_iter().map(PathBuf::into_os_string).collect(),
        failures.collect(),
    ))
}
