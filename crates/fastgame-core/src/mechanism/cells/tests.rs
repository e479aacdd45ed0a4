//! What is kept where, for every process.

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use std::vec::Vec;

use super::*;
use crate::mechanism::tree::Tree;
use crate::noise::gaussian::Gaussian;

fn tree(lengths: &[usize]) -> CellNoise<Tree<Gaussian>> {
    CellNoise::new(Tree::new(20, Gaussian::new(1.0)), lengths)
}

#[test]
fn only_cells_read_on_their_own_get_a_record() {
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    let mut noise = tree(&[4, 1, 3]);
    let read = |noise: &mut CellNoise<Tree<Gaussian>>, request: Request<'_>, step, rng: &mut ChaCha12Rng| {
        noise.draw(request, step, rng).unwrap();
        noise.commit().len()
    };
    assert_eq!(read(&mut noise, Request::All, 1, &mut rng), 8);
    assert_eq!(read(&mut noise, Request::Block(2), 5, &mut rng), 3);
    assert_eq!(noise.held(), 0, "sweeps keep arrays");
    assert_eq!(read(&mut noise, Request::Cells(&[2, 2, 4]), 5, &mut rng), 3);
    assert_eq!(noise.held(), 2);
    assert_eq!(read(&mut noise, Request::Cells(&[5]), 5, &mut rng), 1);
    assert_eq!(noise.held(), 2, "a repeat of a sweep's answer keeps nothing");
    noise.draw(Request::Cells(&[0, 1]), 6, &mut rng).unwrap();
    noise.abandon();
    assert_eq!(noise.held(), 2, "an abandoned read keeps nothing");
    read(&mut noise, Request::Cells(&[0, 1, 3]), 6, &mut rng);
    assert_eq!(noise.held(), 5);
    assert!(noise.blocks[0].swept.is_none(), "a block whose cells all have records gives up its arrays");
    read(&mut noise, Request::All, 7, &mut rng);
    assert_eq!(noise.held(), 5);

    // One cell needs no record.
    let mut one = tree(&[1]);
    read(&mut one, Request::Cells(&[0, 0]), 3, &mut rng);
    assert_eq!(one.held(), 0);
}

#[test]
fn a_large_read_gives_its_buffers_back() {
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    let size = 100_000;
    let cells: Vec<u64> = (0..size).collect();
    let mut noise = tree(&[size as usize]);
    noise.draw(Request::Cells(&cells), 1, &mut rng).unwrap();
    noise.commit();
    noise.abandon();
    let room = noise.pending.cells.capacity() + noise.pending.values.capacity() + noise.pending.repeats.capacity();
    assert!(room <= 3 * KEPT_CAPACITY, "{room} elements");
}

#[test]
fn repeats_take_no_room_for_draws() {
    let mut noise = tree(&[5]);
    noise.draw(Request::Cells(&[3; 100_000]), 1, &mut ChaCha12Rng::seed_from_u64(1)).unwrap();
    let room = noise.pending.cells.capacity();
    assert!(room <= 5, "room for {room} draws of 5 cells");
}
