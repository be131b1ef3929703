package io.github.onecopy;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CoderResult;
import java.nio.charset.CodingErrorAction;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class DecodeTest {
    /** A sequence of each class that RFC 3629 forbids, and truncated sequences; in hexadecimal. */
    static final String[] INVALID = {
        "80", "BF", "C0", "C1BF", "C2", "C280BF", "E0", "E080", "E09FBF", "E0A0", "E1", "E180",
        "EDA080", "EDBFBF", "EF", "EFBF", "F0", "F08F", "F08FBFBF", "F09080", "F090", "F48FBF",
        "F4908080", "F5808080", "F8888080", "FE", "FF", "8080808080", "F09F98", "F09F9880BF",
        "E4B8ADE4B8", "C380C3"
    };

    /** Returns the bytes in a buffer of each kind, with position 2 and the limit at their end. */
    static List<ByteBuffer> buffers(byte[] bytes) {
        List<ByteBuffer> buffers = new ArrayList<>();
        for (ByteBuffer memory : new ByteBuffer[] {
            ByteBuffer.allocate(bytes.length + 9),
            ByteBuffer.allocateDirect(bytes.length + 9),
            ByteBuffer.allocate(bytes.length + 20).position(4).slice(),
            ByteBuffer.allocateDirect(bytes.length + 20).position(4).slice(),
        }) {
            ByteBuffer buffer = memory.put(2, bytes).position(2).limit(2 + bytes.length);
            buffers.add(buffer);
            buffers.add(buffer.asReadOnlyBuffer());
        }
        return buffers;
    }

    /**
     * Returns the index of the first sequence that the JDK's decoder refuses; -1 if it refuses
     * none.
     */
    static long byTheJdk(byte[] bytes) {
        ByteBuffer src = ByteBuffer.wrap(bytes);
        CoderResult result = UTF_8.newDecoder()
                .onMalformedInput(CodingErrorAction.REPORT)
                .decode(src, CharBuffer.allocate(bytes.length + 1), true);
        return result.isError() ? src.position() : -1;
    }

    static void assertDecoded(byte[] bytes) {
        String expected = new String(bytes, UTF_8);
        long invalid = byTheJdk(bytes);
        for (ByteBuffer buffer : buffers(bytes)) {
            assertEquals(invalid, Utf8.indexOfInvalid(buffer));
            assertEquals(invalid < 0, Utf8.isValid(buffer));
            assertEquals(2, buffer.position());
            if (invalid < 0) {
                assertSame(expected, Utf8.decode(buffer));
                assertEquals(buffer.limit(), buffer.position());
            } else {
                assertEquals(invalid, assertThrows(MalformedTextException.class,
                        () -> Utf8.decode(buffer)).index());
                assertEquals(2, buffer.position());
            }
            buffer.position(2);
            assertSame(expected, Utf8.decode(buffer, Malformed.REPLACE));
        }
    }

    /**
     * Asserts that two texts are equal. The message of a failure is readable for long texts too.
     */
    private static void assertSame(String expected, String found) {
        int at = 0;
        while (at < Math.min(expected.length(), found.length())
                && expected.charAt(at) == found.charAt(at)) {
            at++;
        }
        assertTrue(expected.equals(found),
                "they differ from unit " + at + " of " + expected.length() + " on");
    }

    @Test
    void everyTextIsReadAsNewStringDoesFromEveryBuffer() {
        for (String text : Texts.all()) {
            assertDecoded(text.getBytes(UTF_8));
        }
    }

    @Test
    void eachInvalidSequenceIsReportedWithItsIndexAndReplacedAsNewStringDoes() {
        Random random = new Random(3);
        for (String hex : INVALID) {
            byte[] invalid = HexFormat.of().parseHex(hex);
            for (Texts.Script script : Texts.Script.values()) {
                for (int n : new int[] {0, 1, 8, 20, 100, 700}) {
                    byte[] before = script.text(n, random).getBytes(UTF_8);
                    assertDecoded(joined(before, invalid, new byte[0]));
                    assertDecoded(joined(before, invalid, before));
                }
            }
        }
    }

    @Test
    void sequencesOverTheBordersOfChunksAreReadWhole() {
        for (String hex
                : new String[] {"C3A9", "E4B8AD", "F09F9880", "F09F98", "8080808080", "EDA080",
                "F0908080BFBF"}) {
            byte[] middle = HexFormat.of().parseHex(hex);
            for (int n = 8192 - 8; n <= 8192; n++) {
                assertDecoded(joined("a".repeat(n).getBytes(UTF_8), middle,
                        "é".repeat(5000).getBytes(UTF_8)));
                assertDecoded(joined(("漢" + "a".repeat(n - 3)).getBytes(UTF_8), middle,
                        "漢".repeat(4000).getBytes(UTF_8)));
            }
        }
    }

    @Test
    void theReplacementCharacterItselfIsValid() {
        for (int n : new int[] {1, 5, 6, 100, 3000}) {
            assertDecoded("\uFFFD".repeat(n).getBytes(UTF_8));
        }
    }

    @Test
    void theMessageNamesTheByteAndTheRemedy() {
        MalformedTextException e = assertThrows(
                MalformedTextException.class,
                () -> Utf8.decode(ByteBuffer.wrap(new byte[] {'a', 'b', (byte) 0xFF})));
        assertEquals(
                "the bytes are not UTF-8 from byte 2 on\nMalformed.REPLACE reads U+FFFD for them.",
                e.getMessage());
        assertEquals(2, e.index());
    }

    @Test
    void nothingIsTheEmptyTextAndValid() {
        for (ByteBuffer buffer : buffers(new byte[0])) {
            assertEquals("", Utf8.decode(buffer));
            assertTrue(Utf8.isValid(buffer));
        }
        assertFalse(Utf8.isValid(ByteBuffer.wrap(new byte[] {(byte) 0x80})));
    }

    static byte[] joined(byte[]... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.writeBytes(part);
        }
        return all.toByteArray();
    }
}
