//! Maps the options of BSON regular expressions to the flags of Python's `re`.

/// The flags of Python's `re`, with their option letters in BSON.
pub(crate) const REGEX_FLAGS: [(u32, u8); 6] = [
    (2, b'i'),
    (4, b'l'),
    (8, b'm'),
    (16, b's'),
    (32, b'u'),
    (64, b'x'),
];
