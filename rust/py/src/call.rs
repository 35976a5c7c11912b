//! How a call leaves Python: without the GIL, and so that Ctrl-C ends it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cenotaph_core::{Result, interrupt};
use pyo3::prelude::*;

use crate::error::raise;

/// How long a key press may wait before it is seen.
const LOOK: Duration = Duration::from_millis(40);

/// Runs a short core call without the GIL.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(work).map_err(|error| raise(&error))
}

/// Runs a core call that may take long: it works on a thread of its own while this one looks for signals.
///
/// A signal handler that raises asks the core to stop at its next safe point; the error is raised once it has.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    interrupt::ask(false);
    let ended = Ended::default();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _signal = ended.on_drop();
            work()
        });
        let mut stopped = None;
        while !py.detach(|| ended.wait(LOOK)) {
            if stopped.is_none()
                && let Err(signal) = py.check_signals()
            {
                stopped = Some(signal);
                interrupt::ask(true);
            }
        }
        let outcome = match py.detach(|| worker.join()) {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if let Some(signal) = stopped {
            interrupt::ask(false);
            return Err(signal);
        }
        outcome.map_err(|error| raise(&error))
    })
}

/// Tells the waiting thread that the worker is done, panic or not.
#[derive(Default)]
struct Ended {
    flag: Mutex<bool>,
    changed: Condvar,
}

struct OnDrop<'a>(&'a Ended);

impl Ended {
    fn on_drop(&self) -> OnDrop<'_> {
        OnDrop(self)
    }

    fn wait(&self, limit: Duration) -> bool {
        let flag = self.flag.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(flag, limit, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        *self.0.flag.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}
