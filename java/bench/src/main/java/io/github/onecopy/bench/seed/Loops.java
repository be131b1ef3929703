package io.github.onecopy.bench.seed;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;

/**
 * The loop of the blog post whose measurements this benchmark repeats. The loop encodes one code
 * point at a time, and writes one byte at a time. The methods of this class differ in the kind of
 * their source or destination. Each method returns the number of bytes, as the method in the
 * MongoDB driver did. The texts have no lone surrogate.
 */
final class Loops {
    private Loops() {}

    /** The same loop as in the blog post. It calls {@code write} for each byte. */
    static int into(ByteArrayOutputStream out, String text) {
        int units = text.length();
        int bytes = 0;
        for (int at = 0; at < units; ) {
            int point = Character.codePointAt(text, at);
            if (point < 0x80) {
                out.write((byte) point);
                bytes += 1;
            } else if (point < 0x800) {
                out.write((byte) (0xC0 + (point >> 6)));
                out.write((byte) (0x80 + (point & 0x3F)));
                bytes += 2;
            } else if (point < 0x10000) {
                out.write((byte) (0xE0 + (point >> 12)));
                out.write((byte) (0x80 + ((point >> 6) & 0x3F)));
                out.write((byte) (0x80 + (point & 0x3F)));
                bytes += 3;
            } else {
                out.write((byte) (0xF0 + (point >> 18)));
                out.write((byte) (0x80 + ((point >> 12) & 0x3F)));
                out.write((byte) (0x80 + ((point >> 6) & 0x3F)));
                out.write((byte) (0x80 + (point & 0x3F)));
                bytes += 4;
            }
            at += Character.charCount(point);
        }
        return bytes;
    }

    /** The same loop as in the blog post, but its destination is an array. */
    static int into(byte[] out, String text) {
        int units = text.length();
        int end = 0;
        for (int at = 0; at < units; ) {
            int point = Character.codePointAt(text, at);
            end = put(out, end, point);
            at += Character.charCount(point);
        }
        return end;
    }

    /** The same loop as in the blog post, but its source is an array and its destination too. */
    static int into(byte[] out, char[] text, int units) {
        int end = 0;
        for (int at = 0; at < units; ) {
            int point = Character.codePointAt(text, at, units);
            end = put(out, end, point);
            at += Character.charCount(point);
        }
        return end;
    }

    /**
     * The same loop as in the blog post, but its destination is a {@link ByteBuffer}. The blog post
     * supposed that a destination of this kind causes the difference in speed.
     */
    static int into(ByteBuffer out, String text) {
        int units = text.length();
        int begin = out.position();
        for (int at = 0; at < units; ) {
            int point = Character.codePointAt(text, at);
            if (point < 0x80) {
                out.put((byte) point);
            } else if (point < 0x800) {
                out.put((byte) (0xC0 + (point >> 6)));
                out.put((byte) (0x80 + (point & 0x3F)));
            } else if (point < 0x10000) {
                out.put((byte) (0xE0 + (point >> 12)));
                out.put((byte) (0x80 + ((point >> 6) & 0x3F)));
                out.put((byte) (0x80 + (point & 0x3F)));
            } else {
                out.put((byte) (0xF0 + (point >> 18)));
                out.put((byte) (0x80 + ((point >> 12) & 0x3F)));
                out.put((byte) (0x80 + ((point >> 6) & 0x3F)));
                out.put((byte) (0x80 + (point & 0x3F)));
            }
            at += Character.charCount(point);
        }
        return out.position() - begin;
    }

    private static int put(byte[] out, int end, int point) {
        if (point < 0x80) {
            out[end] = (byte) point;
            return end + 1;
        }
        if (point < 0x800) {
            out[end] = (byte) (0xC0 + (point >> 6));
            out[end + 1] = (byte) (0x80 + (point & 0x3F));
            return end + 2;
        }
        if (point < 0x10000) {
            out[end] = (byte) (0xE0 + (point >> 12));
            out[end + 1] = (byte) (0x80 + ((point >> 6) & 0x3F));
            out[end + 2] = (byte) (0x80 + (point & 0x3F));
            return end + 3;
        }
        out[end] = (byte) (0xF0 + (point >> 18));
        out[end + 1] = (byte) (0x80 + ((point >> 12) & 0x3F));
        out[end + 2] = (byte) (0x80 + ((point >> 6) & 0x3F));
        out[end + 3] = (byte) (0x80 + (point & 0x3F));
        return end + 4;
    }
}
