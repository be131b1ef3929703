//! Builds list columns from the arrays that a database returns. A list column consists of the end
//! offset of each list, and of one column with the elements of all lists.

use std::collections::TryReserveError;

use onecopy_text::{Policy, Tally};

use super::array::Array;
use super::builder::{Builder, Values};
use super::error::ValueError;
use super::plan::ColumnPlan;
use crate::array::{ArrayError, ArrayVisitor};
use crate::arrow_c::Memory;
use crate::cell::{ArrayText, Cell};

/// A list column under construction.
#[derive(Debug)]
pub(super) struct Lists {
    /// The offsets of the lists: 0, then the end of each list as an index into `items`.
    ends: Vec<i32>,
    items: Builder,
}

impl Lists {
    pub(super) fn new(items: &ColumnPlan, policy: Policy, was_requested: bool) -> Lists {
        Lists {
            ends: vec![0],
            items: Builder::new(items, policy, was_requested),
        }
    }

    pub(super) fn items(&self) -> &Builder {
        &self.items
    }

    /// Reserves memory for the offsets of `n_values` more lists.
    pub(super) fn reserve(&mut self, n_values: usize) -> Result<(), TryReserveError> {
        self.ends.try_reserve(n_values)
    }

    /// Appends an empty list as the placeholder for a NULL.
    pub(super) fn put_nothing(&mut self) {
        let end = *self.ends.last().expect("the first offset is always there");
        self.ends.push(end);
    }

    /// Appends an array of the database as a list. If the array has several dimensions, the
    /// elements of the list are lists. Returns approximately how many bytes the elements occupy.
    pub(super) fn put(
        &mut self,
        array: ArrayText<'_>,
        tally: &mut Tally,
    ) -> Result<usize, ValueError> {
        let mut put = PutElements {
            lists: self,
            tally,
            depth: 0,
            n_bytes: 8,
        };
        match array.visit(&mut put) {
            Ok(()) => Ok(put.n_bytes),
            Err(ArrayError::Malformed) => Err(ValueError::Invalid),
            Err(ArrayError::Visitor(why)) => Err(why),
        }
    }

    /// Returns the builder of the lists at a nesting depth: for `dimension` 1 this builder, for 2
    /// the builder of its elements, and so on. Returns an error if the lists are not nested so
    /// deeply.
    fn of_dimension(&mut self, dimension: usize) -> Result<&mut Lists, ValueError> {
        let mut lists = self;
        for _ in 1..dimension {
            match &mut lists.items.values {
                Values::List(inner) => lists = inner,
                _ => return Err(ValueError::Dimensions),
            }
        }
        Ok(lists)
    }

    /// Determines the type of the elements of the lists, if it is still undecided.
    pub(super) fn settle(&mut self) -> Result<(), (usize, ValueError)> {
        let settled = self.items.settle();
        settled.map_err(|(at, why)| (self.list_of(at), why))
    }

    /// Returns the elements of all lists so far, and removes them from the builder. The caller must
    /// call this function before [`Lists::take_ends`], because the offsets are needed to compute
    /// the index of the list that an error contains.
    pub(super) fn take_items(&mut self) -> Result<Array, (usize, ValueError)> {
        let items = self.items.take();
        items.map_err(|(at, why)| (self.list_of(at), why))
    }

    /// Returns the offsets of the lists as a buffer, and removes them from the builder.
    pub(super) fn take_ends(&mut self) -> Memory {
        Memory::of(std::mem::replace(&mut self.ends, vec![0]))
    }

    /// Returns the index (from 0) of the list that contains the element with the index `item` among
    /// the elements of all lists.
    fn list_of(&self, item: usize) -> usize {
        let ends = &self.ends[1..];
        ends.partition_point(|end| usize::try_from(*end).unwrap_or(0) <= item)
    }
}

/// A visitor of the elements of an array. It appends each element to `lists`.
struct PutElements<'a> {
    lists: &'a mut Lists,
    tally: &'a mut Tally,
    /// The nesting depth of the current array: 1 in an array, 2 in an array within an array.
    depth: usize,
    n_bytes: usize,
}

