//! How many threads a parallel scan gets.

use std::thread::available_parallelism;

/// Threads that a scan takes when nobody says otherwise: more only wait for the same disk.
const USUAL: usize = 4;

/// Runs `work` where at most `threads` (0: the usual number) carry its parallel iterators.
pub(crate) fn run<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let threads = if threads == 0 {
        available_parallelism().map_or(1, usize::from).min(USUAL)
    } else {
        threads
    };
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(work),
        // Without threads of its own the work still gets done, on the process's.
        Err(_) => work(),
    }
}
