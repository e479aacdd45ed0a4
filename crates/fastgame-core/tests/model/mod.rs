//! What the library must do, said a second time and simply. Shared by the property tests, the replay of kept inputs and the
//! fuzz targets (`fuzz/`), so it uses public items of the library alone, and reads what to do from a string of bytes.
#![allow(dead_code, unreachable_pub, reason = "each user takes some of this")]

mod both;
pub(crate) mod calls;
pub(crate) mod decoders;
mod range;
mod sketch;
mod tape;
mod vector;
