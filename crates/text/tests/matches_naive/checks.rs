//! Compares a conversion with its reference implementation, into buffers followed by canaries.

use std::mem::MaybeUninit;

use onecopy_text::convert::{
    NewStr, StrData, make_large, ordered_utf16, shape, utf8_exact, utf8_len_exact, utf16_len_exact,
};
use onecopy_text::{
    ByteSink, Carry, ConvertError, Kind, Malformed, Policy, Shape, SinkFull, Units, measure, naive,
};

use crate::POLICIES;

/// A sink of a fixed size, followed by canaries, like a Python `bytes` object of the measured
/// length.
#[derive(Debug)]
pub(crate) struct Fixed {
    buffer: Vec<u8>,
    len: usize,
    capacity: usize,
}

impl Fixed {
    fn new(capacity: usize) -> Fixed {
        Fixed {
            buffer: vec![0xA5; capacity + 64],
            len: 0,
            capacity,
        }
    }

    fn check(&self) {
        assert!(
            self.buffer[self.capacity..].iter().all(|&b| b == 0xA5),
            "canary"
        );
    }
}

// SAFETY: the spare bytes follow the committed bytes in the same `Vec`, and `commit` only increases
// the length.
unsafe impl ByteSink for Fixed {
    fn committed(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
    fn committed_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }
    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull> {
        if n_bytes > self.capacity - self.len {
            return Err(SinkFull {
                requested_bytes: n_bytes,
            });
        }
        let rest = &mut self.buffer[self.len..self.capacity];
        let n = rest.len();
        // SAFETY: initialised bytes are valid `MaybeUninit` bytes, and nothing writes uninitialised
        // bytes to the slice.
        Ok(unsafe { std::slice::from_raw_parts_mut(rest.as_mut_ptr().cast(), n) })
    }
    unsafe fn commit(&mut self, n_bytes: usize) {
        self.len += n_bytes;
    }
    fn cut(&mut self, len_bytes: usize) {
        self.len = self.len.min(len_bytes);
    }
}

/// Checks a conversion into a growing sink, into a large sink of fixed size, into one of exactly
/// the needed size, and into one that is a byte too small.
pub(crate) fn check_sink(
    units: Units<'_>,
    expected: Result<Vec<u8>, Malformed>,
    convert: impl Fn(&mut Vec<u8>) -> Result<usize, ConvertError>,
    fixed: impl Fn(&mut Fixed) -> Result<usize, ConvertError>,
) {
    let mut grown = b"before".to_vec();
    let got = convert(&mut grown);
    match expected {
        Ok(expected) => {
            assert_eq!(got, Ok(expected.len()), "{units:?}");
            assert_eq!(&grown[..6], b"before");
            assert_eq!(grown[6..], expected, "{units:?}");
            for capacity in [expected.len(), expected.len() * 4 + 64] {
                let mut exact = Fixed::new(capacity);
                assert_eq!(fixed(&mut exact), Ok(expected.len()), "{units:?}");
                assert_eq!(exact.committed(), expected, "{units:?}");
                exact.check();
            }
            if let Some(capacity) = expected.len().checked_sub(1) {
                let mut small = Fixed::new(capacity);
                let got = fixed(&mut small);
                assert!(matches!(got, Err(ConvertError::SinkFull(_))), "{got:?}");
                assert_eq!(small.committed(), b"", "nothing is committed on an error");
                small.check();
            }
        }
        Err(malformed) => {
            assert_eq!(got, Err(ConvertError::Malformed(malformed)), "{units:?}");
            assert_eq!(grown, b"before", "nothing is committed on an error");
        }
    }
}

/// A `str` that was made: its shape, and its data in the vector of its unit width.
#[derive(Debug)]
struct Fresh(Shape, Vec<u8>, Vec<u16>, Vec<u32>);

struct Vecs;

impl NewStr for Vecs {
    type Str = Fresh;
    type Error = ();

    fn new_str(&mut self, shape: Shape) -> Result<Fresh, ()> {
        let n = |kinds: [Kind; 2]| {
            if kinds.contains(&shape.kind) {
                shape.n_chars
            } else {
                0
            }
        };
        let one = vec![0xA5; n([Kind::Ascii, Kind::Latin1])];
        let two = vec![0xA5A5; n([Kind::Ucs2; 2])];
        Ok(Fresh(
            shape,
            one,
            two,
            vec![0xA5A5_A5A5; n([Kind::Ucs4; 2])],
        ))
    }

    fn data<'a>(&self, made: &'a mut Fresh) -> StrData<'a> {
        match made.0.kind {
            Kind::Ascii | Kind::Latin1 => StrData::One(uninit(&mut made.1)),
            Kind::Ucs2 => StrData::Two(uninit(&mut made.2)),
            Kind::Ucs4 => StrData::Four(uninit(&mut made.3)),
        }
    }
}

fn uninit<U>(units: &mut [U]) -> &mut [MaybeUninit<U>] {
    // SAFETY: the same layout, and the kernels write only valid units there.
    unsafe { &mut *(std::ptr::from_mut(units) as *mut [MaybeUninit<U>]) }
}

/// Checks the conversion to a `str` in one pass, which must return `None` if the text is short or
/// malformed.
pub(crate) fn check_large(units: Units<'_>) {
    let expected = naive::decode(units, Policy::Strict);
    let Some(made) = make_large(units, &mut Vecs) else {
        let in_one_pass = matches!(units, Units::Latin1(_) | Units::Utf16(_));
        assert!(units.len_bytes() < 64 * 1024 || expected.is_err() || !in_one_pass);
        return;
    };
    let Fresh(shape, one, two, four) = made.expect("enough memory").made;
    let got: Vec<u32> = one
        .into_iter()
        .map(u32::from)
        .chain(two.into_iter().map(u32::from))
        .chain(four)
        .collect();
    assert_eq!(Ok(shape), naive::shape(units, Policy::Strict));
    assert_eq!(Ok(got), expected);
}

