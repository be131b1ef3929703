package io.github.onecopy.bench.seed;

import io.github.onecopy.bench.seed.OwnStreams.Locked;
import io.github.onecopy.bench.seed.OwnStreams.Unlocked;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * The method of the blog post, and variants with other destinations. Each of them allocates five
 * bytes for each UTF-16 unit, runs the loop, and copies the result to an array of its size.
 */
final class SeedWays {
    private SeedWays() {}

    /** Encodes a text as in the blog post: the loop writes to a new ByteArrayOutputStream. */
    static byte[] post(String text) {
        ByteArrayOutputStream out = new ByteArrayOutputStream(5 * text.length());
        Loops.into(out, text);
        return out.toByteArray();
    }

    static byte[] locked(String text) {
        Locked out = new Locked(5 * text.length());
        Loops.into(out, text);
        return out.toByteArray();
    }

    static byte[] unlocked(String text) {
        Unlocked out = new Unlocked(5 * text.length());
        Loops.into(out, text);
        return out.toByteArray();
    }

    static byte[] array(String text) {
        byte[] out = new byte[5 * text.length()];
        return Arrays.copyOf(out, Loops.into(out, text));
    }

    static byte[] buffer(String text) {
        ByteBuffer out = ByteBuffer.allocate(5 * text.length());
        Loops.into(out, text);
        return Arrays.copyOf(out.array(), out.position());
    }
}
