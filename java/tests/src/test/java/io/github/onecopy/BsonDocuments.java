package io.github.onecopy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.bson.BsonArray;
import org.bson.BsonBinary;
import org.bson.BsonBinaryReader;
import org.bson.BsonBinaryWriter;
import org.bson.BsonBoolean;
import org.bson.BsonDateTime;
import org.bson.BsonDbPointer;
import org.bson.BsonDecimal128;
import org.bson.BsonDocument;
import org.bson.BsonDouble;
import org.bson.BsonInt32;
import org.bson.BsonInt64;
import org.bson.BsonJavaScript;
import org.bson.BsonJavaScriptWithScope;
import org.bson.BsonMaxKey;
import org.bson.BsonMinKey;
import org.bson.BsonNull;
import org.bson.BsonObjectId;
import org.bson.BsonRegularExpression;
import org.bson.BsonString;
import org.bson.BsonSymbol;
import org.bson.BsonTimestamp;
import org.bson.BsonUndefined;
import org.bson.BsonValue;
import org.bson.codecs.BsonDocumentCodec;
import org.bson.codecs.DecoderContext;
import org.bson.codecs.EncoderContext;
import org.bson.io.BasicOutputBuffer;
import org.bson.io.OutputBuffer;
import org.bson.types.Decimal128;
import org.bson.types.ObjectId;

/**
 * Writes and reads the driver's documents by the driver and by onecopy, and reads the test vectors
 * that all implementations of this repository share.
 */
final class BsonDocuments {
    static final HexFormat HEX = HexFormat.of();

    private BsonDocuments() {}

    /**
     * A test vector: one line of the file. The document is null if the bytes are not valid BSON.
     */
    record Vector(String name, byte[] bytes, BsonDocument document) {
        @Override
        public String toString() {
            return name;
        }
    }

    /** Reads all test vectors of {@code tests/vectors/bson}. */
    static List<Vector> vectors() throws IOException {
        List<Vector> vectors = new ArrayList<>();
        for (String line
                : Files.readAllLines(repository().resolve("tests/vectors/bson/vectors.jsonl"))) {
            BsonDocument json = BsonDocument.parse(line);
            byte[] bytes = HEX.parseHex(json.getString("hex").getValue());
            boolean isWrong = json.containsKey("error");
            vectors.add(new Vector(json.getString("name").getValue(), bytes, isWrong
                    ? null
                    : json.getDocument("json")));
        }
        return vectors;
    }

