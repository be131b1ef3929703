package io.github.onecopy;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.Size;

final class Utf8Properties {
    /**
     * Generates texts of random UTF-16 units, of which many are surrogates. They are preceded and
     * followed by spaces, so that each path of the implementation is taken.
     */
    @Provide
    Arbitrary<String> units() {
        Arbitrary<Character> unit = Arbitraries.oneOf(
                Arbitraries.chars().range((char) 0, (char) 0x7F),
                Arbitraries.chars().range((char) 0x80, (char) 0x7FF),
                Arbitraries.chars().range('\u0800', '\uFFFF'),
                Arbitraries.chars().range('\uD800', '\uDFFF'));
        Arbitrary<String> mixed = Arbitraries.strings().withChars(' ').ofMaxLength(300)
                .flatMap(run -> unit.list().ofMaxSize(60).map(list -> {
                    StringBuilder text = new StringBuilder(run);
                    list.forEach(text::append);
                    return text.append(run).toString();
                }));
        return mixed;
    }

    @Property(tries = 3000)
    void encodingWithReplaceIsGetBytes(@ForAll("units") String text, @ForAll boolean direct) {
        byte[] expected = text.getBytes(UTF_8);
        ByteBuffer buffer = direct
                ? ByteBuffer.allocateDirect(expected.length)
                : ByteBuffer.allocate(expected.length);
        assertEquals(expected.length, Utf8.encode(text, buffer, Malformed.REPLACE));
        byte[] written = new byte[expected.length];
        buffer.get(0, written);
        assertArrayEquals(expected, written);
        assertArrayEquals(expected, Utf8.encodeToBytes(text, Malformed.REPLACE));
        assertEquals(expected.length, Utf8.encodedLength(text));
    }

    @Property(tries = 3000)
    void encodingThrowsAtTheFirstLoneSurrogateAndNowhereElse(@ForAll("units") String text) {
        int lone = Texts.firstLoneSurrogate(text);
        if (lone < 0) {
            assertArrayEquals(text.getBytes(UTF_8), Utf8.encodeToBytes(text));
        } else {
            assertEquals(lone, assertThrows(MalformedTextException.class,
                    () -> Utf8.encodeToBytes(text)).index());
        }
    }

    @Property(tries = 2000)
    void anyBytesAreReadAsNewStringDoesAndRefusedAsTheJdkDoes(
            @ForAll @Size(max = 200) byte[] bytes) {
        DecodeTest.assertDecoded(bytes);
    }

    @Property(tries = 2000)
    void corruptedTextIsReadAsNewStringDoesAndRefusedAsTheJdkDoes(
            @ForAll Texts.Script script, @ForAll long seed) {
        Random random = new Random(seed);
        byte[] bytes = script.text(random.nextInt(400), random).getBytes(UTF_8);
        for (int i = random.nextInt(3); i >= 0 && bytes.length > 0; i--) {
            bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
        }
        DecodeTest.assertDecoded(Arrays.copyOf(bytes,
                bytes.length - random.nextInt(Math.min(4, bytes.length + 1))));
    }
}
