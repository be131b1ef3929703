//! A micro-benchmark of the conversions, by script and length: prints the best nanoseconds per call
//! of each row. `cargo bench -p onecopy-text` runs it. An argument selects the rows that contain
//! it.
//!
//! With `--turns` a program on its standard input and output paces it, so that the samples of two
//! builds alternate: it prints the name of a row, then takes one sample for each empty line that it
//! reads; any other line ends the row.
#![allow(
    clippy::print_stdout,
    missing_docs,
    reason = "a program that prints its result"
)]

use std::hint::black_box;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use onecopy_text::convert::{
    CellBytes, CellEncoding, CellUtf8, CellUtf16, JSON_PLAIN_BYTES, Kernels, NewBytes, NewStr,
    Scan, StrData, Work, json_capacity, make_large, make_ordered_utf16, make_ordered_utf32,
    ordered_utf16, ordered_utf32, put_float, put_float32, utf8_capacity, utf8_exact,
    utf8_len_exact, with_kernels, within,
};
use onecopy_text::{
    Chunk, Kind, Pen, Policy, Put, Shape, Units, convert, find_malformed, is_utf8, measure,
    utf8_len,
};

const SCRIPTS: [(&str, &str); 5] = [
    ("ascii", "the quick brown fox jumps over a lazy dog, "),
    ("latin1", "Übergrößenträger fährt für Öl, "),
    ("cyrillic", "съешь ещё этих мягких французских булок, "),
    ("cjk", "天地玄黃宇宙洪荒日月盈昃辰宿列張"),
    ("emoji", "zwei 😀 und 🎉 drei 🚀🌍 "),
];
const LENGTHS: [usize; 6] = [5, 14, 40, 150, 1000, 20_000];

/// Memory for one `str` or `bytes`, which is reused for each measured call.
struct Memory {
    one: Vec<MaybeUninit<u8>>,
    two: Vec<MaybeUninit<u16>>,
    four: Vec<MaybeUninit<u32>>,
}

struct Made(Shape, Box<Memory>);

struct Reused(Option<Box<Memory>>);

impl NewStr for Reused {
    type Str = Made;
    type Error = ();
    #[inline]
    fn new_str(&mut self, shape: Shape) -> Result<Made, ()> {
        self.0.take().map(|memory| Made(shape, memory)).ok_or(())
    }
    #[inline]
    fn data<'a>(&self, made: &'a mut Made) -> StrData<'a> {
        let n = made.0.n_chars;
        match made.0.kind {
            Kind::Ascii | Kind::Latin1 => StrData::One(&mut made.1.one[..n]),
            Kind::Ucs2 => StrData::Two(&mut made.1.two[..n]),
            Kind::Ucs4 => StrData::Four(&mut made.1.four[..n]),
        }
    }
}

impl NewBytes for Reused {
    type Bytes = Made;
    type Error = ();
    #[inline]
    fn new_bytes(&mut self, n_chars: usize) -> Result<Made, ()> {
        let kind = Kind::Latin1;
        self.new_str(Shape { kind, n_chars })
    }
    #[inline]
    fn data<'a>(&self, made: &'a mut Made) -> &'a mut [MaybeUninit<u8>] {
        let n = made.0.n_chars;
        &mut made.1.one[..n]
    }
}

struct MakeCells<'a, E>(&'a [&'a [u8]], &'a mut Reused, PhantomData<E>);

impl<E: CellEncoding> Work for MakeCells<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) {
        for cell in self.0 {
            if let Some(Ok(made)) = E::make(kernels, cell, self.1) {
                self.1.0 = Some(black_box(made.made).1);
            }
        }
    }
}

struct EncodeCells<'a, E>(Units<'a>, bool, &'a mut Reused, PhantomData<E>);

impl<E: CellEncoding> Work for EncodeCells<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) {
        for _ in 0..16 {
            if let Some(Ok(made)) = E::encode(kernels, black_box(self.0), self.1, self.2) {
                self.2.0 = Some(black_box(made).1);
            }
        }
    }
}

/// A task that writes texts as bodies of JSON strings or, without `JSON`, as UTF-8, in the way in
/// which an encoder of objects writes them.
struct PutTexts<'a, const JSON: bool>(Units<'a>, bool, &'a mut [MaybeUninit<u8>]);

