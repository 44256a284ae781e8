# expect: load=rb_|vm_ line=oldest data=script:objects level=DRAM|L3 memory=yes
# A list of objects in no order, asked for a field of theirs.
class Guest
  attr_reader :age

  def initialize(age)
    @age = age
  end
end

def oldest(guests)
  most = 0
  guests.each do |guest|
    age = guest.age # HOT
    most = age if age > most
  end
  most
end

guests = Array.new(1_200_000) { |number| Guest.new(number % 90) }
guests.shuffle!(random: Random.new(8))
most = 0
ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 6
most += oldest(guests) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
puts most > 0
