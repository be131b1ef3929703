package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests the loading of the native library. Each test runs a separate JVM, because a JVM loads a
 * library only once.
 */
final class NativeLibraryTest {
    private static final String ENABLED = "--enable-native-access=ALL-UNNAMED";
    private static final String OPENED = "--add-opens";
    private static final String OF = "java.base/java.lang=ALL-UNNAMED";
    private static final String LIBRARY = "io/github/onecopy/native/linux-x86-64/libonecopy.so";

    @TempDir
    private Path temporary;

    private record Ended(int code, List<String> out, String err) {}

    @BeforeEach
    void thePlatformIsTheOneThatTheJarHasALibraryFor() {
        assumeTrue(
                System.getProperty("os.name").equals("Linux")
                && System.getProperty("os.arch").equals("amd64"),
                "the native library is there for Linux on x86-64");
    }

    private static Path locationOf(Class<?> type) throws URISyntaxException {
        return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    private Ended run(List<String> options) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(options);
        Path out = temporary.resolve("out");
        Path err = temporary.resolve("err");
        Process process = new ProcessBuilder(command)
                .redirectOutput(out.toFile())
                .redirectError(err.toFile())
                .start();
        int code = process.waitFor();
        return new Ended(code, Files.readAllLines(out), Files.readString(err));
    }

    /** Runs {@link Child} in another JVM. {@code first} is a class path that precedes the jar. */
    private Ended child(String first, String... options) throws Exception {
        String path = first + locationOf(Utf8.class) + ":" + locationOf(Child.class);
        List<String> all = new ArrayList<>(List.of(options));
        all.addAll(List.of("-cp", path, Child.class.getName()));
        return run(all);
    }

    private void assertPure(String reason, Ended ended) {
        assertEquals(0, ended.code, ended.err);
        assertTrue(ended.out.get(0).startsWith("pure Java: " + reason), ended.out.get(0));
        assertEquals("right", ended.out.get(1));
    }

    private void assertNative(Ended ended) {
        assertEquals(0, ended.code, ended.err);
        assertEquals(List.of("native: onecopy 0.1.0, linux-x86-64", "right"), ended.out);
    }

    @Test
    void withAccessPermittedItIsLoadedWithoutAWordAndItsFileIsGone() throws Exception {
        Path files = Files.createDirectory(temporary.resolve("files"));
        Ended ended = child("", ENABLED, "-Djava.io.tmpdir=" + files);
        assertNative(ended);
        assertEquals("", ended.err);
        try (Stream<Path> left = Files.list(files)) {
            assertEquals(List.of(), left.toList());
        }
    }

    @Test
    void withoutTheOptionItIsLoadedAndTheJvmWarns() throws Exception {
        Ended ended = child("");
        assertNative(ended);
        assertTrue(ended.err.contains(ENABLED), ended.err);
    }

    @Test
    void whereAccessIsDeniedPureJavaServesAndNamesTheOption() throws Exception {
        // The option to deny access exists since JDK 24. Before, access is denied to all modules if
        // a list of others is given.
        String deny = Runtime.version().feature() >= 24
                ? "--illegal-native-access=deny"
                : "--enable-native-access=java.base";
        assertPure("native access is denied; " + ENABLED + " permits it", child("", deny));
    }

    @Test
    void theManifestOfAnExecutableJarPermitsIt() throws Exception {
        Manifest manifest = new Manifest();
        Attributes attributes = manifest.getMainAttributes();
        attributes.put(Attributes.Name.MANIFEST_VERSION, "1.0");
        attributes.put(Attributes.Name.MAIN_CLASS, Child.class.getName());
        attributes.put(
                Attributes.Name.CLASS_PATH,
                locationOf(Utf8.class).toUri() + " " + locationOf(Child.class).toUri());
        attributes.putValue("Enable-Native-Access", "ALL-UNNAMED");
        Path jar = temporary.resolve("application.jar");
        try (OutputStream file = Files.newOutputStream(jar)) {
            new JarOutputStream(file, manifest).close();
        }
        Ended ended = run(List.of("-jar", jar.toString()));
        assertNative(ended);
        assertEquals("", ended.err);
    }