impl<const JSON: bool> Work for PutTexts<'_, JSON> {
    type Output = ();
    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) {
        for _ in 0..16 {
            let mut pen = Pen::new(self.2);
            match black_box(self.0) {
                Units::Latin1(u) if JSON && self.1 && u.len() <= JSON_PLAIN_BYTES => {
                    // SAFETY: the pen has more bytes, apart from the text.
                    _ = black_box(unsafe { kernels.json_plain(u, pen.at()) });
                }
                Units::Latin1(u) if JSON => kernels.put_json_latin1(u, self.1, &mut pen),
                Units::Latin1(u) => kernels.put_utf8_latin1(u, &mut pen),
                Units::Ucs2(u) if JSON => _ = kernels.put_json_ucs2(u, &mut pen),
                Units::Ucs2(u) => _ = kernels.put_utf8_ucs2(u, &mut pen),
                Units::Utf32(u) if JSON => _ = kernels.put_json_ucs4(u, &mut pen),
                Units::Utf32(u) => _ = kernels.put_utf8_ucs4(u, &mut pen),
                _ => {}
            }
            black_box(pen.remaining());
        }
    }
}

struct ReadJson<'a>(&'a [u8]);

impl Work for ReadJson<'_> {
    type Output = usize;
    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> usize {
        let mut scan = Scan::new(kernels, self.0);
        let (mut at, mut n) = (0, 0);
        while at < self.0.len() {
            at += scan.blank(at);
            match self.0.get(at) {
                Some(b'"') => at += scan.plain(at + 1).len() + 2,
                Some(b'0'..=b'9') => {
                    let number = scan.short_number(at);
                    at += number.map_or(1, |number| number.len);
                }
                Some(b'\\') => at += 2,
                _ => at += 1,
            }
            n += 1;
        }
        n
    }
}

struct Rows {
    selected: Option<String>,
    in_turns: bool,
}

impl Rows {
    /// Measures one row of the output; `work` makes `n_calls` calls of the measured function.
    fn row(&self, name: &str, n_calls: u32, mut work: impl FnMut()) {
        if self
            .selected
            .as_ref()
            .is_some_and(|part| !name.contains(part.as_str()))
        {
            return;
        }
        let started = Instant::now();
        let mut n = 0;
        while started.elapsed() < Duration::from_micros(300) {
            work();
            n += 1;
        }
        let mut sample = || {
            let started = Instant::now();
            for _ in 0..n {
                work();
            }
            started.elapsed().as_secs_f64() * 1e9 / f64::from(n) / f64::from(n_calls)
        };
        if !self.in_turns {
            let best = (0..12).map(|_| sample()).fold(f64::INFINITY, f64::min);
            println!("{name} {best:.3}");
            return;
        }
        println!("{name}");
        let mut line = String::new();
        while std::io::stdin().read_line(&mut line).is_ok_and(|n| n == 1) {
            println!("{:.3}", sample());
            line.clear();
        }
    }
}

/// The data of a `str`, in the narrowest kind that can store the text.
enum Storage {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
}

impl Storage {
    fn new(text: &str) -> Storage {
        let units: Vec<u32> = text.chars().map(u32::from).collect();
        match units.iter().max() {
            Some(0..=0xFF) => Storage::One(units.iter().map(|&u| u as u8).collect()),
            Some(0..=0xFFFF) => Storage::Two(units.iter().map(|&u| u as u16).collect()),
            _ => Storage::Four(units),
        }
    }

    fn units(&self) -> Units<'_> {
        match self {
            Storage::One(u) => Units::Latin1(u),
            Storage::Two(u) => Units::Ucs2(u),
            Storage::Four(u) => Units::Utf32(u),
        }
    }
}

