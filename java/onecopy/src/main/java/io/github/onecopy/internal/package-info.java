/** Implementation of onecopy; its classes may change at any time. */
package io.github.onecopy.internal;
