package io.github.onecopy.bench.seed;

import java.util.Random;

/**
 * Random text like that of {@code RandomStringUtils.random(n)} of Apache Commons Lang, which the
 * post used. Each UTF-16 unit has the same probability, even if no character is assigned to it. A
 * drawn surrogate becomes a pair: its partner is one of the first 128 surrogates of the other kind.
 * If there is no space for a pair, or if the surrogate is a high surrogate for private use (U+DB80
 * to U+DBFF), another unit is drawn.
 */
final class RandomText {
    private static final int PARTNERS = 128;
    private static final char FIRST_PRIVATE_HIGH = '\uDB80';

    private RandomText() {}

    /** Returns a text of exactly {@code units} UTF-16 units, without a lone surrogate. */
    static String of(int units, Random random) {
        char[] text = new char[units];
        for (int at = 0; at < units; ) {
            char unit = (char) random.nextInt(Character.MAX_VALUE + 1);
            if (!Character.isSurrogate(unit)) {
                text[at++] = unit;
            } else if (at + 1 < units
                    && !(unit >= FIRST_PRIVATE_HIGH && Character.isHighSurrogate(unit))) {
                char partner = (char) random.nextInt(PARTNERS);
                boolean high = Character.isHighSurrogate(unit);
                text[at++] = high ? unit : (char) (Character.MIN_HIGH_SURROGATE + partner);
                text[at++] = high ? (char) (Character.MIN_LOW_SURROGATE + partner) : unit;
            }
        }
        return new String(text);
    }
}
