package io.github.onecopy;

import io.github.onecopy.internal.StringArrays;
import io.github.onecopy.internal.Native;

/**
 * The implementation in use: the native library in the jar, or pure Java.
 *
 * <p>Both return the same bytes and the same errors. The native one needs JDK 22 or newer and Linux
 * on x86-64, and is turned off by the system property {@code onecopy.native=off}, read once.
 *
 * <p>With {@code --add-opens java.base/java.lang=ALL-UNNAMED} strings are read from the JVM's own
 * arrays, which saves a copy into a scratch array and makes ASCII as fast as {@link
 * String#getBytes}. This relies on the internals of {@code String}: they are checked once, and if
 * they are not as expected, the option has no effect.
 */
public final class Onecopy {
    private Onecopy() {}

    /**
     * Returns true if the native library is loaded and in use. The first call loads it.
     *
     * @return true if it is
     */
    public static boolean isNative() {
        return Native.available();
    }

    /**
     * The implementation in use, with the reason, for a log line or a bug report.
     *
     * @return a line such as {@code native: onecopy 0.1.0, linux-x86-64} or {@code pure Java: JDK
     * 17 has no java.lang.foreign}, with {@code , strings opened} at its end if they are
     */
    public static String nativeStatus() {
        return Native.status() + (StringArrays.OPEN ? ", strings opened" : "");
    }
}
