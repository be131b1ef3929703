-- What wrk measured, as one line of JSON: requests, seconds, bytes, errors, and latency in milliseconds.
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\n{"n_requests": %d, "seconds": %.6f, "n_bytes": %d, "p50_ms": %.3f, "p99_ms": %.3f, "most_ms": %.3f, "n_errors": %d, "n_refused": %d}\n',
    summary.requests, summary.duration / 1e6, summary.bytes,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
    errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
