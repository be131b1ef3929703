package io.github.onecopy.bench;

import com.google.protobuf.CodedOutputStream;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** Measures how fast other libraries write a string as UTF-8, for comparison with onecopy. */
public class PeersBenchmark {
    @State(Scope.Thread)
    public static class Netty {
        private ByteBuf out;

        @Setup
        public void prepare(Case texts) {
            out = Unpooled.directBuffer(texts.capacity());
        }
    }

    @State(Scope.Thread)
    public static class Protobuf {
        private ByteBuffer out;

        @Setup
        public void prepare(Case texts) {
            out = ByteBuffer.allocateDirect(texts.capacity() + 5);
        }
    }

    @Benchmark
    public int nettyDirect(Case texts, Netty netty) {
        return ByteBufUtil.writeUtf8(netty.out.clear(), texts.next());
    }

    /** Measures Protobuf, which also writes the length of the string before the string. */
    @Benchmark
    public int protobufDirect(Case texts, Protobuf protobuf) throws IOException {
        CodedOutputStream stream = CodedOutputStream.newInstance(protobuf.out.clear());
        stream.writeStringNoTag(texts.next());
        stream.flush();
        return protobuf.out.position();
    }
}
