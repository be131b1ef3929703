package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import org.junit.jupiter.api.Test;

final class StatusTest {
    @Test
    void theImplementationInUseIsReported() {
        int feature = Runtime.version().feature();
        boolean linux = System.getProperty("os.name").equals("Linux")
                && System.getProperty("os.arch").equals("amd64");
        assertEquals(feature >= 22 && linux, Onecopy.isNative(), Onecopy.nativeStatus());
        if (Onecopy.isNative()) {
            String opened = Boolean.getBoolean("onecopy.opened") ? ", strings opened" : "";
            assertEquals("native: onecopy 0.1.0, linux-x86-64" + opened, Onecopy.nativeStatus());
        }
        if (feature < 22) {
            assertEquals(
                    "pure Java: JDK " + feature
                    + " has no java.lang.foreign, which is final since 22",
                    Onecopy.nativeStatus());
            assertFalse(Onecopy.isNative());
        }
    }
}