/// Writes the text into a `str` of each kind that is wide enough, with canaries, and compares its
/// code points with the expected ones.
pub(crate) fn check_str(units: Units<'_>, policy: Policy) {
    let expected = naive::shape(units, policy);
    assert_eq!(shape(units, policy), expected, "{units:?}");
    let measured = measure(units, policy);
    assert_eq!(measured.map(|m| m.shape()), expected);
    let (Ok(measured), Ok(shape)) = (measured, expected) else {
        return;
    };
    let code_points = naive::decode(units, policy).expect("shape was found");
    let n = shape.n_chars;
    macro_rules! read_back {
        ($unit:ty, $data:path) => {{
            let canary = <$unit>::MAX ^ 0x5A;
            let mut buffer = vec![MaybeUninit::new(canary); n + 40];
            measured.write($data(&mut buffer[3..n + 3]));
            // SAFETY: every unit was initialised two lines above.
            let got: Vec<$unit> = buffer.iter().map(|u| unsafe { u.assume_init() }).collect();
            assert!(got[..3].iter().chain(&got[n + 3..]).all(|&u| u == canary));
            assert!(
                got[3..n + 3]
                    .iter()
                    .map(|&u| u32::from(u))
                    .eq(code_points.iter().copied()),
                "{units:?}"
            );
        }};
    }
    if shape.kind <= Kind::Latin1 {
        read_back!(u8, StrData::One);
    }
    if shape.kind <= Kind::Ucs2 {
        read_back!(u16, StrData::Two);
    }
    read_back!(u32, StrData::Four);
}

/// Checks conversions into buffers of exactly the text's size, with canaries.
pub(crate) fn check_exact(units: Units<'_>) {
    let canary = |n: usize| vec![MaybeUninit::new(0xA5_u8); n + 80];
    let expected = naive::to_utf8(units, Policy::Strict).ok();
    assert_eq!(utf8_len_exact(units), expected.as_ref().map(Vec::len));
    if let Some(expected) = expected {
        let (mut buffer, n) = (canary(expected.len()), expected.len());
        utf8_exact(units, &mut buffer[40..n + 40]);
        // SAFETY: every unit was initialised when the buffer was made.
        let got: Vec<u8> = buffer.iter().map(|u| unsafe { u.assume_init() }).collect();
        assert!(got[40..n + 40] == expected, "{units:?}");
        assert!(got[..40].iter().chain(&got[n + 40..]).all(|&b| b == 0xA5));
    }
    let expected = naive::to_utf16(units, Policy::Strict).ok();
    assert_eq!(utf16_len_exact(units), expected.as_ref().map(Vec::len));
    // A `str` is never UTF-8.
    if let Some(expected) = expected
        && !matches!(units, Units::Utf8(_))
    {
        for swapped in [false, true] {
            let expected: Vec<u8> = expected
                .iter()
                .map(|u| if swapped { u.swap_bytes() } else { *u })
                .flat_map(u16::to_ne_bytes)
                .collect();
            let (mut buffer, n) = (canary(expected.len()), expected.len());
            if swapped {
                ordered_utf16::<true>(units, &mut buffer[41..n + 41]);
            } else {
                ordered_utf16::<false>(units, &mut buffer[40..n + 40]);
            }
            // SAFETY: every unit was initialised when the buffer was made.
            let got: Vec<u8> = buffer.iter().map(|u| unsafe { u.assume_init() }).collect();
            let from = 40 + usize::from(swapped);
            assert!(got[from..n + from] == expected, "{units:?}");
            let around = got[..from].iter().chain(&got[n + from..]);
            assert!(around.copied().all(|b| b == 0xA5));
        }
    }
}

/// Converts the text in parts that end at `cuts`. The result, including the position of an error,
/// must be that of the whole text.
pub(crate) fn check_parts(units: Units<'_>, cuts: &[usize]) {
    for policy in POLICIES {
        for json in [false, true] {
            let expected = if json {
                naive::to_json_body(units, policy)
            } else {
                naive::to_utf8(units, policy)
            };
            let mut sink = b"before".to_vec();
            let mut carry = Carry::new();
            let mut convert = |sink: &mut Vec<u8>| -> Result<usize, ConvertError> {
                let mut n = 0;
                for cut in cuts.windows(2) {
                    let part = units.take(cut[1]).skip(cut[0]);
                    let start = sink.len();
                    let written = if json {
                        carry.to_json_body(part, policy, sink)
                    } else {
                        carry.to_utf8(part, policy, sink)
                    };
                    if written.is_err() {
                        assert_eq!(sink.len(), start, "nothing is committed on an error");
                    }
                    n += written?;
                }
                Ok(n + if json {
                    carry.finish_json_body(policy, sink)?
                } else {
                    carry.finish_utf8(policy, sink)?
                })
            };
            match (convert(&mut sink), expected) {
                (Ok(n), Ok(expected)) => {
                    assert_eq!(n, expected.len());
                    assert_eq!(sink[6..], expected, "{units:?} cut at {cuts:?}");
                }
                (Err(got), Err(expected)) => {
                    let expected = ConvertError::Malformed(expected);
                    assert_eq!(got, expected, "{units:?} cut at {cuts:?}");
                }
                (got, expected) => panic!("{got:?} is not {expected:?}: {units:?} cut at {cuts:?}"),
            }
        }
    }
}