    /** Returns the root of the repository: the closest parent folder that has the test vectors. */
    static Path repository() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("tests/vectors/bson"))) {
            folder = folder.getParent();
        }
        return folder;
    }

    /** Encodes a document by the driver. */
    static byte[] theirs(BsonDocument document) {
        return theirs(document, new BasicOutputBuffer()).toByteArray();
    }

    static OutputBuffer theirs(BsonDocument document, OutputBuffer output) {
        try (BsonBinaryWriter writer = new BsonBinaryWriter(output)) {
            new BsonDocumentCodec().encode(writer, document, EncoderContext.builder().build());
        }
        return output;
    }

    /** Decodes a document by the driver. */
    static BsonDocument theirs(byte[] bytes) {
        try (BsonBinaryReader reader = new BsonBinaryReader(ByteBuffer.wrap(bytes))) {
            return new BsonDocumentCodec().decode(reader, DecoderContext.builder().build());
        }
    }

    /** Encodes a document by onecopy's writer into an output that grows. */
    static byte[] ours(BsonDocument document) {
        BsonOutput output = new BsonOutput(0, Integer.MAX_VALUE);
        write(BsonWriter.over(output), document);
        return output.toByteArray();
    }

    /** Decodes a document by onecopy's reader. */
    static BsonDocument ours(byte[] bytes) {
        return read(BsonReader.of(ByteBuffer.wrap(bytes)));
    }

    /** Writes an outermost document by onecopy's writer. */
    static void write(BsonWriter writer, BsonDocument document) {
        writer.beginDocument();
        members(writer, document);
        writer.end();
        writer.finish();
    }

    /**
     * Writes the elements of a document. Every other name is set by {@link BsonWriter#name}, so
     * that both ways to set a name are tested.
     */
    private static void members(BsonWriter writer, BsonDocument document) {
        int i = 0;
        for (Map.Entry<String, BsonValue> member : document.entrySet()) {
            if (i++ % 2 == 0) {
                named(writer, BsonName.of(member.getKey()), member.getValue());
            } else {
                writer.name(member.getKey());
                nameless(writer, member.getValue());
            }
        }
    }

    private static void items(BsonWriter writer, BsonArray array) {
        for (BsonValue item : array) {
            nameless(writer, item);
        }
    }

    private static void named(BsonWriter w, BsonName name, BsonValue value) {
        switch (value.getBsonType()) {
            case DOUBLE -> w.float64(name, value.asDouble().getValue());
            case STRING -> w.string(name, value.asString().getValue());
            case DOCUMENT -> {
                w.beginDocument(name);
                members(w, value.asDocument());
                w.end();
            }
            case ARRAY -> {
                w.beginArray(name);
                items(w, value.asArray());
                w.end();
            }
            case BINARY -> w.binary(name, value.asBinary().getType() & 0xFF,
                    value.asBinary().getData());
            case UNDEFINED -> w.undefined(name);
            case OBJECT_ID -> w.objectId(name, value.asObjectId().getValue().toByteArray());
            case BOOLEAN -> w.bool(name, value.asBoolean().getValue());
            case DATE_TIME -> w.dateTime(name, value.asDateTime().getValue());
            case NULL -> w.nullValue(name);
            case REGULAR_EXPRESSION ->
                    w.regex(name, value.asRegularExpression().getPattern(),
                    value.asRegularExpression().getOptions());
            case DB_POINTER -> w.dbPointer(name, value.asDBPointer().getNamespace(),
                    value.asDBPointer().getId().toByteArray());
            case JAVASCRIPT -> w.code(name, value.asJavaScript().getCode());
            case SYMBOL -> w.symbol(name, value.asSymbol().getSymbol());
            case JAVASCRIPT_WITH_SCOPE -> {
                w.beginCodeWithScope(name, value.asJavaScriptWithScope().getCode());
                members(w, value.asJavaScriptWithScope().getScope());
                w.end();
            }
            case INT32 -> w.int32(name, value.asInt32().getValue());
            case TIMESTAMP -> w.timestamp(name, value.asTimestamp().getTime(),
                    value.asTimestamp().getInc());
            case INT64 -> w.int64(name, value.asInt64().getValue());
            case DECIMAL128 -> w.decimal128(name, value.asDecimal128().getValue().getHigh(),
                    value.asDecimal128().getValue().getLow());
            case MIN_KEY -> w.minKey(name);
            case MAX_KEY -> w.maxKey(name);
            default -> throw new AssertionError(value);
        }
    }

    private static void nameless(BsonWriter w, BsonValue value) {
        switch (value.getBsonType()) {
            case DOUBLE -> w.float64(value.asDouble().getValue());
            case STRING -> w.string(value.asString().getValue());
            case DOCUMENT -> {
                w.beginDocument();
                members(w, value.asDocument());
                w.end();
            }
            case ARRAY -> {
                w.beginArray();
                items(w, value.asArray());
                w.end();
            }
            case BINARY -> w.binary(value.asBinary().getType() & 0xFF,
                    ByteBuffer.wrap(value.asBinary().getData()));
            case UNDEFINED -> w.undefined();
            case OBJECT_ID -> w.objectId(value.asObjectId().getValue().toByteArray());
            case BOOLEAN -> w.bool(value.asBoolean().getValue());
            case DATE_TIME -> w.dateTime(value.asDateTime().getValue());
            case NULL -> w.nullValue();
            case REGULAR_EXPRESSION ->
                    w.regex(value.asRegularExpression().getPattern(),
                    value.asRegularExpression().getOptions());
            case DB_POINTER -> w.dbPointer(value.asDBPointer().getNamespace(),
                    value.asDBPointer().getId().toByteArray());
            case JAVASCRIPT -> w.code(value.asJavaScript().getCode());
            case SYMBOL -> w.symbol(value.asSymbol().getSymbol());
            case JAVASCRIPT_WITH_SCOPE -> {
                w.beginCodeWithScope(value.asJavaScriptWithScope().getCode());
                members(w, value.asJavaScriptWithScope().getScope());
                w.end();
            }
            case INT32 -> w.int32(value.asInt32().getValue());
            case TIMESTAMP -> w.timestamp(value.asTimestamp().getTime(),
                    value.asTimestamp().getInc());
            case INT64 -> w.int64(value.asInt64().getValue());
            case DECIMAL128 -> w.decimal128(value.asDecimal128().getValue().getHigh(),
                    value.asDecimal128().getValue().getLow());
            case MIN_KEY -> w.minKey();
            case MAX_KEY -> w.maxKey();
            default -> throw new AssertionError(value);
        }
    }

    /** Reads the remaining elements of the innermost document that the reader has entered. */
    static BsonDocument read(BsonReader reader) {
        BsonDocument document = new BsonDocument();
        while (reader.next()) {
            document.put(reader.name(), value(reader));
        }
        return document;
    }

    private static BsonValue value(BsonReader r) {
        return switch (r.type()) {
            case DOUBLE -> new BsonDouble(r.float64());
            case STRING -> new BsonString(r.string());
            case DOCUMENT -> inside(r);
            case ARRAY -> {
                BsonArray array = new BsonArray();
                r.enter();
                while (r.next()) {
                    array.add(value(r));
                }
                r.leave();
                yield array;
            }
            case BINARY -> {
                byte[] data = new byte[r.binary().remaining()];
                r.binary().get(data);
                yield new BsonBinary((byte) r.binarySubtype(), data);
            }
            case UNDEFINED -> new BsonUndefined();
            case OBJECT_ID -> new BsonObjectId(new ObjectId(r.objectId()));
            case BOOL -> BsonBoolean.valueOf(r.bool());
            case DATE_TIME -> new BsonDateTime(r.dateTime());
            case NULL -> BsonNull.VALUE;
            case REGEX -> new BsonRegularExpression(r.regexPattern(), r.regexOptions());
            case DB_POINTER -> new BsonDbPointer(r.dbPointerNamespace(),
                    new ObjectId(r.dbPointerId()));
            case CODE -> new BsonJavaScript(r.code());
            case SYMBOL -> new BsonSymbol(r.symbol());
            case CODE_WITH_SCOPE -> new BsonJavaScriptWithScope(r.code(), inside(r));
            case INT32 -> new BsonInt32(r.int32());
            case TIMESTAMP -> new BsonTimestamp(r.timestampSeconds(), r.timestampIncrement());
            case INT64 -> new BsonInt64(r.int64());
            case DECIMAL128 ->
                    new BsonDecimal128(Decimal128.fromIEEE754BIDEncoding(r.decimal128High(),
                    r.decimal128Low()));
            case MIN_KEY -> new BsonMinKey();
            case MAX_KEY -> new BsonMaxKey();
        };
    }

    private static BsonDocument inside(BsonReader reader) {
        reader.enter();
        BsonDocument document = read(reader);
        reader.leave();
        return document;
    }
}