fn main() {
    let selected = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let in_turns = std::env::args().any(|arg| arg == "--turns");
    let rows = Rows { selected, in_turns };
    for (script, sample) in SCRIPTS {
        for len in LENGTHS {
            let text: String = sample.chars().cycle().take(len).collect();
            rows_of_text(&rows, &format!("{script}-{len}"), &text);
        }
    }
    rows_of_json(&rows);
    let mut capacity = [const { MaybeUninit::uninit() }; 64];
    for (name, value) in [
        ("short", 1.5),
        ("long", 12.345_678_901_234_5),
        ("small", 0.001_234),
    ] {
        rows.row(&format!("float-{name}"), 1, || {
            put_float(black_box(value), &mut Pen::new(&mut capacity));
        });
        rows.row(&format!("float32-{name}"), 1, || {
            put_float32(black_box(value as f32), &mut Pen::new(&mut capacity));
        });
    }
}

fn rows_of_json(rows: &Rows) {
    let members = |text: &str| -> String {
        let member = format!("{{\"id\": 12345, \"name\": \"{text}\", \"price\": 3.25}},\n ");
        member.repeat(50)
    };
    let long = "lorem ipsum ".repeat(30);
    for (name, text) in [
        ("ascii", "short name"),
        ("cyrillic", "булок"),
        ("long", &long),
    ] {
        let document = members(text);
        rows.row(&format!("json-read-{name}"), 50, || {
            black_box(with_kernels(ReadJson(black_box(document.as_bytes()))));
        });
    }
}

fn rows_of_text(rows: &Rows, name: &str, text: &str) {
    let n = 4 * text.len() + 4096;
    let mut new = Reused(Some(Box::new(Memory {
        one: vec![MaybeUninit::uninit(); n],
        two: vec![MaybeUninit::uninit(); n],
        four: vec![MaybeUninit::uninit(); n],
    })));
    let storage = Storage::new(text);
    let utf16: Vec<u16> = text.encode_utf16().collect();
    let utf32: Vec<u32> = text.chars().map(u32::from).collect();
    let is_ascii = text.is_ascii();
    let sources = [
        ("utf8", Units::Utf8(text.as_bytes())),
        ("utf16", Units::Utf16(&utf16)),
        ("str", storage.units()),
    ];
    let mut chunk = Chunk::with_capacity(n * 4);
    for (form, units) in sources {
        rows.row(&format!("{form}-to-str-{name}"), 1, || {
            let Ok(measured) = measure(black_box(units), Policy::Strict) else {
                return;
            };
            let Ok(mut made) = new.new_str(measured.shape()) else {
                return;
            };
            measured.write(NewStr::data(&new, &mut made));
            new.0 = Some(made.1);
        });
        rows.row(&format!("{form}-to-utf8-{name}"), 1, || {
            chunk.clear();
            _ = black_box(convert::to_utf8(
                black_box(units),
                Policy::Strict,
                &mut chunk,
            ));
        });
        rows.row(&format!("{form}-to-json-{name}"), 1, || {
            chunk.clear();
            _ = black_box(convert::to_json_body(
                black_box(units),
                Policy::Strict,
                &mut chunk,
            ));
        });
        rows.row(&format!("{form}-find-malformed-{name}"), 1, || {
            black_box((find_malformed(black_box(units)), utf8_len(black_box(units))));
        });
    }
    for (form, units) in &sources[..2] {
        rows.row(&format!("{form}-make-large-{name}"), 1, || {
            if let Some(Ok(made)) = make_large(black_box(*units), &mut new) {
                new.0 = Some(black_box(made.made).1);
            }
        });
    }
    let mut out8 = vec![MaybeUninit::<u8>::uninit(); n];
    let mut out16 = vec![MaybeUninit::<u16>::uninit(); n];
    rows.row(&format!("utf8-valid-{name}"), 1, || {
        black_box(is_utf8(black_box(text.as_bytes())));
    });
    rows.row(&format!("within-utf8-to-utf16-{name}"), 1, || {
        _ = black_box(within::utf8_to_utf16(
            black_box(text.as_bytes()),
            None,
            &mut out16,
        ));
    });
    rows.row(&format!("within-utf16-to-utf8-{name}"), 1, || {
        _ = black_box(within::utf16_to_utf8(black_box(&utf16), None, &mut out8));
    });
    if let Storage::One(latin1) = &storage {
        rows.row(&format!("within-utf8-to-latin1-{name}"), 1, || {
            _ = black_box(within::utf8_to_latin1(
                black_box(text.as_bytes()),
                &mut out8,
            ));
        });
        rows.row(&format!("within-latin1-to-utf8-{name}"), 1, || {
            _ = black_box(within::latin1_to_utf8(black_box(latin1), &mut out8));
        });
    }
    rows.row(&format!("exact-utf8-{name}"), 1, || {
        if let Some(len) = utf8_len_exact(black_box(storage.units())) {
            utf8_exact(storage.units(), &mut out8[..len]);
        }
    });
    rows_of_ordered(rows, name, (&utf16, &utf32), &storage, &mut new);
    rows_of_cells(rows, name, text, &utf16, &storage, &mut new);
    if 6 * text.len() + 64 <= out8.len() || text.len() <= 256 {
        let units = storage.units();
        let capacity = json_capacity(units.len_units()).max(utf8_capacity(units.len_units()));
        let mut out = vec![MaybeUninit::uninit(); capacity];
        rows.row(&format!("pen-json-{name}"), 16, || {
            with_kernels(PutTexts::<true>(black_box(units), is_ascii, &mut out));
        });
        rows.row(&format!("pen-utf8-{name}"), 16, || {
            with_kernels(PutTexts::<false>(black_box(units), is_ascii, &mut out));
        });
    }
}

