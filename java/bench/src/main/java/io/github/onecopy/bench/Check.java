package io.github.onecopy.bench;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.CodedOutputStream;
import com.mongodb.internal.connection.ByteBufferBsonOutput;
import com.mongodb.internal.connection.PowerOfTwoBufferPool;
import io.github.onecopy.BsonOutput;
import io.github.onecopy.BsonWriter;
import io.github.onecopy.NativeBsonOutput;
import io.github.onecopy.Onecopy;
import io.github.onecopy.Utf8;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.bson.BsonDocument;
import org.bson.BsonString;
import org.bson.io.BasicOutputBuffer;
import org.bson.io.OutputBuffer;

/**
 * Checks that every measured method returns the same result as the JDK or the MongoDB driver, for
 * all measured strings. It runs in a separate process, so that it does not affect the profile of
 * the measured calls.
 */
public final class Check {
    private static final int CAPACITY = 4_000;

    private int compared;

    private Check() {}

    /**
     * Checks that all methods that the benchmarks measure return the right results. If a result
     * differs, throws an exception that names the method and the string. Otherwise prints the
     * implementation in use and the number of checks.
     */
    public static void main(String[] arguments) throws IOException {
        Check check = new Check();
        for (String content : Case.CONTENTS) {
            for (int length : Case.LENGTHS) {
                for (String text : new Case(content, length).texts()) {
                    String about = content + ", " + length;
                    byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
                    check.encode(about, text, utf8);
                    check.decode(about, text, utf8);
                    check.document(about, text);
                }
            }
        }
        System.out.println(check.compared + " results, all as they should be; "
                + Onecopy.nativeStatus());
    }

    private void same(String about, String path, Object expected, Object given) {
        if (!expected.equals(given)) {
            throw new AssertionError(path + " differs: " + about);
        }
        compared++;
    }

    private void same(String about, String path, byte[] expected, ByteBuffer given) {
        same(about, path, ByteBuffer.wrap(expected), given);
    }

    private void encode(String about, String text, byte[] expected) throws IOException {
        for (ByteBuffer out
                : new ByteBuffer[] {ByteBuffer.allocate(CAPACITY),
                ByteBuffer.allocateDirect(CAPACITY)}) {
            int bytes = Utf8.encode(text, out);
            same(about, "encode into " + out, expected.length, bytes);
            same(about, "encode into " + out, expected, out.flip());
        }
        same(about, "encodeToBytes", expected, ByteBuffer.wrap(Utf8.encodeToBytes(text)));
        ByteBuf netty = Unpooled.directBuffer(CAPACITY);
        ByteBufUtil.writeUtf8(netty, text);
        same(about, "Netty", expected, netty.nioBuffer());
        netty.release();
        ByteBuffer protobuf = ByteBuffer.allocateDirect(CAPACITY);
        CodedOutputStream stream = CodedOutputStream.newInstance(protobuf);
        stream.writeStringNoTag(text);
        stream.flush();
        same(about, "protobuf", text, CodedInputStream.newInstance(protobuf.flip()).readString());
    }

    private void decode(String about, String text, byte[] utf8) {
        same(about, "decode from the heap", text, Utf8.decode(ByteBuffer.wrap(utf8)));
        ByteBuffer direct = ByteBuffer.allocateDirect(utf8.length).put(utf8).flip();
        same(about, "decode from outside of the heap", text, Utf8.decode(direct));
    }

    private void document(String about, String text) throws IOException {
        BasicOutputBuffer basic = new BasicOutputBuffer(CAPACITY);
        DocumentBenchmark.driver(basic, text);
        byte[] expected = basic.toByteArray();

        BsonOutput output = new BsonOutput();
        DocumentBenchmark.write(BsonWriter.over(output), text);
        same(about, "BsonWriter", expected, ByteBuffer.wrap(output.toByteArray()));
        ByteBuffer direct = ByteBuffer.allocateDirect(CAPACITY);
        DocumentBenchmark.write(BsonWriter.over(direct), text);
        same(about, "BsonWriter over a direct buffer", expected, direct.flip());

        BsonDocument document = new BsonDocument(DocumentBenchmark.FIELD, new BsonString(text));
        try (NativeBsonOutput replaced = new NativeBsonOutput()) {
            DocumentBenchmark.codec(replaced, document);
            same(about, "NativeBsonOutput", expected, piped(replaced));
        }
        DocumentBenchmark.codec(basic, document);
        same(about, "BasicOutputBuffer by the codec", expected, piped(basic));
        try (ByteBufferBsonOutput wire = new ByteBufferBsonOutput(PowerOfTwoBufferPool.DEFAULT)) {
            DocumentBenchmark.driver(wire, text);
            same(about, "ByteBufferBsonOutput", expected, piped(wire));
        }
    }

    private static ByteBuffer piped(OutputBuffer output) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        output.pipe(out);
        return ByteBuffer.wrap(Arrays.copyOf(out.toByteArray(), output.getPosition()));
    }
}
