package io.github.onecopy;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Texts that tests share: scripts, lengths around each threshold, lone surrogates, bytes that are
 * not UTF-8. */
final class Texts {
    /** Around the loop, the arrays that are copied, the scratch and the chunks. */
    static final int[] LENGTHS = {
        0, 1, 2, 7, 8, 9, 15, 16, 17, 18, 31, 39, 40, 41, 63, 64, 65, 255, 256, 257, 511, 512, 513,
        1000, 8191, 8192, 8193, 16384, 20000, 70000
    };

    private Texts() {}

    /** A text of each script and length. */
    static List<String> all() {
        List<String> texts = new ArrayList<>();
        for (int n : LENGTHS) {
            for (Script script : Script.values()) {
                texts.add(script.text(n, new Random(n)));
            }
        }
        return texts;
    }

    /** A kind of characters of a text. */
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
        /** Wide characters whose low bytes are ASCII. */
        LOW_BYTES_ASCII {
            @Override
            int character(Random random) {
                int low = ' ' + random.nextInt(95);
                return random.nextInt(3) > 0 ? low : 0x100 * (1 + random.nextInt(0xD7)) + low;
            }
        },
        /** One character that is not ASCII, near the end. */
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

        /** A text of {@code n} units. */
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

    /** The text with the unit at {@code index} replaced. */
    static String with(String text, int index, char unit) {
        StringBuilder changed = new StringBuilder(text);
        changed.setCharAt(index, unit);
        return changed.toString();
    }

    /** The index of the first lone surrogate, by the definition; -1 if there is none. */
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
