package io.github.onecopy.internal;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.github.onecopy.Malformed;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Objects;

/** Memory segments as the buffers that the encoder and the decoder know; what lies past 2 GiB comes part by part. */
public final class Segments {
    /** What a buffer over a segment holds at most; a few bytes less than 2 GiB. */
    private static final long MOST_BYTES = Integer.MAX_VALUE - 8;

    private static final byte[] NOTHING = new byte[0];

    private Segments() {}

    /**
     * See {@code Utf8.encode(String, MemorySegment, long, Malformed)}.
     *
     * @param s the string
     * @param dst where to
     * @param at the offset
     * @param malformed the policy
     * @return the bytes written
     */
    public static long encode(String s, MemorySegment dst, long at, Malformed malformed) {
        if (dst.isReadOnly()) {
            throw new IllegalArgumentException("the segment is read-only");
        }
        long size = dst.byteSize();
        Objects.checkFromToIndex(at, size, size);
        int n = s.length();
        if (n > 0 && n <= Encoder.SHORT_UNITS && ascii(s, n, dst, at, size) == n) {
            return n;
        }
        if (n == 0) {
            MemorySegment.copy(NOTHING, 0, dst, JAVA_BYTE, at, 0); // Looks whether the segment may be written to.
            return 0;
        }
        Encoder encoder = Pools.ENCODERS.take();
        long out = at;
        int from = 0;
        while (n > Encoder.COPIED_UNITS && encoder.asciiPart(s, from)) {
            int count = (int) Math.min(encoder.ascii - from, size - out);
            MemorySegment.copy(encoder.bytes, 0, dst, JAVA_BYTE, out, count);
            out += count;
            from += count;
            if (out == size) {
                break;
            }
        }
        while (from < n) {
            int to = Encoder.cut(s, n, from);
            out += encode(encoder, s, from, to, dst, out, malformed);
            from = to;
        }
        Pools.ENCODERS.give(encoder);
        return out - at;
    }

    private static int encode(
            Encoder encoder, String s, int from, int to, MemorySegment dst, long at, Malformed malformed) {
        int n = to - from;
        if (n > Encoder.COPIED_UNITS && Native.available()) {
            char[] units = encoder.units(n);
            s.getChars(from, to, units, 0);
            int replacement = Encoder.replacement(malformed);
            return Encoder.written(s, from, Native.utf16ToUtf8(units, 0, n, dst, at, replacement), malformed);
        }
        int count = encoder.encodePart(s, from, to, malformed);
        if (count > dst.byteSize() - at) {
            throw Encoder.noRoom(s, to, malformed);
        }
        MemorySegment.copy(encoder.bytes, 0, dst, JAVA_BYTE, at, count);
        return count;
    }

    /** Writes the first units as far as they are ASCII and there is room; returns how many. */
    private static int ascii(String s, int n, MemorySegment dst, long at, long limit) {
        int most = (int) Math.min(n, limit - at);
        for (int i = 0; i < most; i++) {
            char c = s.charAt(i);
            if (c >= 0x80) {
                return i;
            }
            dst.set(JAVA_BYTE, at + i, (byte) c);
        }
        return most;
    }

    /**
     * See {@code Utf8.decode(MemorySegment, long, long, Malformed)}.
     *
     * @param src where from
     * @param at the offset
     * @param n how many bytes
     * @param malformed the policy
     * @return the string
     */
    public static String decode(MemorySegment src, long at, long n, Malformed malformed) {
        Objects.checkFromIndexSize(at, n, src.byteSize());
        if (n > MOST_BYTES) {
            throw new OutOfMemoryError(n + " bytes are more than a string holds");
        }
        if (n > Decoder.CHUNK_BYTES) {
            return Pools.decode(buffer(src, at, (int) n), 0, (int) n, malformed);
        }
        Decoder decoder = Pools.DECODERS.take();
        byte[] copy = decoder.source((int) n);
        MemorySegment.copy(src, JAVA_BYTE, at, copy, 0, (int) n);
        String s = decoder.decode(copy, 0, (int) n, malformed);
        Pools.DECODERS.give(decoder);
        return s;
    }

    /**
     * See {@code Utf8.indexOfInvalid(MemorySegment, long, long)}.
     *
     * @param src where it is
     * @param at the offset
     * @param n how many bytes
     * @return the index, or -1
     */
    public static long indexOfInvalid(MemorySegment src, long at, long n) {
        Objects.checkFromIndexSize(at, n, src.byteSize());
        long done = 0;
        while (n - done > MOST_BYTES) {
            // Up to the beginning of a sequence; where none is near, what comes first is invalid already.
            int part = (int) MOST_BYTES;
            for (int back = 0; back < 4 && isContinuation(src, at + done + part); back++) {
                part--;
            }
            long index = Pools.indexOfInvalid(buffer(src, at + done, part), 0, part);
            if (index >= 0) {
                return done + index;
            }
            done += part;
        }
        int rest = (int) (n - done);
        long index = Pools.indexOfInvalid(buffer(src, at + done, rest), 0, rest);
        return index < 0 ? -1 : done + index;
    }

    private static boolean isContinuation(MemorySegment src, long at) {
        return (src.get(JAVA_BYTE, at) & 0xC0) == 0x80;
    }

    /** A buffer over a part of a segment; over a copy where the segment is an array of other primitives. */
    private static ByteBuffer buffer(MemorySegment src, long at, int n) {
        MemorySegment part = src.asSlice(at, n);
        if (src.isNative() || src.heapBase().orElse(null) instanceof byte[]) {
            return part.asByteBuffer();
        }
        if (src.isReadOnly() && src.heapBase().isEmpty()) {
            return readOnly(part);
        }
        return ByteBuffer.wrap(part.toArray(JAVA_BYTE));
    }

    /** A read-only segment tells nobody its array. */
    private static ByteBuffer readOnly(MemorySegment part) {
        try {
            return part.asByteBuffer();
        } catch (UnsupportedOperationException notOfBytes) {
            return ByteBuffer.wrap(part.toArray(JAVA_BYTE));
        }
    }
}
