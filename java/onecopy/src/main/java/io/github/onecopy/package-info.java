/**
 * UTF-8 and BSON, written directly into a buffer or a memory segment of the caller.
 *
 * {@link io.github.onecopy.Utf8} encodes and decodes text. {@link io.github.onecopy.BsonWriter} and
 * {@link io.github.onecopy.BsonReader} write and read BSON; {@link
 * io.github.onecopy.NativeBsonOutput} is an output for the codecs of mongo-java-driver. {@link
 * io.github.onecopy.Onecopy} reports which implementation is in use.
 */
package io.github.onecopy;
