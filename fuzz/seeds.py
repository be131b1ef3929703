"""Writes the seeds of the text targets: short texts of each script, well-formed and cut, in UTF-8 and UTF-16."""

from pathlib import Path

HERE = Path(__file__).parent
TEXTS = {
    "ascii": "The quick brown fox, 1234567890 times.",
    "escapes": 'say "no"\\\n\t\r\x00\x1f and go on for a while',
    "latin1": "Zürich, São Paulo, Århus, Łódź? not that one.",
    "cyrillic": "Санкт-Петербург, Нижний Новгород",
    "cjk": "東京都、北京市、서울특별시、香港特別行政區",
    "emoji": "flags 🇨🇭 and 👩‍👩‍👧 families",
    "edges": "\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff",
    "mixed": "a é Ж 漢 😀 " * 6,
}


def main() -> None:
    for target in ("text_utf8", "text_utf16", "text_json_body", "text_carry"):
        folder = HERE / "seeds" / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in TEXTS.items():
            for encoding in ("utf-8", "utf-16-le"):
                if encoding == "utf-8" and target == "text_utf16":
                    continue
                if encoding == "utf-16-le" and target == "text_utf8":
                    continue
                head = bytes([1, 3, 9, 17, 30, 200]) if target == "text_carry" else b""
                whole = text.encode(encoding, "surrogatepass")
                (folder / f"{name}.{encoding}").write_bytes(head + whole)
                # Cut inside a character, where there is one that can be cut.
                (folder / f"{name}.{encoding}.cut").write_bytes(head + whole[: len(whole) * 2 // 3 | 1])


if __name__ == "__main__":
    main()
