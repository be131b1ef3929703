/**
 * UTF-8 and BSON straight into the destination: a buffer or memory segment that the caller gives, with no array in between.
 *
 * <p>{@link io.github.onecopy.Utf8} encodes and decodes text, {@link io.github.onecopy.Onecopy} tells which path serves.
 */
package io.github.onecopy;
