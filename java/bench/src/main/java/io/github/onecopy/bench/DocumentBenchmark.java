package io.github.onecopy.bench;

import com.mongodb.internal.connection.ByteBufferBsonOutput;
import com.mongodb.internal.connection.PowerOfTwoBufferPool;
import io.github.onecopy.BsonName;
import io.github.onecopy.BsonOutput;
import io.github.onecopy.BsonWriter;
import io.github.onecopy.NativeBsonOutput;
import java.nio.ByteBuffer;
import org.bson.BsonBinaryWriter;
import org.bson.BsonDocument;
import org.bson.BsonString;
import org.bson.codecs.BsonDocumentCodec;
import org.bson.codecs.EncoderContext;
import org.bson.io.BasicOutputBuffer;
import org.bson.io.OutputBuffer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Writes a BSON document with one string. The benchmarks compare the MongoDB driver's writer with
 * onecopy's writer. They also compare the driver's codec on the driver's own output with the same
 * codec on onecopy's output.
 */
public class DocumentBenchmark {
    static final String FIELD = "text";
    static final BsonName NAME = BsonName.of(FIELD);

    private static final BsonDocumentCodec CODEC = new BsonDocumentCodec();
    private static final EncoderContext CONTEXT = EncoderContext.builder().build();

    /** An upper bound of the number of bytes of a document without its string. */
    private static final int AROUND = 32;

    @State(Scope.Thread)
    public static class Basic {
        private BasicOutputBuffer out;

        @Setup
        public void prepare(Case texts) {
            out = new BasicOutputBuffer(texts.capacity() + AROUND);
        }
    }

    @State(Scope.Thread)
    public static class Wire {
        private ByteBufferBsonOutput out;

        @Setup
        public void prepare() {
            out = new ByteBufferBsonOutput(PowerOfTwoBufferPool.DEFAULT);
        }
    }

    @State(Scope.Thread)
    public static class Ours {
        private final BsonOutput out = new BsonOutput();
        private final BsonWriter writer = BsonWriter.over(out);
    }

    @State(Scope.Thread)
    public static class OursDirect {
        private ByteBuffer out;
        private BsonWriter writer;

        @Setup
        public void prepare(Case texts) {
            out = ByteBuffer.allocateDirect(texts.capacity() + AROUND);
            writer = BsonWriter.over(out);
        }
    }

    @State(Scope.Thread)
    public static class Replaced {
        private final NativeBsonOutput out = new NativeBsonOutput();
    }

    /** Contains a {@code BsonDocument} of the MongoDB driver for each string. */
    @State(Scope.Thread)
    public static class Documents {
        private BsonDocument[] all;
        private int at;

        @Setup
        public void prepare(Case texts) {
            String[] strings = texts.texts();
            all = new BsonDocument[strings.length];
            for (int k = 0; k < all.length; k++) {
                all[k] = new BsonDocument(FIELD, new BsonString(strings[k]));
            }
        }

        BsonDocument next() {
            at = (at + 1) & (all.length - 1);
            return all[at];
        }
    }

    @Benchmark
    public int driver(Case texts, Basic basic) {
        return driver(basic.out, texts.next());
    }

    @Benchmark
    public int driverWire(Case texts, Wire wire) {
        return driver(wire.out, texts.next());
    }

    static int driver(OutputBuffer out, String text) {
        out.truncateToPosition(0);
        try (BsonBinaryWriter writer = new BsonBinaryWriter(out)) {
            writer.writeStartDocument();
            writer.writeString(FIELD, text);
            writer.writeEndDocument();
        }
        return out.getPosition();
    }

    @Benchmark
    public int ours(Case texts, Ours ours) {
        ours.out.reset();
        write(ours.writer, texts.next());
        return ours.out.size();
    }

    @Benchmark
    public int oursDirect(Case texts, OursDirect ours) {
        ours.out.clear();
        write(ours.writer, texts.next());
        return ours.out.position();
    }

    static void write(BsonWriter writer, String text) {
        writer.beginDocument();
        writer.string(NAME, text);
        writer.end();
    }

    @Benchmark
    public int codecDriver(Documents documents, Basic basic) {
        return codec(basic.out, documents.next());
    }

    @Benchmark
    public int codecReplaced(Documents documents, Replaced replaced) {
        return codec(replaced.out, documents.next());
    }

    static int codec(OutputBuffer out, BsonDocument document) {
        out.truncateToPosition(0);
        try (BsonBinaryWriter writer = new BsonBinaryWriter(out)) {
            CODEC.encode(writer, document, CONTEXT);
        }
        return out.getPosition();
    }
}
