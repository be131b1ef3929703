package io.github.onecopy;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

final class Utf8Test {
    @Test
    void whatIsEncodedIsDecodedAgain() {
        ByteBuffer buffer = ByteBuffer.allocate(100);
        int n = Utf8.encode("aé漢😀", buffer);
        assertEquals(10, n);
        assertEquals("aé漢😀", new String(buffer.array(), 0, n, UTF_8));
        assertEquals("aé漢😀", Utf8.decode(buffer.flip()));
    }
}
