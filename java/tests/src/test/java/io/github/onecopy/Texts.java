package io.github.onecopy;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Texts that several tests use: of several scripts, of lengths around each threshold, with lone
 * surrogates.
 */
final class Texts {
    /**
     * Lengths in UTF-16 units around each threshold: of the plain loop, of the check for ASCII, of
     * the scratch arrays, and of the parts of a long text.
     */
    static final int[] LENGTHS = {
        0, 1, 2, 7, 8, 9, 15, 16, 17, 18, 31, 39, 40, 41, 63, 64, 65, 255, 256, 257, 511, 512, 513,
        1000, 8191, 8192, 8193, 16384, 20000, 70000
    };

    private Texts() {}

    /** Returns a text of each script and each length. */
    static List<String> all() {
        List<String> texts = new ArrayList<>();
        for (int n : LENGTHS) {
            for (Script script : Script.values()) {
                texts.add(script.text(n, new Random(n)));
            }
        }
        return texts;
    }

    /** The kinds of characters of which a text consists. */
    enum Script {
        ASCII {
            @Override
            int character(Random random) {
                return ' ' + random.nextInt(95);
            }
        },
        ANY_ASCII {
            @Override
            int character(Random random) {
                return random.nextInt(128);
            }
        },
        LATIN_1 {
            @Override
            int character(Random random) {
                return random.nextInt(3) == 0
                        ? 0x80 + random.nextInt(128)
                        : 'a' + random.nextInt(26);
            }
        },
        CYRILLIC {
            @Override
            int character(Random random) {
                return random.nextInt(7) == 0 ? ' ' : 0x430 + random.nextInt(32);
            }
        },
        CJK {
            @Override
            int character(Random random) {
                return 0x4E00 + random.nextInt(20000);
            }
        },
        EMOJI {
            @Override
            int character(Random random) {
                return random.nextInt(3) == 0
                        ? 'a' + random.nextInt(26)
                        : 0x1F600 + random.nextInt(64);
            }
        },
        ANY {
            @Override
            int character(Random random) {
                int c = random.nextInt(0x110000 - 0x800);
                return c < 0xD800 ? c : c + 0x800;
            }
        },
        /**
         * Characters above U+00FF whose low byte is that of an ASCII character, and ASCII
         * characters.
         */
        LOW_BYTES_ASCII {
            @Override
            int character(Random random) {
                int low = ' ' + random.nextInt(95);
                return random.nextInt(3) > 0 ? low : 0x100 * (1 + random.nextInt(0xD7)) + low;
            }
        },
        /** ASCII characters, except for one character near the end. */
        LATE {
            @Override
            int character(Random random) {
                return ' ' + random.nextInt(95);
            }

            @Override
            String text(int n, Random random) {
                StringBuilder text = new StringBuilder(super.text(n, random));
                if (n > 0) {
                    text.setCharAt(n - 1 - n / 16, 'é');
                }
                return text.toString();
            }
        };

        abstract int character(Random random);

        /** Returns a random text of {@code n} UTF-16 units. */
        String text(int n, Random random) {
            StringBuilder text = new StringBuilder(n);
            while (text.length() < n) {
                int c = character(random);
                if (text.length() + Character.charCount(c) <= n) {
                    text.appendCodePoint(c);
                } else {
                    text.append('x');
                }
            }
            return text.toString();
        }
    }

    /** Returns {@code text} with the UTF-16 unit at {@code index} replaced by {@code unit}. */
    static String with(String text, int index, char unit) {
        StringBuilder changed = new StringBuilder(text);
        changed.setCharAt(index, unit);
        return changed.toString();
    }

    /**
     * Returns the index of the first lone surrogate, found by its definition; -1 if there is none.
     */
    static int firstLoneSurrogate(String s) {
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (Character.isHighSurrogate(c) && i + 1 < s.length()
                    && Character.isLowSurrogate(s.charAt(i + 1))) {
                i++;
            } else if (Character.isSurrogate(c)) {
                return i;
            }
        }
        return -1;
    }
}
