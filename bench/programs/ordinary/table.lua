local t = {}
for i = 1, 3000000 do t[i * 7919 % 15000017] = i end
local sum = 0
for i = 1, 10000000 do sum = sum + (t[i * 104729 % 15000017] or 0) end
print(string.format("%.0f", sum))
