# Goes round objects that refer to one another, in random order.
class Node
  attr_accessor :next, :value

  def initialize(value)
    @value = value
    @next = nil
  end
end

def follow(node, steps)
  while steps > 0
    node = node.next # waits
    steps -= 1
  end
  node
end

nodes = Array.new(1_000_000) { |number| Node.new(number) }
nodes.shuffle!(random: Random.new(2))
nodes.each_index { |number| nodes[number].next = nodes[number - 1] }
node = nodes[0]
150.times { node = follow(node, 50_000) }
puts node.value