fn rows_of_ordered(
    rows: &Rows,
    name: &str,
    (utf16, utf32): (&[u16], &[u32]),
    storage: &Storage,
    new: &mut Reused,
) {
    let swapped16: Vec<[u8; 2]> = utf16.iter().map(|u| u.to_be_bytes()).collect();
    let swapped32: Vec<[u8; 4]> = utf32.iter().map(|u| u.to_be_bytes()).collect();
    rows.row(&format!("utf16be-to-str-{name}"), 1, || {
        if let Some(Ok(made)) = make_ordered_utf16::<true, _>(black_box(&swapped16), new) {
            new.0 = Some(made.made.1);
        }
    });
    rows.row(&format!("utf32be-to-str-{name}"), 1, || {
        if let Some(Ok(made)) = make_ordered_utf32::<true, _>(black_box(&swapped32), new) {
            new.0 = Some(made.made.1);
        }
    });
    let mut out = vec![MaybeUninit::uninit(); 4 * utf32.len()];
    rows.row(&format!("str-to-utf16be-{name}"), 1, || {
        ordered_utf16::<true>(black_box(storage.units()), &mut out[..2 * utf16.len()]);
    });
    rows.row(&format!("str-to-utf32be-{name}"), 1, || {
        _ = black_box(ordered_utf32::<true>(black_box(storage.units()), &mut out));
    });
}

fn rows_of_cells(
    rows: &Rows,
    name: &str,
    text: &str,
    utf16: &[u16],
    storage: &Storage,
    new: &mut Reused,
) {
    if text.len() > 128 {
        return;
    }
    let bytes: Vec<u8> = utf16.iter().flat_map(|u| u.to_le_bytes()).collect();
    let cells = vec![&bytes[..]; 16];
    rows.row(&format!("cell-utf16-{name}"), 16, || {
        with_kernels(MakeCells::<CellUtf16<false>>(
            black_box(&cells),
            new,
            PhantomData,
        ));
    });
    let cells = vec![text.as_bytes(); 16];
    rows.row(&format!("cell-utf8-{name}"), 16, || {
        with_kernels(MakeCells::<CellUtf8>(black_box(&cells), new, PhantomData));
    });
    if let Storage::One(latin1) = storage {
        let cells = vec![&latin1[..]; 16];
        rows.row(&format!("cell-latin1-{name}"), 16, || {
            with_kernels(MakeCells::<CellBytes<false>>(
                black_box(&cells),
                new,
                PhantomData,
            ));
        });
    }
    let (units, ascii) = (storage.units(), text.is_ascii());
    rows.row(&format!("cell-encode-utf16-{name}"), 16, || {
        with_kernels(EncodeCells::<CellUtf16<false>>(
            units,
            ascii,
            new,
            PhantomData,
        ));
    });
    rows.row(&format!("cell-encode-utf8-{name}"), 16, || {
        with_kernels(EncodeCells::<CellUtf8>(units, ascii, new, PhantomData));
    });
}
