package io.github.onecopy.internal;

import io.github.onecopy.Malformed;
import io.github.onecopy.MalformedTextException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.util.Objects;

/** Memory segments as the buffers that the encoder and the decoder know; what lies past 2 GiB comes part by part. */
public final class Segments {
    /** What a buffer over a segment holds at most; a few bytes less than 2 GiB. */
    static final long MOST_BYTES = Integer.MAX_VALUE - 8;

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
        long room = Math.subtractExact(dst.byteSize(), at);
        Objects.checkFromIndexSize(at, room, dst.byteSize());
        if (s.length() > MOST_BYTES / Pure.MOST_BYTES) {
            return encodeLong(s, dst, at, malformed);
        }
        int limit = (int) Math.min(room, MOST_BYTES);
        MemorySegment place = dst.asSlice(at, limit);
        if (dst.isNative() || dst.heapBase().orElse(null) instanceof byte[]) {
            return Pools.encode(s, place.asByteBuffer(), 0, limit, malformed);
        }
        // An array of other primitives: the bytes come from an array of their own.
        byte[] bytes = Pools.encodeToBytes(s, malformed);
        if (bytes.length > limit) {
            throw new BufferOverflowException();
        }
        MemorySegment.copy(bytes, 0, place, ValueLayout.JAVA_BYTE, 0, bytes.length);
        return bytes.length;
    }

    /** A string whose UTF-8 may be past 2 GiB, half by half. */
    private static long encodeLong(String s, MemorySegment dst, long at, Malformed malformed) {
        int middle = s.length() / 2;
        if (Character.isHighSurrogate(s.charAt(middle - 1)) && Character.isLowSurrogate(s.charAt(middle))) {
            middle++;
        }
        long first = encode(s.substring(0, middle), dst, at, malformed);
        try {
            return first + encode(s.substring(middle), dst, at + first, malformed);
        } catch (MalformedTextException e) {
            int index = middle + (int) e.index();
            throw Pure.loneSurrogate(s.charAt(index), index);
        }
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
        ByteBuffer buffer = buffer(src, at, (int) n);
        return Pools.decode(buffer, 0, (int) n, malformed);
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
        return (src.get(ValueLayout.JAVA_BYTE, at) & 0xC0) == 0x80;
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
        return ByteBuffer.wrap(part.toArray(ValueLayout.JAVA_BYTE));
    }

    /** A read-only segment tells nobody its array. */
    private static ByteBuffer readOnly(MemorySegment part) {
        try {
            return part.asByteBuffer();
        } catch (UnsupportedOperationException notOfBytes) {
            return ByteBuffer.wrap(part.toArray(ValueLayout.JAVA_BYTE));
        }
    }
}
