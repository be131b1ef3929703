package io.github.onecopy.bench.seed;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedStackTrace;
import jdk.jfr.consumer.RecordingFile;

/**
 * Profiles one method with the flight recorder, and prints the ten methods that were most often at
 * the top of the stack. The blog post prints the same list with hprof. Arguments: {@code post} or
 * {@code getBytes}, the length of the texts in UTF-16 units, and the number of seconds.
 */
public final class SeedProfile {
    private static final int TOP = 10;
    private static long total;

    private SeedProfile() {}

    /**
     * Prints a line for each of the ten methods: rank, share, accumulated share, samples, method
     * and line.
     */
    public static void main(String[] arguments) throws IOException {
        Function<String, byte[]> way =
                arguments[0].equals("post")
                ? SeedWays::post
                : text -> text.getBytes(StandardCharsets.UTF_8);
        String[] texts = SeedTexts.of("random", Integer.parseInt(arguments[1]));
        Duration time = Duration.ofSeconds(Integer.parseInt(arguments[2]));
        run(way, texts, time.dividedBy(4)); // Warm-up: the profile is that of compiled code.
        Path file = Files.createTempFile("onecopy", ".jfr");
        try (Recording recording = new Recording()) {
            recording.enable("jdk.ExecutionSample").withPeriod(Duration.ofMillis(10));
            recording.start();
            run(way, texts, time);
            recording.stop();
            recording.dump(file);
            print(RecordingFile.readAllEvents(file));
        } finally {
            Files.deleteIfExists(file);
        }
    }

    private static void run(Function<String, byte[]> way, String[] texts, Duration time) {
        long end = System.nanoTime() + time.toNanos();
        while (System.nanoTime() < end) {
            for (String text : texts) {
                total += way.apply(text).length;
            }
        }
    }

    private static void print(List<RecordedEvent> events) {
        Map<String, Integer> tops = new HashMap<>();
        int samples = 0;
        for (RecordedEvent event : events) {
            RecordedStackTrace trace = event.getStackTrace();
            if (!event.getEventType().getName().equals("jdk.ExecutionSample") || trace == null) {
                continue;
            }
            if (!event.getThread("sampledThread").getJavaName()
                    .equals(Thread.currentThread().getName())) {
                continue; // The recorder's own.
            }
            RecordedFrame top = trace.getFrames().get(0);
            String method = top.getMethod().getType().getName() + "." + top.getMethod().getName();
            tops.merge(method + ":" + top.getLineNumber(), 1, Integer::sum);
            samples++;
        }
        System.out.printf("%d samples (%d bytes)%n", samples, total);
        double accumulated = 0;
        int rank = 0;
        var most = Map.Entry.<String, Integer>comparingByValue().reversed();
        for (var top : tops.entrySet().stream().sorted(most).limit(TOP).toList()) {
            double share = 100.0 * top.getValue() / samples;
            accumulated += share;
            System.out.printf("%4d %5.1f%% %5.1f%% %6d  %s%n", ++rank, share, accumulated,
                    top.getValue(), top.getKey());
        }
    }
}