impl ArrayVisitor for PutElements<'_> {
    type Error = ValueError;

    fn begin(&mut self) -> Result<(), ValueError> {
        if self.depth > 0 {
            let lists = self.lists.of_dimension(self.depth)?;
            lists.items.make_capacity()?;
        }
        self.depth += 1;
        self.lists.of_dimension(self.depth).map(|_| ())
    }

    fn element(&mut self, cell: Cell<'_>) -> Result<(), ValueError> {
        let lists = self.lists.of_dimension(self.depth)?;
        if let Values::List(_) = lists.items.values {
            return Err(ValueError::Dimensions);
        }
        self.n_bytes += lists.items.put(cell, self.tally)?;
        Ok(())
    }

    fn end(&mut self) -> Result<(), ValueError> {
        let lists = self.lists.of_dimension(self.depth)?;
        let end = i32::try_from(lists.items.len).map_err(|_| ValueError::Long)?;
        lists.ends.try_reserve(1)?;
        lists.ends.push(end);
        self.depth -= 1;
        if self.depth > 0 {
            self.lists.of_dimension(self.depth)?.items.count_value();
            self.n_bytes += 8;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::types::DataType;
    use super::*;
    use crate::cell::ElementType;

    fn array(text: &str) -> Cell<'_> {
        Cell::Array(ArrayText {
            text: text.as_bytes(),
            element: ElementType::Integer {
                bits: 32,
                unsigned: false,
            },
            far_dates_as_text: false,
        })
    }

    fn column(name: &str) -> Builder {
        let data_type = DataType::of_name(name).unwrap();
        Builder::new(&ColumnPlan::Type(data_type), Policy::Strict, false)
    }

    fn i32s(array: &Array, buffer: usize) -> Vec<i32> {
        let bytes = array.buffers[buffer].bytes().chunks_exact(4);
        bytes
            .map(|b| i32::from_ne_bytes(b.try_into().unwrap()))
            .collect()
    }

    #[test]
    fn lists_have_their_ends_and_their_elements() {
        let mut lists = column("list<int32>");
        let mut tally = Tally::default();
        for _ in 0..2 {
            for cell in [array("{}"), array("{1,NULL}"), Cell::Null, array("{3}")] {
                lists.put(cell, &mut tally).unwrap();
            }
            let made = lists.take().unwrap();
            let items = made.items.as_ref().unwrap();
            assert_eq!((made.len, made.n_nulls), (4, Some(1)));
            assert_eq!(i32s(&made, 0), [0, 0, 2, 2, 3]);
            assert_eq!(i32s(items, 0), [1, 0, 3]);
            assert!(made.is_null(2) && items.is_null(1) && !items.is_null(2));
        }
    }

    #[test]
    fn dimensions_are_those_of_the_type() {
        let mut tally = Tally::default();
        for (name, text) in [
            ("list<int32>", "{{1}}"),
            ("list<list<int32>>", "{1}"),
            ("list<list<int32>>", "{NULL}"),
            ("list<list<int32>>", "{{{1}}}"),
        ] {
            let put = column(name).put(array(text), &mut tally);
            assert_eq!(put, Err(ValueError::Dimensions), "{name} {text}");
        }
        let mut lists = column("list<list<int32>>");
        for text in ["{{1,2},{3,NULL}}", "{}", "{{4}}"] {
            lists.put(array(text), &mut tally).unwrap();
        }
        let made = lists.take().unwrap();
        let inner = made.items.as_ref().unwrap();
        assert_eq!(i32s(&made, 0), [0, 2, 2, 3]);
        assert_eq!((inner.len, i32s(inner, 0)), (3, vec![0, 2, 4, 5]));
        let malformed = column("list<int32>").put(array("{1"), &mut tally);
        assert_eq!(malformed, Err(ValueError::Invalid));
    }

    #[test]
    fn malformed_text_is_in_the_list_of_its_element() {
        let mut lists = column("list<string>");
        for text in [&b"{a,b}"[..], b"{}", b"{c,\xFF}", b"{d}"] {
            let element = ElementType::Text;
            let cell = Cell::Array(ArrayText {
                text,
                element,
                far_dates_as_text: false,
            });
            lists.put(cell, &mut Tally::default()).unwrap();
        }
        assert_eq!(lists.take().unwrap_err().0, 2);
    }
}
