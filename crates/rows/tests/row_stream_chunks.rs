//! Tests of how row streams fill chunks. Chunks keep their size, the bytes that are moved when a
//! chunk grows are counted, and long values are written in parts.

mod planned;

use onecopy_rows::Format;
use onecopy_rows::row_stream::chunks;
use onecopy_text::{Chunk, Ledger, Stage};
use onecopy_wire::{ChunkSource, Filled};
use planned::{Owned, Plan, pump};
use serde_json::{Value, json};

#[test]
fn what_moves_when_a_chunk_grows_is_counted_as_copied() {
    let text = "x".repeat(3000);
    let plan = Plan::new(&["t"])
        .row([Owned::utf8("short")])
        .row([Owned::utf8(&text)]);
    for (capacity, moves) in [(1 << 16, false), (64, true)] {
        let ledger = Ledger::within(&Ledger::off());
        let mut stream = chunks(plan.clone().into_source(), Format::Json, &ledger).expect("fit");
        pump(&mut *stream, capacity).1.expect("complete");
        let entry = ledger.stage(Stage::Encode);
        // Each time the chunk grows, at most the bytes before the long text are moved.
        assert_eq!((entry.copied > 0, entry.copied < 200), (moves, true));
        assert_eq!((entry.taken, entry.converted), (3005, 3005));
    }
}

#[test]
fn a_chunk_keeps_its_size_where_rows_are_short() {
    let mut plan = Plan::new(&["n", "text"]).block_rows(10_000);
    for i in 0..5000 {
        plan = plan.row([Owned::I64(i), Owned::utf8(&"é".repeat(i as usize % 40))]);
    }
    let mut stream = chunks(plan.into_source(), Format::Json, &Ledger::off()).expect("fit");
    let mut chunk = Chunk::with_capacity(4096);
    let mut sizes = Vec::new();
    loop {
        chunk.clear();
        let filled = stream.fill(&mut chunk).expect("rows");
        assert_eq!(chunk.capacity(), 4096, "the chunk had to grow");
        if filled == Filled::Done {
            break;
        }
        sizes.push(chunk.len());
    }
    // The last of these chunks ends with the last block, so it may be short.
    sizes.pop();
    assert!(
        sizes.len() > 50 && sizes.iter().all(|n| *n > 4096 * 3 / 4),
        "{sizes:?}"
    );
}

#[test]
fn one_long_row_neither_swells_nor_shrinks_the_chunks_after_it() {
    let mut plan = Plan::new(&["t"]).block_rows(10_000);
    for i in 0..2000 {
        let len = if i == 10 { 20_000 } else { 20 };
        plan = plan.row([Owned::utf8(&"x".repeat(len))]);
    }
    let mut stream = chunks(plan.into_source(), Format::Csv, &Ledger::off()).expect("fit");
    let mut chunk = Chunk::with_capacity(1024);
    let mut sizes = Vec::new();
    loop {
        chunk.clear();
        if stream.fill(&mut chunk).expect("rows") == Filled::Done {
            break;
        }
        sizes.push(chunk.len());
    }
    sizes.pop();
    assert!(
        sizes.iter().skip(2).all(|n| (600..=1024).contains(n)),
        "{sizes:?}"
    );
}

#[test]
fn a_long_value_passes_through_bounded_chunks() {
    let part = vec![0x6771_u16; 1000];
    let parts: Vec<&[u16]> = (0..200).map(|_| &part[..]).collect();
    let plan = Plan::new(&["t", "n"]).row([Owned::long_utf16(&parts), Owned::I64(1)]);
    let mut stream = chunks(plan.into_source(), Format::Json, &Ledger::off()).expect("fit");
    let mut chunk = Chunk::with_capacity(8192);
    let mut all = Vec::new();
    loop {
        chunk.clear();
        let filled = stream.fill(&mut chunk).expect("parts");
        assert!(chunk.len() <= 8192, "{} bytes", chunk.len());
        all.extend_from_slice(&chunk);
        if filled == Filled::Done {
            break;
        }
    }
    let expected = json!([{ "t": "東".repeat(200_000), "n": 1 }]);
    assert_eq!(
        serde_json::from_slice::<Value>(&all).expect("JSON"),
        expected
    );
}

#[test]
fn a_quarter_of_a_chunk_is_handed_on_before_a_fetch_that_may_block() {
    let mut plan = Plan::new(&["t"]).block_rows(10);
    for _ in 0..40 {
        plan = plan.row([Owned::utf8(&"x".repeat(20))]);
    }
    let mut stream = chunks(plan.into_source(), Format::Ndjson, &Ledger::off()).expect("fit");
    // A row has 29 bytes, so ten rows fill more than a quarter of a chunk of 1,000 bytes.
    let mut chunk = Chunk::with_capacity(1000);
    assert_eq!(stream.fill(&mut chunk).expect("rows"), Filled::More);
    assert_eq!((chunk.len(), stream.n_rows()), (290, 10));
}
