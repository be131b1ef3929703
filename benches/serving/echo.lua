-- A POST of a million bytes.
dofile("report.lua")
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.body = string.rep("0123456789abcdef", 62500)
