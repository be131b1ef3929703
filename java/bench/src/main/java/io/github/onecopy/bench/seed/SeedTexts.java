package io.github.onecopy.bench.seed;

import java.util.Random;

/** The texts that a measurement goes through in turn: several, so that no branch is learnt by
 * heart. */
final class SeedTexts {
    private static final int SEED = 20120506;

    private SeedTexts() {}

    /**
     * {@code kind} is random, ascii or cjk; {@code units} the length of each. As many as make some
     * 10,000 units at most, a power of two.
     */
    static String[] of(String kind, int units) {
        Random random = new Random(SEED);
        String[] texts = new String[units <= 16 ? 256 : units <= 128 ? 64 : 16];
        for (int k = 0; k < texts.length; k++) {
            texts[k] =
                    switch (kind) {
                        case "random" -> RandomText.of(units, random);
                        case "ascii" -> between(' ', '~', units, random);
                        case "cjk" -> between('\u4E00', '\u9FA5', units, random);
                        default -> throw new IllegalArgumentException("`" + kind
                                + "` is no kind of text");
                    };
        }
        return texts;
    }

    private static String between(char first, char last, int units, Random random) {
        char[] text = new char[units];
        for (int k = 0; k < units; k++) {
            text[k] = (char) (first + random.nextInt(last - first + 1));
        }
        return new String(text);
    }
}
