package io.github.onecopy.bench;

import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * The strings of one set of benchmark parameters. They all have the same kind of content and the
 * same length: 256 strings of 10 UTF-16 units, 64 of 100 units, or 16 of 1000 units. A benchmark
 * uses the strings in turn, so that the processor cannot predict the branches for one string.
 */
@State(Scope.Thread)
public class Case {
    /** The kinds of content, in the order of the table of results. */
    static final String[] CONTENTS = {"ascii", "latin1", "cyrillic", "cjk", "emoji"};

    /** The lengths, in UTF-16 units. */
    static final int[] LENGTHS = {10, 100, 1000};

    private static final long SEED = 9;

    @Param({"ascii", "latin1", "cyrillic", "cjk", "emoji"})
    public String content;

    @Param({"10", "100", "1000"})
    public int length;

    private String[] texts;
    private int at;

    /** Creates an instance; JMH calls this constructor. */
    public Case() {}

    Case(String content, int length) {
        this.content = content;
        this.length = length;
        prepare();
    }

    /** Creates the strings. They are the same in each process, because the seed is fixed. */
    @Setup
    public void prepare() {
        Random random = new Random(SEED);
        texts = new String[length <= 16 ? 256 : length <= 128 ? 64 : 16];
        for (int k = 0; k < texts.length; k++) {
            StringBuilder text = new StringBuilder(length + 1);
            while (text.length() < length) {
                int point = point(random);
                text.appendCodePoint(text.length() + Character.charCount(point) > length
                        ? 'e'
                        : point);
            }
            texts[k] = text.toString();
        }
    }

    /** Returns all strings, which {@link #next} returns one after the other. */
    String[] texts() {
        return texts;
    }

    String next() {
        at = (at + 1) & (texts.length - 1);
        return texts[at];
    }

    /** Returns a size in bytes of a buffer into which any one of the strings fits in UTF-8. */
    int capacity() {
        return 3 * length;
    }

    byte[][] encoded() {
        byte[][] all = new byte[texts.length][];
        for (int k = 0; k < all.length; k++) {
            all[k] = texts[k].getBytes(StandardCharsets.UTF_8);
        }
        return all;
    }

    /**
     * Returns a random code point for text of the kind {@code content}. On average, four of five
     * characters are ASCII in Latin-1 text, one of five in Cyrillic text, eight of nine in text
     * with emoji, and none in CJK text.
     */
    private int point(Random random) {
        return switch (content) {
            case "ascii" -> letter(random);
            case "latin1" -> random.nextInt(5) == 0 ? 0xE0 + random.nextInt(0x20) : letter(random);
            case "cyrillic" -> random.nextInt(5) == 0 ? ' ' : 0x430 + random.nextInt(0x20);
            case "cjk" -> 0x4E00 + random.nextInt(0x51A6);
            case "emoji" -> random.nextInt(9) == 0
                    ? 0x1F600 + random.nextInt(0x50)
                    : letter(random);
            default -> throw new IllegalArgumentException("`" + content + "` is no content");
        };
    }

    private static int letter(Random random) {
        return random.nextInt(6) == 0 ? ' ' : 'a' + random.nextInt(26);
    }
}
