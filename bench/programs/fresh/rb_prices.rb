# expect: load=rb_|st_ line=cost data=script:table.of.a.hash level=DRAM|L3 memory=yes
# A hash of two million numbers, looked up in no order.
def cost(prices, basket)
  sum = 0
  at = 0
  while at < basket.size
    article = basket[at]
    sum += prices[article] # HOT
    at += 1
  end
  sum
end

count = 2_000_000
prices = {}
count.times { |article| prices[article * 13] = article & 255 }
basket = Array.new(300_000) { |at| at * 2_654_435_761 % count * 13 }
sum = 0
ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 6
sum += cost(prices, basket) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
puts sum > 0
