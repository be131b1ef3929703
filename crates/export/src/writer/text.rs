//! The writer of export files in the formats JSON, NDJSON, CSV, TSV and BSON. It writes the chunks
//! of a row stream, compressed if the settings require it.

use onecopy_rows::Format as RowFormat;
use onecopy_rows::connect::Statement;
use onecopy_rows::row_stream::StreamOptions;
use onecopy_rows::sink::BsonOptions;
use onecopy_text::{Chunk, planted};
use onecopy_wire::csv::{Dialect, LineEnd};
use onecopy_wire::{ChunkSource, Filled};

use super::RowOptions;
use crate::compress::Encoder;
use crate::counted::CountedWrite;
use crate::error::Error;
use crate::format::Format;
use crate::observer::Observer;

/// The size in bytes of a chunk of formatted rows. Without compression, one system call writes one
/// chunk.
const CHUNK_BYTES: usize = 64 << 10;

/// Writes all rows of a statement; returns their number.
pub(super) fn write(
    statement: Statement,
    options: &RowOptions,
    out: &mut CountedWrite<'_>,
    observer: &mut dyn Observer,
) -> Result<u64, Error> {
    let format = match options.file.format() {
        Format::Json => RowFormat::Json,
        Format::Ndjson => RowFormat::Ndjson,
        Format::Bson => RowFormat::Bson(BsonOptions::default()),
        _ => RowFormat::Csv,
    };
    let mut stream = StreamOptions::with_policy(format, statement.text_policy());
    if options.file.format() == Format::Tsv {
        let tabs = Dialect::new(b'\t', LineEnd::Lf);
        stream.dialect = tabs.map_err(|error| Error::Format(error.to_string()))?;
    }
    let mut source = statement.into_chunks_with(&stream, &options.ledger)?;
    observer.cancels(source.cancel_handle());
    let mut out = Encoder::new(options.file.compression(), out).map_err(Error::Write)?;
    match write_chunks(&mut *source, &mut out, observer) {
        Ok(()) => drop(out.finish().map_err(Error::Write)?),
        Err(error) => {
            out.abandon();
            return Err(error);
        }
    }
    Ok(source.n_rows())
}

fn write_chunks(
    source: &mut dyn ChunkSource,
    out: &mut Encoder<&mut CountedWrite<'_>>,
    observer: &mut dyn Observer,
) -> Result<(), Error> {
    let mut chunk = Chunk::with_capacity(CHUNK_BYTES);
    loop {
        chunk.clear();
        let filled = source.fill(&mut chunk)?;
        planted::extra_work_on_chunk(&chunk);
        if observer.stops() {
            return Err(Error::Stopped);
        }
        out.write_all(&chunk).map_err(Error::Write)?;
        observer.progress(source.n_rows(), out.get_ref().n_bytes());
        if filled == Filled::Done {
            return Ok(());
        }
    }
}
