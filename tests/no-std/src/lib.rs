//! A freestanding user of the core: no standard library, no operating system, a bump allocator, a panic handler of
//! its own. Called from C, where a failure shows as a return code.

#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::convert::Infallible;
use core::sync::atomic::{AtomicUsize, Ordering};

use fastgame_core::rand_core::{TryCryptoRng, TryRng};
use fastgame_core::{ContinualVector, Zcdp};

const HEAP: usize = 1 << 20;

/// Hands out memory once and never takes it back: enough for a check.
struct Bump {
    heap: UnsafeCell<[u8; HEAP]>,
    used: AtomicUsize,
}

// SAFETY: ranges of the heap are handed out once each, by an atomic counter.
unsafe impl Sync for Bump {}

// SAFETY: every block is aligned, inside of the heap, and disjoint from the others.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.heap.get() as usize;
        let used = self.used.fetch_add(layout.size() + layout.align(), Ordering::Relaxed);
        let start = (base + used).next_multiple_of(layout.align());
        if start + layout.size() <= base + HEAP { start as *mut u8 } else { core::ptr::null_mut() }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Bump = Bump { heap: UnsafeCell::new([0; HEAP]), used: AtomicUsize::new(0) };

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// A fixed sequence: good for a link check, for nothing else.
struct Sequence(u64);

impl TryRng for Sequence {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|word| (word >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        Ok(self.0 ^ self.0 >> 29)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            *byte = self.try_next_u64()? as u8;
        }
        Ok(())
    }
}

impl TryCryptoRng for Sequence {}

/// Counts to 1000 in cell 3 and reads it with little noise, at a late step of a long horizon. Returns 0 if the release is
/// near the count and repeats itself.
#[unsafe(no_mangle)]
pub extern "C" fn fastgame_check() -> i32 {
    match check() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(_) => 2,
    }
}

fn check() -> fastgame_core::Result<bool> {
    let mut rng = Sequence(1);
    let mut vector = ContinualVector::builder(1 << 62, Zcdp::new(1e4)?).cells(8).build()?;
    for _ in 0..1000 {
        vector.update(&[(3u64, 1i64)])?;
    }
    vector.advance((1 << 61) + 5)?;
    let first = vector.release(&[3u64, 2], &mut rng)?;
    let again = vector.release(&[3u64, 2], &mut rng)?;
    let near = |released: f64, exact: f64| (released - exact).abs() < 8.0 * vector.noise_std();
    Ok(first == again && near(first[0], 1000.0) && near(first[1], 0.0) && vector.noise_std() < 1.0)
}
