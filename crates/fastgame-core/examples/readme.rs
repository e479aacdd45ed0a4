//! The Rust lines of the README, which `tests/readme.rs` compares with this file.

use fastgame_core::{Cells, ContinualVector, Unit, Zcdp};

fn main() -> Result<(), fastgame_core::Error> {
    let mut rng = getrandom::SysRng; // any cryptographic generator
    let mut visits = ContinualVector::builder(8_760, Zcdp::new(0.5)?)
        .cells(1_000)
        .unit(Unit::Lifetime) // protect an insertion together with its later deletion
        .build()?;
    visits.update(&[(17u64, 1i64)])?;
    let one = visits.release(&[17u64], &mut rng)?;
    visits.advance(24)?;
    let all = visits.release(Cells::<u64>::All, &mut rng)?;
    assert_eq!((one.len(), all.len()), (1, 1_000));
    Ok(())
}
