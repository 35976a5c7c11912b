//! The workspace lock that OpenClaw and Cenotaph share.

use std::sync::atomic::AtomicBool;

use crate::error::Result;
use crate::store::Store;

/// Start time of this process in clock ticks since boot (field 22 of `/proc/self/stat`), as recorded in the lock.
pub fn own_start() -> Option<f64> {
    unimplemented!()
}

impl Store {
    /// Takes the lock of a workspace for `owner` (`<pid>:<uuid>`), waiting up to `wait_ms`.
    ///
    /// # Errors
    /// [`crate::Error::Refused`] with the host's words when the time is up; [`crate::Error::Interrupted`] when `cancel` is set.
    pub fn lock_workspace(
        &self,
        workspace_key: &str,
        owner: &str,
        owner_start: Option<f64>,
        now_ms: i64,
        wait_ms: u32,
        cancel: &AtomicBool,
    ) -> Result<()> {
        unimplemented!()
    }
    /// Gives the lock back. Returns false when `owner` no longer held it.
    pub fn unlock_workspace(&self, workspace_key: &str, owner: &str) -> Result<bool> {
        unimplemented!()
    }
}
