//! Named places between the steps of a deletion where a test can kill the process.
//!
//! They do nothing unless the environment variable `CENOTAPH_KILL_POINTS` is set when the first one is passed:
//! `log:PATH` appends the name of each one passed to a file; `kill:NAME:N` ends the process with SIGKILL when NAME is
//! passed for the N-th time. The test suite sets it; nothing else has a reason to.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const VARIABLE: &str = "CENOTAPH_KILL_POINTS";

static SWITCH: OnceLock<Switch> = OnceLock::new();
static PASSED: AtomicU64 = AtomicU64::new(0);

enum Switch {
    Off,
    Log(String),
    Kill(String, u64),
}

/// Says that the place called `name` was reached.
pub fn pass(name: &str) {
    match SWITCH.get_or_init(Switch::read) {
        Switch::Off => {}
        Switch::Log(path) => log(path, name),
        Switch::Kill(wanted, number) => {
            if wanted == name && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *number {
                let _ = rustix::process::kill_process(
                    rustix::process::getpid(),
                    rustix::process::Signal::KILL,
                );
            }
        }
    }
}

impl Switch {
    fn read() -> Self {
        let value = std::env::var(VARIABLE).unwrap_or_default();
        if let Some(path) = value.strip_prefix("log:") {
            return Self::Log(path.to_owned());
        }
        let kill = value
            .strip_prefix("kill:")
            .and_then(|rest| rest.rsplit_once(':'));
        match kill.map(|(name, number)| (name, number.parse())) {
            Some((name, Ok(number))) => Self::Kill(name.to_owned(), number),
            _ => Self::Off,
        }
    }
}

fn log(path: &str, name: &str) {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    // A test that cannot read its log sees that it is empty.
    // One call for the whole line: several threads pass kill points at once.
    let _ = opened.and_then(|mut file| file.write_all(format!("{name}\n").as_bytes()));
}
