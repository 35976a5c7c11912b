//! One flag that asks every long loop of this process to stop at its next safe point.
//!
//! A loop that sees it returns [`Error::Interrupted`](crate::Error::Interrupted); nothing half done is left, so the same call can be
//! made again.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Asks running calls to stop, or takes the request back before a new call.
pub fn ask(stop: bool) {
    ASKED.store(stop, Ordering::Relaxed);
}

/// The flag itself, for a loop that takes one.
pub fn flag() -> &'static AtomicBool {
    &ASKED
}

/// Whether a stop was asked for.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// `Err(Interrupted)` when a stop was asked for.
pub fn check() -> Result<()> {
    if asked() {
        Err(Error::Interrupted)
    } else {
        Ok(())
    }
}