    @Test
    void openedStringsAreReadWithoutAWordInAnyFormThatTheJvmHoldsThemIn() throws Exception {
        for (String form : new String[] {"-XX:+CompactStrings", "-XX:-CompactStrings"}) {
            Ended ended = child("", ENABLED, OPENED, OF, form);
            assertEquals(0, ended.code, ended.err);
            assertEquals(List.of("native: onecopy 0.1.0, linux-x86-64, strings opened", "right"),
                    ended.out);
            assertEquals("", ended.err);
            Ended pure = child("", "-Donecopy.native=off", OPENED, OF, form);
            assertEquals("right", pure.out.get(1));
        }
    }

    @Test
    void itIsTurnedOffByAProperty() throws Exception {
        Ended ended = child("", "-Donecopy.native=off");
        assertPure("the system property onecopy.native is off", ended);
        assertEquals("", ended.err);
    }

    @Test
    void forAnotherPlatformTheJarHasNone() throws Exception {
        assertPure("the jar has no library for linux-mips", child("", ENABLED, "-Dos.arch=mips"));
    }

    @Test
    void aLibraryWithAWrongChecksumIsNotLoaded() throws Exception {
        assertPure("the library's SHA-256 is ",
                child(shadow(new byte[] {1, 2, 3}, "0".repeat(64)), ENABLED));
    }

    @Test
    void aLibraryThatCannotBeLoadedIsReportedWithTheReason() throws Exception {
        byte[] content = "no library".getBytes(java.nio.charset.StandardCharsets.US_ASCII);
        assertPure("the library could not be loaded: ",
                child(shadow(content, sha256(content)), ENABLED));
    }

    @Test
    void whereNoFileCanBeMadePureJavaServes() throws Exception {
        assertPure(
                "no private directory for the library could be made: ",
                child("", ENABLED, "-Djava.io.tmpdir=" + temporary.resolve("nowhere")));
    }

    @Test
    void aLibraryThatCannotBeLoadedLeavesNoFile() throws Exception {
        Path files = Files.createDirectory(temporary.resolve("files"));
        byte[] content = {0x7F, 'E', 'L', 'F'};
        assertPure(
                "the library could not be loaded: ",
                child(shadow(content, sha256(content)), ENABLED, "-Djava.io.tmpdir=" + files));
        try (Stream<Path> left = Files.list(files)) {
            assertEquals(List.of(), left.toList());
        }
    }

    @Test
    void randomCallsPassTheChecksOfJni() throws Exception {
        String path = locationOf(Utf8.class) + ":" + locationOf(RandomCalls.class);
        for (List<String> options : List.of(
                List.of("-XX:+UseG1GC"),
                List.of("-XX:+UseParallelGC"),
                List.of("-XX:+UseG1GC", OPENED, OF),
                List.of("-XX:+UseParallelGC", OPENED, OF, "-XX:-CompactStrings"))) {
            List<String> command = new ArrayList<>(List.of(ENABLED, "-Xcheck:jni", "-Xmx128m"));
            command.addAll(options);
            command.addAll(List.of("-cp", path, RandomCalls.class.getName(), "11", "3000"));
            Ended ended = run(command);
            assertEquals(0, ended.code, ended.err + String.join("\n", ended.out));
            assertEquals(List.of("3000 rounds"), ended.out);
            assertFalse(ended.err.contains("WARNING"), ended.err);
        }
    }

    /**
     * Creates a folder with another library; returns the folder as the start of a class path, so
     * that this library is found before that of the jar.
     */
    private String shadow(byte[] content, String checksum) throws IOException {
        Path folder = temporary.resolve("shadow");
        Path library = folder.resolve(LIBRARY);
        Files.createDirectories(library.getParent());
        Files.write(library, content);
        Files.writeString(Path.of(library + ".sha256"), checksum);
        return folder + ":";
    }

    private static String sha256(byte[] content) throws NoSuchAlgorithmException {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
    }
}
