# Looks up the city of each order in a table of a million people.
def join(orders, people)
  found = 0
  orders.each do |order|
    found += people[order].size # waits
  end
  found
end

people = {}
1_000_000.times { |number| people[number * 31] = "city" }
random = Random.new(4)
orders = Array.new(500_000) { random.rand(1_000_000) * 31 }
found = 0
12.times { found += join(orders, people) }
puts found
