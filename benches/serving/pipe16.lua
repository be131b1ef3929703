-- Sixteen requests in one write.
dofile("report.lua")
function init(args)
  local one = wrk.format("GET", "/hello")
  sixteen = string.rep(one, 16)
end
function request()
  return sixteen
end
