package io.github.onecopy;

import io.github.onecopy.internal.StringArrays;
import io.github.onecopy.internal.Native;

/**
 * Reports which implementation is in use: the native library in the jar, or pure Java.
 *
 * <p>Both have the same results and the same errors. The native library requires JDK 22 or newer,
 * and Linux on x86-64. The system property {@code onecopy.native} with the value {@code off}
 * disables it; the property is read once.
 *
 * <p>With the JVM option {@code --add-opens java.base/java.lang=ALL-UNNAMED}, the characters of a
 * string are read directly from the array inside the string. Otherwise they are first copied to a
 * scratch array. With the option, encoding ASCII takes as long as with {@code getBytes(UTF_8)}. The
 * layout of the array is tested once; if it is unknown, the option has no effect.
 */
public final class Onecopy {
    private Onecopy() {}

    /**
     * Returns true if the native library is in use. The library is loaded at the first use of this
     * method, or of a method that needs it.
     *
     * @return true if the native library is in use
     */
    public static boolean isNative() {
        return Native.available();
    }

    /**
     * Describes the implementation in use in one line, for a log or a bug report.
     *
     * @return a text such as {@code native: onecopy 0.1.0, linux-x86-64}, or {@code pure Java: }
     * and the reason why the library is not in use. It ends with {@code , strings opened} if
     * the characters are read directly from the arrays of strings
     */
    public static String nativeStatus() {
        return Native.status() + (StringArrays.OPEN ? ", strings opened" : "");
    }
}
