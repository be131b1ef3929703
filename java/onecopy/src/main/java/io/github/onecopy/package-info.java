/**
 * UTF-8 and BSON straight into the destination: a buffer or memory segment of the caller, without
 * an intermediate array.
 *
 * {@link io.github.onecopy.Utf8} encodes and decodes text, {@link io.github.onecopy.Onecopy}
 * reports which implementation is in use.
 */
package io.github.onecopy;
