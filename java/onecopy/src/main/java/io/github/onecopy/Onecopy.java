package io.github.onecopy;

import io.github.onecopy.internal.Held;
import io.github.onecopy.internal.Native;

/**
 * Which path serves: the native library that travels in the jar, or pure Java.
 *
 * <p>Both give the same bytes and the same errors. The native one needs JDK 22 or newer and Linux on x86-64, and is turned off
 * by the system property {@code onecopy.native=off}, read once.
 *
 * <p>With {@code --add-opens java.base/java.lang=ALL-UNNAMED} strings are read where the JVM holds them, which saves a copy into a scratch
 * and makes ASCII as fast as {@link String#getBytes}. That leans on the insides of {@code String}: they are looked at once, and where
 * they are not as expected, the option changes nothing.
 */
public final class Onecopy {
    private Onecopy() {}

    /**
     * Whether the native library is loaded and serves. The first call loads it.
     *
     * @return true where it does
     */
    public static boolean isNative() {
        return Native.available();
    }

    /**
     * Which path serves, and why, for a log line or a bug report.
     *
     * @return a line such as {@code native: onecopy 0.1.0, linux-x86-64} or {@code pure Java: JDK 17 has no java.lang.foreign}; with
     *     {@code , strings opened} at its end where they are
     */
    public static String nativeStatus() {
        return Native.status() + (Held.OPEN ? ", strings opened" : "");
    }
}
