//! The memory of the whole process for a large vector of which little is read. Alone in its file: another test in the
//! same process would count too.

mod common;

use common::rng;
use fastgame_core::rand_core::Rng;
use fastgame_core::{ContinualVector, Rows, Zcdp};

/// The peak of the process's resident memory, in bytes.
#[cfg(target_os = "linux")]
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kibibytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes * 1024
}

#[test]
#[cfg(target_os = "linux")]
#[expect(clippy::print_stdout, reason = "the measured figures")]
fn a_hundred_million_cells_of_which_ten_thousand_are_read_take_less_than_1_3_gigabytes() {
    let cells = 100_000_000;
    let limit = 1_300_000_000;
    let mut rng = rng(1);
    let mut vector = ContinualVector::builder(1 << 40, Zcdp::new(0.5).unwrap()).cells(cells).build().unwrap();
    let fresh = peak();

    // An update in every page of counters, so that all of them are resident.
    let indices: Vec<usize> = (0..cells).step_by(256).collect();
    for indices in indices.chunks(10_000) {
        let offsets: Vec<usize> = (0..=indices.len()).collect();
        vector.update_rows(Rows::Sparse { offsets: &offsets, indices, values: &vec![1i64; indices.len()] }).unwrap();
    }
    let updated = peak();

    let read: Vec<u64> = (0..10_000).map(|_| rng.next_u64() % cells as u64).collect();
    for step in [1, 2, 1 << 20, 1 << 39, 1 << 40] {
        vector.advance(step).unwrap();
        vector.release(&read[..], &mut rng).unwrap();
    }
    let (memory, all) = (vector.memory(), peak());
    println!("10^8 cells, 10^4 of them read 5 times: {memory} bytes by memory(), {all} bytes resident at the peak");
    println!("resident when built {fresh}, when every page of counters was written {updated}");
    assert!(fresh < 100_000_000, "counters that were never written take no memory: {fresh}");
    assert!(updated > 800_000_000, "not all counters are resident, the measurement means nothing: {updated}");
    assert!(memory <= limit, "{memory} bytes by memory()");
    assert!(all <= limit, "{all} bytes resident");
    // And what is resident is what memory() says, within 5 %.
    assert!(all.abs_diff(memory) < memory / 20, "{all} resident for {memory}");
}
