-- Twenty request headers; two of them hold Latin-1.
dofile("report.lua")
wrk.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
wrk.headers["Accept"] = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
wrk.headers["Accept-Language"] = "de,en-US;q=0.7,en;q=0.3"
wrk.headers["Accept-Encoding"] = "gzip, deflate, br, zstd"
wrk.headers["Cookie"] = "session=0123456789abcdef0123456789abcdef; theme=dark; consent=yes"
wrk.headers["X-City"] = "Besan\231on, caf\233"
wrk.headers["X-Street"] = "M\252hlenstra\223e 3"
for k = 1, 12 do
  wrk.headers["X-Request-" .. k] = "value number " .. k .. " of the request"
end
