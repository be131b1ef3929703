//! `onecopy bson2json`: reads BSON documents from the input buffer and writes MongoDB Extended
//! JSON.

use onecopy_wire::bson::extended::{Form, ToJson, ToJsonError, to_json};
use onecopy_wire::bson::read::{ReadError, Reason, Rules, document_len};

use super::Conversion;
use crate::args::Bson2Json;
use crate::failure::Failure;

/// Runs `onecopy bson2json`.
pub(crate) fn run(args: &Bson2Json) -> i32 {
    let options = ToJson {
        form: match args.canonical {
            true => Form::Canonical,
            false => Form::Relaxed,
        },
        policy: args.errors,
        rules: Rules {
            max_bytes: usize::try_from(args.max_bytes).unwrap_or(usize::MAX),
            ..Rules::default()
        },
    };
    let (input, output) = (args.input.as_ref(), args.output.as_ref());
    super::run(input, output, args.quiet, |conversion| {
        all(conversion, &options, args.array)
    })
}

fn all(conversion: &mut Conversion, options: &ToJson, array: bool) -> Result<(), Failure> {
    let Conversion { input, output } = conversion;
    let mut n_documents = 0_u64;
    loop {
        input.want(4, output)?;
        if input.rest().is_empty() {
            break;
        }
        let no = |input: &super::Input, e: ReadError| {
            Failure::Other(format!(
                "`{}` is not valid BSON, at byte {} (document {}): {}{}",
                input.name,
                input.offset_bytes() + e.offset_bytes as u64,
                n_documents + 1,
                super::without_options(&e.reason),
                remedy(e.reason),
            ))
        };
        let len = document_len(input.rest(), options.rules.max_bytes).map_err(|e| no(input, e))?;
        input.want(len, output)?;
        if array {
            let before: &[u8] = if n_documents == 0 { b"[\n" } else { b",\n" };
            output.made.extend_from_slice(before);
        }
        match to_json(input.rest(), options, &mut output.made) {
            Ok(n_bytes) => input.pass(n_bytes),
            Err(ToJsonError::Read(e)) => return Err(no(input, e)),
            Err(_) => return Err(super::no_memory(&input.name)),
        }
        if !array {
            output.made.push(b'\n');
        }
        n_documents += 1;
        output.flush_large()?;
    }
    if array {
        let end: &[u8] = if n_documents == 0 { b"[]\n" } else { b"\n]\n" };
        output.made.extend_from_slice(end);
    }
    Ok(())
}

/// Returns a line of advice on an error with this `reason`; an empty string if there is none.
fn remedy(reason: Reason) -> &'static str {
    match reason {
        Reason::Malformed(_) => "\nsee `--errors`",
        Reason::Size => "\nsee `--max-bytes`",
        Reason::End => "\nit is truncated, or not BSON: use `onecopy json2bson` for text",
        _ => "",
    }
}
