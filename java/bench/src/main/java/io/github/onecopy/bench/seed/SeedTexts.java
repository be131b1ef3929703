package io.github.onecopy.bench.seed;

import java.util.Random;

/**
 * The texts of one measurement. There are several texts, because the processor's branch predictor
 * would learn the branches of a single text.
 */
final class SeedTexts {
    private static final int SEED = 20120506;

    private SeedTexts() {}

    /**
     * Returns texts of {@code units} UTF-16 units each. {@code kind} is {@code random}, {@code
     * ascii} or {@code cjk}. There are 256 texts of up to 16 units, 64 of up to 128, and 16 longer
     * ones.
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
