//! Writes the JSON of short responses, such as errors. Rows are written by `wire::json`.

/// Appends `text` as a JSON string.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A JSON object or array to which values are appended. The methods insert the commas.
pub(crate) struct Builder {
    out: String,
    comma: bool,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            out: String::new(),
            comma: false,
        }
    }

    fn separate(&mut self) {
        if std::mem::replace(&mut self.comma, true) {
            self.out.push(',');
        }
    }

    pub(crate) fn open(&mut self, bracket: char) {
        self.separate();
        self.out.push(bracket);
        self.comma = false;
    }

    pub(crate) fn close(&mut self, bracket: char) {
        self.out.push(bracket);
        self.comma = true;
    }

    pub(crate) fn key(&mut self, key: &str) {
        self.separate();
        push_string(&mut self.out, key);
        self.out.push(':');
        self.comma = false;
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.separate();
        push_string(&mut self.out, text);
    }

    /// Appends a number, `true`, `false` or `null`, given as JSON text.
    pub(crate) fn raw(&mut self, text: &str) {
        self.separate();
        self.out.push_str(text);
    }

    pub(crate) fn finish(mut self) -> String {
        self.out.push('\n');
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_reads_back() {
        let mut b = Builder::new();
        b.open('{');
        b.key("a \"\\\n\u{1}é");
        b.open('[');
        b.raw("1");
        b.string("x");
        b.open('{');
        b.close('}');
        b.close(']');
        b.key("b");
        b.raw("null");
        b.close('}');
        let value: serde_json::Value = serde_json::from_str(&b.finish()).unwrap();
        assert_eq!(
            value,
            serde_json::json!({"a \"\\\n\u{1}é": [1, "x", {}], "b": null})
        );
    }
}
