"""Writes the seeds of the fuzz targets.

Targets of text get short texts of each script, well-formed and truncated, in UTF-8 and UTF-16.
Targets that parse input of users get a text for each feature; its parts are separated by U+0001.
"""

import hashlib
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
DATABASE = '[databases.d]\nurl = "sqlite:cities.db"\n'
WRITTEN = {
    "connection_strings": {
        "driver": ["Driver={PostgreSQL Unicode};Server=db;Uid=me;Pwd={a;b}}c};Fetch=100"],
        "dsn": ["DSN=sales;PWD=hunter22", "hunter22", "Options=--password=hunter22"],
        "loose": [" ;; Driver = x ; =y; lone;Pwd={open;Server=h", "{}}=;", " AccessToken = abc d ;client_secret={x}y;"],
    },
    "json_reader": {
        "values": ['[null,true,false,0,-1,1.5,-2e-3,1E+9,123456789012345678901234567890,"",{"":[]},{}]'],
        "escapes": ['["\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u6771\\ud83d\\ude00","\\ud800"]'],
        "indented": ['{\n  "a": [\n    1,\n    {"b": "é東😀"}\n  ],\n  "a": "x"\n}\n'],
        "rows": ['[{"id":1,"name":"ab","x":0.1},{"id":22,"name":"cd","x":null}]' * 2],
        "wrong": ["[1,]", '{"a":01}', "NaN", '"\x01"'],
        "long": ['"' + "a" * 130 + "\\n" + "é" * 40 + '"'],
    },
    "extended_json": {
        "plain": ['{"a":[null,true,0,-1,1.5,3000000000,99999999999999999999],"é":{"":{}}}'],
        "wrappers": [
            '{"a":{"$oid":"56e1fc72e0c917e9c4714161"},"b":{"$numberLong":"-1"},"c":{"$numberDouble":"NaN"},'
            '"d":{"$numberDecimal":"-1.50E+3"},"e":{"$date":"2012-12-24T12:15:30.501Z"},"f":{"$date":{"$numberLong":"-1"}}}'
        ],
        "parts": [
            '{"a":{"$binary":{"subType":"02","base64":"//8="}},"b":{"$code":"f()","$scope":{"x":{"$numberInt":"1"}}},'
            '"c":{"$timestamp":{"t":1,"i":2}},"d":{"$regularExpression":{"pattern":"a","options":"xi"}},'
            '"e":{"$dbPointer":{"$ref":"c","$id":{"$oid":"56e1fc72e0c917e9c4714161"}}}}'
        ],
        "old": [
            '{"a":{"$binary":"//8=","$type":"00"},"b":{"$regex":"a","$options":"i"},"c":{"$type":2},"d":{"$undefined":true}}'
        ],
        "wrong": ['{"a":{"$oid":"x"}}', '{"a":{"$minKey":1,"b":2}}', '{"a\\u0000":1}'],
        "bson": [
            "\x13\x00\x00\x00\x02a\x00\x03\x00\x00\x00xy\x00\x08b\x00\x01\x00",
            "\x0c\x00\x00\x00\x10a\x00\x01\x00\x00\x00\x00",
        ],
    },
    "database_urls": {
        "postgresql": [
            "postgresql://ann:p%40s@db.example:6432/sales?sslmode=require",
            "ann",
            "p@s:w/d",
            "db",
            "s",
            "a",
            "b c",
        ],
        "v6": ["mysql+pymysql://[::1]:3307/d?a=b+c&d", "", "", "::1", "", "é", "=&"],
        "sqlite": ["//data/cities.db?mode=ro&busy_timeout_ms=20", "u", "*", "a b?.db"],
        "memory": [":memory:", "a"],
        "three": ["///a%20b%3F.db?mode=rwc&immutable=1", "ab"],
    },
    "named_parameters": {
        "names": ["select * from t where a = :a and (b>:b_2 or c=:a) limit :größe", "select 1, ':x'; -- :y"],
        "operators": ["select a::text, x[1:n], x[lo:hi], @a := 1, :b::int"],
        "literals": ["select 'it''s :b', \"q\"\":c\", `:d`, [e]]:f], /* /* :g */ :h */ :i -- :j\n", "# :k\n:l"],
        "postgres": ["select E'it\\'s :b', e'\\\\', 'a\\', $$ :b ' $$, $x$ :c $$ $x$, $1, array[:a]", "é$a$;x$a$"],
        "mysql": ["select 5--:a, 'it\\'s', \"x\\\"\" # :b\n-- :c\n/*! :d */", ";"],
        "several": ["select 1;; /* ; */ select 2;", "select data ? 'x'"],
        "copy": [' ; /* ; */ copy t (a, "from") to -- here\nstdout ; -- ;', "; ' $$"],
    },
    "export_documents": {
        "manifest": [
            '{"manifest":1,"onecopy":"0.1.0","query":"select 1","snapshot":null,"format":"csv","compression":"gzip",'
            '"rows":3,"bytes":9,"columns":[{"name":"a","type":null,"database_type":"int4"}],'
            '"files":[{"name":"a.csv.gz","rows":3,"bytes":9,"blake3":"' + "0a" * 32 + '"}]}'
        ],
        "part": [
            '{"plan":"p","statement":"s","schema":"c","part":1,"parts":2,"rows":7,"key":["k"],"condition":"k < 1",'
            '"sql":"select 1","values":[{"type":"null"},{"type":"timestamp","value":"2024-02-29 1:2:3.000000004+60m"},'
            '{"type":"bytes","value":"00ff"},{"type":"float","value":"-0.5"}],"snapshot":"00000003-1"}'
        ],
        "query": [
            'with a as (select 1) select "x", t.y from s."T" as t where {part} and a = ? order by 1 limit 2; -- é'
        ],
        "table": [
            "select distinct k from [a b].`c` x where k in (select ? from u) union select 1 group by 2 for update"
        ],
    },
    "gateway_config": {
        "small": [DATABASE + "[queries.q]\nsql = 'select :n'\nparameters.n = 'int'\n"],
        "secret": ['[databases.d]\nurl = "postgresql://u:${PASSWORD}@h/${EMPTY:-d}"\nmax_concurrent = 0\n'],
        "wrong": [
            DATABASE + "[queries.q]\nsql = 'select ?; select :x'\nsql_file = 1\nparameters.y = {}\n[server]\nbind=1\n"
        ],
        "broken": [DATABASE + "[queries.q\nsql = 'select\n"],
        "large": [
            """\
[server]
bind = '127.0.0.1:80'
title = 'Cities $${x}'
hosts = ['a.example']
debug = true
[limits]
time_limit_s = 5
max_concurrent = 0x10
[databases.a]
url = 'DSN=x;Pwd=${PASSWORD}'
errors = 'replace'
connect_timeout_s = 3
[databases.b]
url = 'sqlite:b.db?mode=ro'
[queries.names]
database = 'b'
description = '''All
names'''
sql = "select :a, :b, :c, :d, ':e'"
time_limit_s = 1_0
[queries.names.parameters]
a = { type = 'decimal', default = 0.10, min = -1, max = 99.5, description = 'x' }
b = { type = 'date', default = 2024-02-29, example = 2024-03-01 }
c = { type = 'int', values = [1, 0x10, 1_000], default = 16 }
d = { type = 'text', required = false, max_length = 3, allow_empty = true }
"""
        ],
    },
    "query_string": {
        "plain": ["a=5&b=S%C3%A3o+Paulo%2B&&c=-3&d=", "São Paulo+", "&=%"],
        "faults": ["a=5x&A=1&b=1&b=2&c=%zz&d=%ff", "", "漢字"],
        "empty": ["a&c=&d=y%00", "x"],
        "large": ["a=&c=009223372036854775807"],
    },
    "parameter_values": {
        "int": ["42", "-9223372036854775808", "+007"],
        "float": ["1.5", "2e-3", "-0.0"],
        "decimal": ["12.50", "-0.0", "12345678901234567890.125"],
        "bool": ["true", "0", "false"],
        "date": ["2024-02-29", "0001-01-01", "2023-03-01"],
        "time": ["23:59", "00:00:00.000000001", "23:59:59.5"],
        "timestamp": ["2024-03-01T00:30+01:00", "2024-02-29 23:30Z", "2024-02-29T23:59:59.25-03:30"],
        "uuid": ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "F81D4FAE7DEC11D0A76500A0C91E6BF6"],
    },
    "spans": {
        "time": ["-838:59:59.000001", "00:00:00"],
        "days": ["-1 days +02:03:04", "3 days", "1 day 00:00:00.5"],
        "others": ["1 mon", "P1DT2H", "@ 1 day 2 hours"],
    },
    # Bytes of structures: text is as good a beginning as any.
    "arrow_arrays": {
        "formats": ["nbcsilCSILfguUvuzZvztdDtdmttsttmttuttn", "tss:UTC", "tsn:", "w:16", "d:12,2", "d:60,-3,256"],
        "names": ["decimal128(12,2)", "timestamp[us,tz=UTC]", "time32[ms]", "int64", "large_string"],
    },
    "csv_writer": {name: [text * 4] for name, text in TEXTS.items()},
    "bson_writer": {"digits": ["-12.50e+3 0.10 NaN " * 8], **{name: [text * 4] for name, text in TEXTS.items()}},
    "scalars": {"digits": ["-12.50e+3 0.10 2024-02-29 " * 4], "mixed": [TEXTS["mixed"] * 2]},
}


