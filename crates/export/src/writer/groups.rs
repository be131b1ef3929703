//! [`RowGroups`]: joins batches to row groups. The limits of a row group depend only on the values
//! of its rows.
//!
//! The size of a batch depends on how much data a connection received at once. If row groups ended
//! with batches, two exports of the same rows would differ.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{ArrowError, DataType};
use arrow_select::concat::concat;
use onecopy_text::Tally;

/// The number of rows that are passed to the Parquet writer in one call. Within a call, it checks
/// only after a number of values if a page or a dictionary ends. So the number of rows of a call
/// must not depend on the batches.
const CHUNK_ROWS: usize = 4096;

/// Collects the rows of batches until a row group is complete, without copying their values.
pub(super) struct RowGroups {
    /// A row group ends with the row with which its values have at least this number of bytes.
    most_bytes: usize,
    most_rows: usize,
    group: RowGroup,
    n_bytes: usize,
}

/// A row group: consecutive rows, as slices of the batches in which they were received.
#[derive(Default)]
pub(super) struct RowGroup {
    /// For each column, the slices of its values in the order of the rows.
    columns: Vec<Vec<ArrayRef>>,
    pub(super) n_rows: usize,
}

impl RowGroups {
    /// Creates the state before the first row group.
    pub(super) fn new(most_bytes: usize, most_rows: usize) -> RowGroups {
        RowGroups {
            most_bytes,
            most_rows,
            group: RowGroup::default(),
            n_bytes: 0,
        }
    }

    /// Adds the rows of a batch; returns the row groups that they complete.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Vec<RowGroup> {
        let mut complete = Vec::new();
        let mut start = 0;
        while start < batch.num_rows() {
            let rest = batch.slice(start, batch.num_rows() - start);
            let (n_rows, n_bytes) = self.fitting(&rest);
            self.group.push(&rest.slice(0, n_rows));
            self.n_bytes += n_bytes;
            start += n_rows;
            if self.n_bytes >= self.most_bytes || self.group.n_rows >= self.most_rows {
                complete.push(self.take());
            }
        }
        complete
    }

    /// Returns the rows of the current, incomplete row group, and begins a new one.
    pub(super) fn take(&mut self) -> RowGroup {
        self.n_bytes = 0;
        std::mem::take(&mut self.group)
    }

    /// Returns how many rows of the batch belong to the current row group, and the number of bytes
    /// of their values. These are the rows up to the one that completes the group, or all rows of
    /// the batch.
    fn fitting(&self, batch: &RecordBatch) -> (usize, usize) {
        let n_bytes = |n_rows| -> usize {
            let columns = batch.columns().iter();
            columns.map(|column| value_bytes(column, n_rows)).sum()
        };
        let most = batch.num_rows().min(self.most_rows - self.group.n_rows);
        let (mut enough, mut few) = (most, 0);
        if self.n_bytes + n_bytes(most) >= self.most_bytes {
            // `few` rows do not complete the group, `enough` rows do.
            while few + 1 < enough {
                let middle = few.midpoint(enough);
                match self.n_bytes + n_bytes(middle) >= self.most_bytes {
                    true => enough = middle,
                    false => few = middle,
                }
            }
        }
        (enough, n_bytes(enough))
    }
}

impl RowGroup {
    fn push(&mut self, batch: &RecordBatch) {
        self.columns.resize(batch.num_columns(), Vec::new());
        for (slices, column) in self.columns.iter_mut().zip(batch.columns()) {
            slices.push(column.clone());
        }
        self.n_rows += batch.num_rows();
    }

    /// Returns an iterator over the columns. Each column is copied into one array; `tally` counts
    /// the copied text.
    pub(super) fn joined(
        self,
        tally: &mut Tally,
    ) -> impl Iterator<Item = Result<ArrayRef, ArrowError>> {
        self.columns.into_iter().map(|slices| join(&slices, tally))
    }

    /// Returns an iterator over the columns. Each column is a list of arrays of [`CHUNK_ROWS`]
    /// rows, of which the last one may be shorter. Values are copied only if their chunk consists
    /// of several slices; `tally` counts the copied text.
    pub(super) fn into_chunks(
        self,
        tally: &mut Tally,
    ) -> impl Iterator<Item = Result<Vec<ArrayRef>, ArrowError>> {
        self.columns
            .into_iter()
            .map(|slices| chunks(&slices, tally))
    }
}

