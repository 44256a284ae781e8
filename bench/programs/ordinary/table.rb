table = {}
1_000_000.times { |i| table[i * 7919 % 15_000_017] = i }
sum = 0
2_000_000.times { |i| sum += table.fetch(i * 104_729 % 15_000_017, 0) }
puts sum
