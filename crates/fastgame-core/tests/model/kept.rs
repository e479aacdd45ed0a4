//! Playing the inputs that fuzzing found worth keeping (`fuzz/seeds`, see `CONTRIBUTING.md`).

use std::fs;
use std::path::PathBuf;

/// Runs a check on the kept inputs of a target, in the order of their names, and says which one failed.
pub(crate) fn replay(target: &str, check: fn(&[u8])) {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds")).join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty(), "no kept inputs of {target}");
    paths.sort();
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        let result = std::panic::catch_unwind(|| check(&bytes));
        assert!(result.is_ok(), "{} fails", path.display());
    }
}