/// Returns a copy of the values of all slices as one array.
fn join(slices: &[ArrayRef], tally: &mut Tally) -> Result<ArrayRef, ArrowError> {
    tally.copied_again(slices.iter().map(|slice| text_bytes(slice)).sum());
    let mut slices: Vec<&dyn Array> = slices.iter().map(AsRef::as_ref).collect();
    // `concat` copies a single array only if a second one, here an empty one, is added. In the
    // copy, the unused bits of a bitmap are 0. At the end of a slice, they belong to other rows.
    let empty = slices.first().map(|slice| slice.slice(0, 0));
    slices.extend(empty.as_deref());
    concat(&slices)
}

fn chunks(slices: &[ArrayRef], tally: &mut Tally) -> Result<Vec<ArrayRef>, ArrowError> {
    let mut chunks = Vec::new();
    // The slices of the current chunk; they have fewer than `CHUNK_ROWS` rows in total.
    let (mut pieces, mut n_pieces) = (Vec::new(), 0);
    for slice in slices {
        let mut start = 0;
        while start < slice.len() {
            let n_rows = (slice.len() - start).min(CHUNK_ROWS - n_pieces);
            let piece = slice.slice(start, n_rows);
            start += n_rows;
            if n_rows == CHUNK_ROWS {
                chunks.push(piece);
                continue;
            }
            pieces.push(piece);
            n_pieces += n_rows;
            if n_pieces == CHUNK_ROWS {
                chunks.push(join(&pieces, tally)?);
                pieces.clear();
                n_pieces = 0;
            }
        }
    }
    if n_pieces > 0 {
        chunks.push(join(&pieces, tally)?);
    }
    Ok(chunks)
}

/// Returns the number of bytes of the first `n_rows` values. The result depends only on the values,
/// not on the size of the buffers that contain them.
fn value_bytes(array: &dyn Array, n_rows: usize) -> usize {
    match array.data_type() {
        DataType::Null => 0,
        DataType::Boolean => n_rows,
        DataType::FixedSizeBinary(width) => n_rows * usize::try_from(*width).unwrap_or(0),
        DataType::Utf8 => n_rows * 4 + len_bytes::<Utf8Type>(array, n_rows),
        DataType::LargeUtf8 => n_rows * 8 + len_bytes::<LargeUtf8Type>(array, n_rows),
        DataType::Binary => n_rows * 4 + len_bytes::<BinaryType>(array, n_rows),
        DataType::LargeBinary => n_rows * 8 + len_bytes::<LargeBinaryType>(array, n_rows),
        DataType::List(_) => {
            let items = items(array, n_rows);
            n_rows * 4 + value_bytes(&items, items.len())
        }
        other => n_rows * other.primitive_width().unwrap_or(8),
    }
}

/// Returns the number of bytes of text in an array, without offsets.
fn text_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8 => len_bytes::<Utf8Type>(array, array.len()),
        DataType::LargeUtf8 => len_bytes::<LargeUtf8Type>(array, array.len()),
        DataType::List(_) => text_bytes(&items(array, array.len())),
        _ => 0,
    }
}

/// Returns the total length in bytes of the first `n_rows` texts or binary values.
fn len_bytes<T: ByteArrayType>(array: &dyn Array, n_rows: usize) -> usize {
    let offsets = array.as_bytes::<T>().offsets();
    offsets[n_rows].as_usize() - offsets[0].as_usize()
}

