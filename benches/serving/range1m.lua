-- 1 MiB from byte 10 Mi on.
dofile("report.lua")
wrk.headers["Range"] = "bytes=10485760-11534335"
