//! The rows of an ODBC driver that returns arbitrary indicators, lengths, return codes, values and
//! parts of values. Each writer reads them up to the end or an error in a bounded number of steps,
//! and never beyond a buffer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_rows::arrow::{ArrowOptions, ArrowRows};
use onecopy_rows::odbc::fuzzing::AnsweredRows;
use onecopy_rows::row_stream::{StreamOptions, chunks_with};
use onecopy_rows::sink::BsonOptions;
use onecopy_rows::Format;
use onecopy_rows::{BlockPosition, Budget, Pumped, Source};
use onecopy_text::{Chunk, Ledger, Policy};
use onecopy_wire::Filled;

fuzz_target!(|bytes: &[u8]| {
    let Some((&chosen, answers)) = bytes.split_first() else {
        return;
    };
    // Each step consumes an answer, or ends a row or a value.
    let most_steps = 16 * answers.len() + 64;
    let rows = AnsweredRows::new(answers);
    let format = match chosen % 5 {
        0 => Format::Json,
        1 => Format::Ndjson,
        2 => Format::Csv,
        3 => Format::Bson(BsonOptions::default()),
        _ => return columns(rows, most_steps),
    };
    let options = StreamOptions::new(format);
    let Ok(mut stream) = chunks_with(rows, &options, &Ledger::default()) else {
        return;
    };
    for _ in 0..most_steps {
        let mut chunk = Chunk::with_capacity(4096);
        if matches!(stream.fill(&mut chunk), Ok(Filled::Done) | Err(_)) {
            return;
        }
    }
    panic!("more than {most_steps} chunks of {} bytes of answers", answers.len());
});

fn columns(mut rows: AnsweredRows, most_steps: usize) {
    let made = ArrowRows::new(rows.schema(), &ArrowOptions::default(), Policy::Strict);
    let mut columns = made.expect("no column was given a type");
    let mut position = BlockPosition::default();
    for _ in 0..most_steps {
        let pumped = rows.pump_columns(&mut position, Budget::default(), usize::MAX, &mut columns);
        if matches!(pumped, Ok(Pumped::End) | Err(_)) {
            return;
        }
    }
    panic!("more than {most_steps} blocks");
}
