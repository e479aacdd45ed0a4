//! Calls to one structure, in any order, against a model of it.

use super::tape::Tape;
use super::{range, sketch, vector};

/// Plays what the bytes say: which structure, its parameters, calls with arguments good and bad, to the end of the bytes.
pub(crate) fn play(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    match tape.below(8) {
        0 => vector::play(&mut tape, true),
        1..=3 => vector::play(&mut tape, false),
        4 | 5 => sketch::play(&mut tape),
        6 => range::play(&mut tape),
        _ => sketch::play_join(&mut tape),
    }
}
