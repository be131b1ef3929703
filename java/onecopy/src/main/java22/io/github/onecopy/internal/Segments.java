package io.github.onecopy.internal;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.github.onecopy.Malformed;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * Encodes strings into memory segments, and decodes and checks the UTF-8 in memory segments. For
 * the decoder, a segment is wrapped in a {@code ByteBuffer}. A segment that is only checked may be
 * larger than the largest {@code ByteBuffer}, so it is checked part by part.
 */
public final class Segments {
    /** The size in bytes of the largest buffer over a segment: a few bytes less than 2 GiB. */
    private static final long MOST_BYTES = Integer.MAX_VALUE - 8;

    private static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final byte[] NOTHING = new byte[0];

    private Segments() {}

    /**
     * See {@code Utf8.encode(String, MemorySegment, long, Malformed)}.
     *
     * @param s the string
     * @param dst the destination
     * @param at the offset of the first byte, in bytes
     * @param malformed the treatment of lone surrogates
     * @return the number of bytes written
     */
    public static long encode(String s, MemorySegment dst, long at, Malformed malformed) {
        if (dst.isReadOnly()) {
            throw new IllegalArgumentException("the segment is read-only");
        }
        long size = dst.byteSize();
        Objects.checkFromToIndex(at, size, size);
        int n = s.length();
        if (n == 0) {
            // An empty copy checks that the segment is open and may be accessed by this thread.
            MemorySegment.copy(NOTHING, 0, dst, JAVA_BYTE, at, 0);
            return 0;
        }
        if (StringArrays.OPEN && n <= Encoder.LOOKED_AT_UNITS && StringArrays.isAscii(s)) {
            if (n > size - at) {
                throw new BufferOverflowException();
            }
            MemorySegment.copy(StringArrays.bytes(s), 0, dst, JAVA_BYTE, at, n);
            return n;
        }
        if (n <= Encoder.SHORT_UNITS) {
            return brief(s, dst, at, malformed) - at;
        }
        Encoder encoder = Pools.OPENED != null ? Pools.OPENED : Pools.ENCODERS.take();
        boolean narrow = Encoder.isNarrow(s);
        long out = at;
        for (int from = 0; from < n; ) {
            int to = Encoder.cut(s, n, from);
            out = part(encoder, s, narrow, from, to, dst, out, malformed);
            from = to;
        }
        if (Pools.OPENED == null) {
            Pools.ENCODERS.give(encoder);
        }
        return out - at;
    }

    private static long part(
            Encoder encoder, String s, boolean narrow, int from, int to, MemorySegment dst,
            long at, Malformed malformed) {
        int n = to - from;
        if (!Native.available()) {
            int count = encoder.encodePart(s, from, to, malformed);
            if (count > dst.byteSize() - at) {
                throw Encoder.overflow(s, to, malformed);
            }
            MemorySegment.copy(encoder.bytes, 0, dst, JAVA_BYTE, at, count);
            return at + count;
        }
        long result;
        if (narrow) {
            byte[] src = StringArrays.OPEN ? StringArrays.bytes(s) : encoder.copied(s, from, to);
            result = Native.latin1ToUtf8(src, StringArrays.OPEN ? from : 0, n, dst, at);
        } else if (StringArrays.OPEN) {
            result = Native.utf16ToUtf8(StringArrays.bytes(s), from, n, dst, at,
                    Encoder.replacement(malformed));
        } else {
            char[] units = encoder.units(n);
            s.getChars(from, to, units, 0);
            result = Native.utf16ToUtf8(units, 0, n, dst, at, Encoder.replacement(malformed));
        }
        return at + Encoder.written(s, from, result, malformed);
    }

    /**
     * Writes a short string into a segment, as {@link Pure#encode(String, java.nio.ByteBuffer, int,
     * int, Malformed)} does into a buffer. Each store checks whether the segment is open, so
     * several bytes are written with one store.
     */
    private static long brief(String s, MemorySegment dst, long at, Malformed malformed) {
        int n = s.length();
        Pure.checkCapacity(s, dst.byteSize() - at, malformed);
        long out = at;
        for (int i = 0; i < n; i++) {
            char c = s.charAt(i);
            if (c < 0x80) {
                dst.set(JAVA_BYTE, out++, (byte) c);
            } else if (c < 0x800) {
                dst.set(SHORT, out, (short) (0x80C0 | c >> 6 | (c & 0x3F) << 8));
                out += 2;
            } else if (!Character.isSurrogate(c)) {
                dst.set(SHORT, out, (short) (0x80E0 | c >> 12 | (c >> 6 & 0x3F) << 8));
                dst.set(JAVA_BYTE, out + 2, (byte) (0x80 | c & 0x3F));
                out += 3;
            } else if (Pure.isPair(s, c, i, n)) {
                int point = Character.toCodePoint(c, s.charAt(++i));
                int head = 0x80F0 | point >> 18 | (point >> 12 & 0x3F) << 8;
                dst.set(INT, out, head | (0x80 | point >> 6 & 0x3F) << 16
                        | (0x80 | point & 0x3F) << 24);
                out += 4;
            } else {
                dst.set(JAVA_BYTE, out++, Pure.lone(c, i, malformed));
            }
        }
        return out;
    }

    /**
     * See {@code Utf8.decode(MemorySegment, long, long, Malformed)}.
     *
     * @param src the source
     * @param at the offset of the first byte, in bytes
     * @param n the number of bytes
     * @param malformed the treatment of invalid sequences
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
     * @param src the bytes
     * @param at the offset of the first byte, in bytes
     * @param n the number of bytes
     * @return the number of bytes before the first invalid sequence, or -1
     */
    public static long indexOfInvalid(MemorySegment src, long at, long n) {
        Objects.checkFromIndexSize(at, n, src.byteSize());
        long done = 0;
        while (n - done > MOST_BYTES) {
            // The part ends before the start of a UTF-8 sequence. If no start is within the last
            // four bytes, the part is invalid anyway.
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

    /**
     * Returns a buffer over a part of a segment. If the segment is an array whose elements are not
     * bytes, the buffer is over a copy.
     */
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

    /**
     * Returns a buffer over a read-only segment. A read-only segment does not reveal the element
     * type of its array. If no buffer over the segment can be created, its contents are copied.
     */
    private static ByteBuffer readOnly(MemorySegment part) {
        try {
            return part.asByteBuffer();
        } catch (UnsupportedOperationException notOfBytes) {
            return ByteBuffer.wrap(part.toArray(JAVA_BYTE));
        }
    }
}
