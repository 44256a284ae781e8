my %counts;
open my $in, '<', 'data' or die;
while (<$in>) { $counts{$_}++ for split }
$counts{$_ * 7919 % 15000017} = $_ for 1 .. 500000;
my $sum = 0;
$sum += $counts{$_ * 104729 % 15000017} // 0 for 1 .. 1000000;
print scalar(keys %counts), " $sum\n";
