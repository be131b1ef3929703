package io.github.onecopy.internal;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Locale;

/** The native library, copied from the jar to a file that other users cannot change. */
final class Library implements AutoCloseable {
    /**
     * Reports why the native library cannot be used; {@code Onecopy.nativeStatus()} returns the
     * message.
     */
    static final class Absent extends Exception {
        private static final long serialVersionUID = 1L;

        Absent(String message) {
            super(message);
        }
    }

    private static final String NAME = "libonecopy.so";

    private final Path directory;

    private Library(Path directory) {
        this.directory = directory;
    }

    /**
     * Returns the name of the current platform, such as {@code linux-x86-64}. The jar has the
     * library for a platform in the directory of this name.
     */
    static String platform() {
        String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        return system + "-" + (processor.equals("amd64") || processor.equals("x86_64")
                ? "x86-64"
                : processor);
    }

    /**
     * Copies the library from the jar to a directory that only the current user can enter, and
     * compares the SHA-256 of the copy with the one in the jar.
     *
     * @throws Absent if the jar has no library for this platform, the checksum differs, or the file
     * cannot be written
     */
    static Library extract() throws Absent {
        String resource = "/io/github/onecopy/native/" + platform() + "/" + NAME;
        byte[] content = read(resource);
        byte[] listed = read(resource + ".sha256");
        if (content == null || listed == null) {
            throw new Absent("the jar has no library for " + platform());
        }
        Library library;
        try {
            library = new Library(
                    Files.createTempDirectory(
                            "onecopy-",
                            PosixFilePermissions.asFileAttribute(
                            PosixFilePermissions.fromString("rwx------"))));
        } catch (IOException | UnsupportedOperationException e) {
            throw new Absent("no private directory for the library could be made: " + e);
        }
        try {
            Files.write(library.file(), content);
            String found = sha256(Files.readAllBytes(library.file()));
            String wanted = new String(listed, StandardCharsets.US_ASCII).strip();
            if (!found.equals(wanted)) {
                throw new Absent("the library's SHA-256 is " + found + ", not " + wanted);
            }
            return library;
        } catch (IOException e) {
            library.close();
            throw new Absent("the library could not be written: " + e);
        } catch (Absent e) {
            library.close();
            throw e;
        }
    }

    /** Returns the path of the file, which may be deleted after it is loaded. */
    Path file() {
        return directory.resolve(NAME);
    }

    /** Deletes the file and its directory. */
    @Override
    public void close() {
        try {
            Files.deleteIfExists(file());
            Files.deleteIfExists(directory);
        } catch (IOException e) {
            // If the deletion at the exit of the JVM fails too, a file remains in the directory of
            // temporary files.
            directory.toFile().deleteOnExit();
        }
    }

    private static byte[] read(String resource) throws Absent {
        try (InputStream in = Library.class.getResourceAsStream(resource)) {
            return in == null ? null : in.readAllBytes();
        } catch (IOException e) {
            throw new Absent("the library could not be read from the jar: " + e);
        }
    }

    private static String sha256(byte[] content) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }
}
