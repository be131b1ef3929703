package io.github.onecopy;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * A program that tests run in another JVM. It prints the implementation in use, and {@code right}
 * if that implementation encodes and decodes correctly.
 */
final class Child {
    private Child() {}

    public static void main(String[] args) {
        String text = "aé漢😀".repeat(1000);
        ByteBuffer buffer = ByteBuffer.allocate(10_000);
        boolean right = Utf8.encode(text, buffer) == 10_000
                && Arrays.equals(text.getBytes(UTF_8), buffer.array())
                && Utf8.decode(buffer.flip()).equals(text);
        System.out.println(Onecopy.nativeStatus());
        System.out.println(right ? "right" : "wrong");
    }
}