def main() -> None:
    for target, texts in WRITTEN.items():
        folder = HERE / "seeds" / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, parts in texts.items():
            (folder / name).write_text("\x01".join(parts), encoding="utf-8", newline="")
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
                # Split inside a character, if there is one of several bytes.
                (folder / f"{name}.{encoding}.cut").write_bytes(head + whole[: len(whole) * 2 // 3 | 1])
    # The writer, manner, number of columns less one, rows, types and access of columns; then
    # answers: rows, and for each bound value its indicator, length and bytes; for the others return
    # code, indicator, length and bytes.
    folder = HERE / "seeds" / "driver_answers"
    folder.mkdir(parents=True, exist_ok=True)
    for writer in range(5):
        bound = bytes([writer, 0, 1, 2, 4, 0, 2, 20, 2, 49, 50, 3, 3, 97, 98, 99, 1, 5, 2, 55, 46])
        (folder / f"bound.{writer}").write_bytes(bound + bytes(24))
        cut = bytes([writer, 15, 0, 1, 1, 1, 5, 4, 97, 98, 99, 100, 65, 1, 0, 65, 5, 0, 0, 3, 2, 120, 121])
        (folder / f"parts.{writer}").write_bytes(cut + bytes(24))
        unbound = bytes([writer, 2, 1, 3, 129, 131, 1, 0, 8, 8, *range(8), 66, 6, 0, 1, 11, 4, 1, 2, 3, 4])
        (folder / f"unbound.{writer}").write_bytes(unbound + bytes(24))
    # Numbers of encodings in the order of `Encoding::all`, policies, whether it is UTF-8 to be
    # written first, times, cuts.
    folder = HERE / "seeds" / "text_codec"
    folder.mkdir(parents=True, exist_ok=True)
    for i, (name, text) in enumerate(TEXTS.items()):
        for k, source in enumerate((0, 2, 4, 6, 9, 10, 13, 16, 32, 37)):
            head = [source, (5 * i + 7 * k) % 46, (i + k) % 5, k % 6, i % 4, k % 3, 1, 255 if (i + k) % 8 == 0 else i]
            cuts = b"".join((97 * i + 31 * k + 1009 * n).to_bytes(2, "little") for n in range(5))
            (folder / f"{name}.{k}").write_bytes(bytes(head) + cuts + text.encode())
    # Options, the form and how often, then text; a byte 1 repeats the bytes before it.
    folder = HERE / "seeds" / "python_loads"
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: parts[0].encode() for name, parts in WRITTEN["json_reader"].items()}
    texts |= {"again": b'[{"id":7,"name":"a\\n\xc3\xa9"},\x01\x18\x05null]', "digits": b"-1234567890\x01\x09\x0e.5e-7"}
    for name, data in texts.items():
        for k, head in enumerate((b"\x00\x00", b"\x00\x56", b"\x01\xff\x01\x00\x01\x00\x05\x00\x00\x9f")):
            (folder / f"{name}.{k}").write_bytes(head + data)
    # One for each kind of object, with options and without; of what, is chance.
    folder = HERE / "seeds" / "python_dumps"
    folder.mkdir(parents=True, exist_ok=True)
    for kind in range(28):
        for options in (b"\x01", b"\x07\xff\x1f" + bytes(20)):
            chance = b"".join(hashlib.sha256(bytes([kind, len(options), n])).digest() for n in range(3))
            # A list of one item, and a value after it.
            (folder / f"kind{kind:02}.{len(options)}").write_bytes(options + bytes([9, 7, kind]) + chance)
    postgres_messages()
    bson_reader()
    python_changing()
    transfer()
    c_abi()


def bson_reader() -> None:
    """Seeds of the targets `bson_reader` and `python_bson`: documents with one value of each type,
    with an array of all types, and with all types."""

    def document(*elements: bytes) -> bytes:
        body = b"".join(elements)
        return (len(body) + 5).to_bytes(4, "little") + body + b"\0"

    def sized(data: bytes, more: int = 0) -> bytes:
        return (len(data) + more).to_bytes(4, "little") + data

    text, inner = sized("é東".encode() + b"\0"), document(b"\x0an\0")
    values = {
        0x01: bytes(8), 0x02: text, 0x03: inner, 0x04: document(b"\x0a0\0", b"\x0a1\0"), 0x05: sized(b"\x80own", -1), 0x06: b"",
        0x07: bytes(12), 0x08: b"\1", 0x09: bytes(8), 0x0A: b"", 0x0B: b"^a\0im\0", 0x0C: text + bytes(12), 0x0D: text, 0x0E: text,
        0x0F: sized(text + inner, 4), 0x10: bytes(4), 0x11: bytes(8), 0x12: bytes(8), 0x13: bytes(16), 0x7F: b"", 0xFF: b"",
    }  # fmt: skip
    seeds = {f"type{tag:02x}": document(bytes([tag]) + b"a\0" + value) for tag, value in values.items()}
    seeds["old_binary"] = document(b"\x05a\0" + sized(b"\2" + sized(b"old"), -1))
    seeds["all"] = document(*(bytes([tag]) + b"a\0" + value for tag, value in values.items()))
    items = (bytes([tag]) + b"%d\0" % i + value for i, (tag, value) in enumerate(values.items()))
    seeds["array"] = document(b"\x04a\0" + document(*items))
    folder = HERE / "seeds" / "bson_reader"
    folder.mkdir(parents=True, exist_ok=True)
    of_objects = HERE / "seeds" / "python_bson"
    of_objects.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (folder / name).write_bytes(data)
        # The first byte divides the data, the second one selects the options.
        (of_objects / name).write_bytes(b"\x09\x00" + data)
        (of_objects / f"{name}.options").write_bytes(b"\x05\xff" + bytes(range(1, 9)) + data)


def postgres_messages() -> None:
    """Seeds of the target `postgres_messages`: a header of five bytes (writer, types), then
    messages."""

    def message(tag: bytes, body: bytes) -> bytes:
        return tag + (len(body) + 4).to_bytes(4, "big") + body

    def row(*values: bytes | None) -> bytes:
        sized = ((2**32 - 1).to_bytes(4, "big") if v is None else len(v).to_bytes(4, "big") + v for v in values)
        return message(b"D", len(values).to_bytes(2, "big") + b"".join(sized))

    folder = HERE / "seeds" / "postgres_messages"
    folder.mkdir(parents=True, exist_ok=True)
    field = b"n\0" + bytes(6) + (23).to_bytes(4, "big") + (4).to_bytes(2, "big") + b"\xff" * 4 + bytes(2)
    error = message(b"E", b"SERROR\0C42601\0Msyntax error\0P8\0\0")
    session = [message(b"R", bytes(4)), message(b"S", b"TimeZone\0UTC\0"), message(b"K", bytes(8))]
    session += [message(b"T", b"\0\1" + field), row(b"\0\0\0\7"), message(b"C", b"SELECT 1\0"), message(b"Z", b"I")]
    (folder / "session").write_bytes(bytes(5) + b"".join(session))
    (folder / "error").write_bytes(bytes(5) + error + message(b"Z", b"E"))
    sasl = message(b"R", (10).to_bytes(4, "big") + b"SCRAM-SHA-256\0\0")
    (folder / "sasl").write_bytes(bytes(5) + sasl + message(b"N", b"Mnotice\0\0"))
    for writer in range(5):
        for k, values in enumerate(([b"abc", None], [bytes(8), b"-1.5"], [bytes(4), bytes(16)], [b"\1", b"$1,234.50"])):
            head = bytes([writer, 2, 3 * k, 3 * k + 1, k])
            (folder / f"rows.{writer}.{k}").write_bytes(head + row(*values) * 2)
        texts = [b'{"a b",NULL}', b"[0:1]={1,2}", rb'{"\\x00ff"}', b"{1.5,NaN}", b"{01:02:03+05:30:15}", None]
        texts += [b'{"2024-02-29 01:02:03+00",infinity}', b'{"[1,5)",empty}', b'{"{[2024-02-29,)}"}', b"[1,5)"]
        texts += [b'["2024-02-29 01:02:03+00",)', b"(,infinity]", b"{[1.5,2),(3,]}"]
        for k in range(0, len(texts), 4):
            some = texts[k : k + 4]
            head = bytes([writer, len(some), 21 + k, 1, 0])
            (folder / f"texts.{writer}.{k}").write_bytes(head + row(*some) * 2)
    (folder / "target").write_bytes(bytes(5) + b"//ann:p%40s@db.example:6432,b/sales?sslmode=require&connect_timeout=3")


def python_changing() -> None:
    """Seeds of the target `python_changing`: some readers, each with another text and position."""
    folder = HERE / "seeds" / "python_changing"
    folder.mkdir(parents=True, exist_ok=True)
    texts = ["a", "é", "ж", "東", "\U0001f600", '","', "\\n"]
    for k in range(0, 52, 3):
        own = texts[k // 3 % len(texts)].encode() * 9
        (folder / f"reader{k}").write_bytes(bytes([k, 4 * k, k, k, k, k]) + own)


def transfer() -> None:
    """Seeds of the target `transfer`: complete transfers of a sender, and invalid ones."""

    def message(kind: int, body: bytes = b"") -> bytes:
        return bytes([kind]) + len(body).to_bytes(4, "little") + body

    def file(name: bytes, size: int) -> bytes:
        return message(4, size.to_bytes(8, "little") + bytes(12) + b"\xa4\x01" + name)

    def block(size: int) -> bytes:
        return b"\x06" + size.to_bytes(4, "little")

    hello = message(1, b"onecopyT\x01\x00\x01\x0aabcdefgh")
    plain = message(1, b"onecopyT\x01\x00\x00\x0a")
    enter, leave, end, done = message(2, b"\xed\x01d"), message(3, bytes(12)), message(5), message(9)
    node, whole = message(7, bytes(32)), message(8, bytes(32))
    small = file(b"a", 3)
    large = file("東.txt".encode(), 2500)
    blocks = b"".join(block(size) + node for size in (1024, 1024, 452))
    seeds = {
        "small": hello + small + end + small + block(3) + whole + done,
        "large": hello + large + end + large + blocks + whole + done,
        "plain": plain + large + end + large + blocks.replace(node, b"") + whole + done,
        "folders": hello + 2 * (enter + small + enter + leave + leave) + end + enter + small + block(3) + whole,
        "abort": hello + small + end + small + block(3) + message(10, b"it changed"),
        "names": hello + file(b"../x", 1) + message(2, b"\xed\x01nul") + file(b"x" * 255, 1),
        "longer": hello + small + end + small + block(4),
        "more": hello + small + end + file(b"b", 4) + done,
        "receiver": message(11, b"\x01\x00") + message(12, bytes(8)) + message(13, bytes(40)) + message(15, b"\x01no"),
    }
    folder = HERE / "seeds" / "transfer"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (folder / name).write_bytes(data)


def c_abi() -> None:
    """Seeds of the target `c_abi`: a text in UTF-8 or UTF-16 after three bytes.

    The first selects the replacement and the repetition, the others are the capacity.
    """
    folder = HERE / "seeds" / "c_abi"
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, text) in enumerate(TEXTS.items()):
        for encoding in ("utf-8", "utf-16-le"):
            data = text.encode(encoding)
            head = bytes([number, 40, 0])
            (folder / f"{name}.{encoding}").write_bytes(head + data)
            (folder / f"{name}.{encoding}.long").write_bytes(bytes([8 + number, 0, 5]) + data)
            (folder / f"{name}.{encoding}.cut").write_bytes(head + data[: len(data) // 2 | 1] + data[-9:])


if __name__ == "__main__":
    main()
