//! Where the rows of a CSV file begin and end, before Arrow reads them: so that a row is a line, and no quote of one row
//! reaches another. Arrow itself looks for the end of a quoted field beyond the line, up to the end of its block.

use memchr::{memchr, memchr2, memchr3};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// How the text is made.
#[derive(Clone, Copy)]
struct Form {
    delimiter: u8,
    /// Whether a quoted field may have line breaks.
    multiline: bool,
    /// Whether the block has quotes and carriage returns; where it has none they are not looked for.
    quotes: bool,
    returns: bool,
}

/// A row: where the next one begins, how many fields it has, and whether each of its quotes is closed.
struct Row {
    next: usize,
    fields: usize,
    is_closed: bool,
    /// Whether it has anything at all: an empty line is no row, and no mistake.
    is_empty: bool,
}

impl Form {
    /// The next delimiter, quote or line break.
    fn special(self, block: &[u8], from: usize) -> Option<usize> {
        let text = &block[from..];
        let found = match (self.quotes, self.returns) {
            (false, false) => memchr2(self.delimiter, b'\n', text),
            (false, true) => memchr3(self.delimiter, b'\n', b'\r', text),
            (true, false) => memchr3(self.delimiter, b'\n', b'"', text),
            (true, true) => {
                text.iter().position(|&byte| byte == self.delimiter || matches!(byte, b'\n' | b'\r' | b'"'))
            }
        };
        found.map(|place| from + place)
    }

    /// The quote that closes a field, or in a file without line breaks in quotes the break that comes first.
    fn closing(self, block: &[u8], from: usize) -> Option<usize> {
        let text = &block[from..];
        let found = if self.multiline { memchr(b'"', text) } else { memchr3(b'"', b'\n', b'\r', text) };
        found.map(|place| from + place)
    }

    /// The row that begins at `start`. None if the block ends before it does: more may follow.
    ///
    /// A quote opens at the beginning of a field alone, and closes where another does not follow at once, as Arrow has it.
    fn row(self, block: &[u8], start: usize) -> Option<Row> {
        let mut place = start;
        let mut row = Row { next: start, fields: 1, is_closed: true, is_empty: false };
        let mut field_start = true;
        loop {
            if field_start && block.get(place) == Some(&b'"') {
                place = self.closing(block, place + 1)?;
                while block[place] == b'"' && *block.get(place + 1)? == b'"' {
                    place = self.closing(block, place + 2)?;
                }
                if block[place] != b'"' {
                    row.is_closed = false;
                } else {
                    place += 1;
                }
            }
            field_start = false;
            place = self.special(block, place)?;
            match block[place] {
                b'\n' => break,
                b'\r' => {
                    // What follows may be the other half of the break.
                    place += usize::from(*block.get(place + 1)? == b'\n');
                    break;
                }
                b'"' => {}
                _ => {
                    row.fields += 1;
                    field_start = true;
                }
            }
            place += 1;
        }
        row.next = place + 1;
        row.is_empty = matches!(block[start], b'\n' | b'\r');
        Some(row)
    }
}

/// What is in a block: how much of it are whole rows, those that are rows where others are among them, and how many these are.
struct Rows {
    used: usize,
    good: Option<Vec<u8>>,
    bad: usize,
}

fn rows(block: &[u8], form: Form, fields: usize, longest: usize) -> Rows {
    let mut found = Rows { used: 0, good: None, bad: 0 };
    while let Some(row) = form.row(block, found.used) {
        let is_short = form.multiline || row.next - found.used <= longest;
        let is_good = row.is_empty || (row.is_closed && row.fields == fields && is_short);
        if is_good {
            if let Some(good) = &mut found.good {
                good.extend_from_slice(&block[found.used..row.next]);
            }
        } else {
            found.bad += 1;
            found.good.get_or_insert_with(|| block[..found.used].to_vec());
        }
        found.used = row.next;
    }
    found
}

/// The whole rows of a block of CSV that begins with one: how many bytes they are, the block without those that are none
/// (a quote that is not closed, another number of fields, more than `longest` bytes; None if all are rows), and how many
/// these were. With `multiline` quoted fields may have line breaks, and rows any length.
///
/// A block that is the last one must end with a line break.
#[pyfunction]
pub(crate) fn _csv_rows<'py>(
    py: Python<'py>,
    block: &Bound<'py, PyBytes>,
    delimiter: u8,
    fields: usize,
    multiline: bool,
    longest: usize,
) -> PyResult<(usize, Option<Bound<'py, PyBytes>>, usize)> {
    if matches!(delimiter, b'\n' | b'\r' | b'"') {
        return Err(PyValueError::new_err("the delimiter must be neither a quote nor a line break"));
    }
    let block = block.as_bytes();
    let found = py.detach(|| {
        let (quotes, returns) = (memchr(b'"', block).is_some(), memchr(b'\r', block).is_some());
        rows(block, Form { delimiter, multiline, quotes, returns }, fields, longest)
    });
    Ok((found.used, found.good.map(|good| PyBytes::new(py, &good)), found.bad))
}