/// Returns the items of the first `n_rows` lists as one array.
fn items(array: &dyn Array, n_rows: usize) -> ArrayRef {
    let list = array.as_list::<i32>();
    let (first, last) = (
        list.offsets()[0].as_usize(),
        list.offsets()[n_rows].as_usize(),
    );
    list.values().slice(first, last - first)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, ListArray, StringArray, types::Int32Type};
    use proptest::prelude::*;

    use super::*;

    fn batch(rows: &[(i64, String)]) -> RecordBatch {
        let numbers: Int64Array = rows
            .iter()
            .map(|(n, _)| (n % 3 != 0).then_some(*n))
            .collect();
        let texts: StringArray = rows.iter().map(|(_, text)| Some(text)).collect();
        let lists = rows
            .iter()
            .map(|(n, text)| (n % 5 != 0).then(|| [Some(1_i32), None].repeat(text.len() % 4)));
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
        let columns: [(&str, ArrayRef); 3] = [
            ("n", Arc::new(numbers)),
            ("text", Arc::new(texts)),
            ("list", Arc::new(lists)),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, c)| (name, c, true))).unwrap()
    }

    fn groups(rows: &[(i64, String)], cuts: &[usize], most: (usize, usize)) -> Vec<Vec<ArrayRef>> {
        let mut groups = RowGroups::new(most.0, most.1);
        let mut found = Vec::new();
        let mut take = |group: RowGroup| {
            found.push(
                group
                    .joined(&mut Tally::default())
                    .collect::<Result<Vec<_>, _>>()
                    .unwrap(),
            );
        };
        let mut start = 0;
        for n in cuts.iter().chain([&rows.len()]) {
            let end = (start + n).min(rows.len());
            for group in groups.add(&batch(&rows[start..end])) {
                take(group);
            }
            start = end;
        }
        take(groups.take());
        found
    }

    proptest! {
        #[test]
        fn groups_do_not_depend_on_the_batches(
            rows in prop::collection::vec((any::<i64>(), "[a-c]{0,20}"), 1..200),
            cuts in prop::collection::vec(0_usize..40, 0..10),
            most_bytes in 1_usize..2000,
            most_rows in 1_usize..60,
        ) {
            let most = (most_bytes, most_rows);
            let whole = groups(&rows, &[], most);
            prop_assert_eq!(&groups(&rows, &cuts, most), &whole);
            let n_rows = whole.iter().filter_map(|group| group.first()).map(|c| c.len());
            let n_rows: Vec<usize> = n_rows.collect();
            prop_assert_eq!(n_rows.iter().sum::<usize>(), rows.len());
            prop_assert!(n_rows.iter().all(|n| *n >= 1 && *n <= most_rows));
        }
    }

    proptest! {
        #[test]
        fn chunks_do_not_depend_on_the_slices(
            n_rows in 1_usize..20_000,
            cuts in prop::collection::vec(0_usize..9000, 0..8),
        ) {
            let rows: Vec<(i64, String)> = (0..n_rows as i64).map(|n| (n, n.to_string())).collect();
            let whole = batch(&rows);
            let mut groups = RowGroups::new(usize::MAX, usize::MAX);
            let mut start = 0;
            for n in cuts.into_iter().chain([n_rows]) {
                let n = n.min(n_rows - start);
                groups.add(&whole.slice(start, n));
                start += n;
            }
            let mut tally = Tally::default();
            let columns: Vec<_> = groups.take().into_chunks(&mut tally).collect();
            for (column, chunks) in columns.into_iter().enumerate() {
                let chunks = chunks.unwrap();
                let lens = chunks[..chunks.len() - 1].iter().map(|chunk| chunk.len());
                prop_assert!(lens.into_iter().all(|len| len == CHUNK_ROWS));
                prop_assert_eq!(&join(&chunks, &mut Tally::default()).unwrap(), whole.column(column));
            }
        }
    }

    #[test]
    fn the_copied_text_is_counted() {
        let copied = |group: RowGroup, is_joined| {
            let mut tally = Tally::default();
            match is_joined {
                true => group
                    .joined(&mut tally)
                    .for_each(|column| drop(column.unwrap())),
                false => group
                    .into_chunks(&mut tally)
                    .for_each(|column| drop(column.unwrap())),
            }
            tally.entry().copied
        };
        // Without lists of text: `batch` has one column of text.
        let rows: Vec<(i64, String)> = (0..5000).map(|n| (n, "abc".to_owned())).collect();
        let group = || {
            let mut groups = RowGroups::new(usize::MAX, usize::MAX);
            groups.add(&batch(&rows[..100]));
            groups.add(&batch(&rows[100..]));
            groups.take()
        };
        assert_eq!(copied(group(), true), 5000 * 3);
        // All rows of the first chunk, and the 904 rows of the last one.
        assert_eq!(copied(group(), false), 5000 * 3);
        let mut whole = RowGroups::new(usize::MAX, usize::MAX);
        whole.add(&batch(&rows[..CHUNK_ROWS]));
        assert_eq!(copied(whole.take(), false), 0);
    }

    #[test]
    fn a_group_ends_with_the_row_that_fills_it() {
        let rows: Vec<(i64, String)> = (1..=6).map(|n| (n, "x".repeat(100))).collect();
        // 8 bytes for the number, 104 for the text, 4 for the empty list: 116 in each row.
        let n_rows = |most_bytes| -> Vec<usize> {
            let groups = groups(&rows, &[3, 3], (most_bytes, 100));
            let columns = groups.iter().filter_map(|group| group.first());
            columns.map(|column| column.len()).collect()
        };
        assert_eq!(n_rows(1), [1, 1, 1, 1, 1, 1]);
        assert_eq!(n_rows(2 * 116), [2, 2, 2]);
        assert_eq!(n_rows(2 * 116 + 1), [3, 3]);
        assert_eq!(n_rows(10_000), [6]);
    }
}
