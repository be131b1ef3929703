/** Not for users: may change at any time. */
package io.github.onecopy.internal;
