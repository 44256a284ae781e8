# memcached with several threads under several clients: sets, gets, counters, compare-and-swap,
# large items, expiry.
#: program /usr/bin/memcached
#: needs memcached memcached
#: quick
memcached -u root -s "$HOME/socket" -t 4 -m 64 -o slab_reassign,slab_automove & server=$!
for _ in $(seq 100); do [ -S socket ] && break; sleep 0.05; done
cat >client.pl <<'PERL'
use IO::Socket::UNIX; my $me = shift; my $s = IO::Socket::UNIX->new("$ENV{HOME}/socket") or die $!; $s->autoflush(1); $SIG{ALRM} = sub { die "no answer" }; alarm 60;
sub line { my $l = <$s>; $l =~ s/\r\n//; $l } my %seen; my $sum = 0;
for my $i (1 .. 3000) { my $v = "$me-$i-" . 'x' x ($i * 37 % 3000); print $s "set k$me-$i $i 0 " . length($v) . "\r\n$v\r\n"; $seen{line()}++ }
for my $i (1 .. 3000) { print $s "get k$me-$i\r\n"; while ((my $l = line()) ne 'END') { if ($l =~ /^VALUE \S+ (\d+) (\d+)/) { read $s, my $b, $2 + 2; $sum += $1 if substr($b, 0, -2) eq "$me-$i-" . 'x' x ($i * 37 % 3000) } } }
print $s "set n$me 0 0 1\r\n5\r\n"; $seen{line()}++; for (1 .. 500) { print $s "incr n$me $_\r\n"; $last = line() } print $s "gets n$me\r\n"; my ($v) = line() =~ /(\d+)$/; line(); line(); print $s "cas n$me 0 0 3 $v\r\nabc\r\n"; $seen{'cas ' . line()}++; print $s "cas n$me 0 0 3 $v\r\nabc\r\n"; $seen{'cas ' . line()}++;
for my $c ("append k$me-1 0 0 3\r\nend", "prepend k$me-1 0 0 2\r\n>>", "add k$me-1 0 0 1\r\nx", "replace none$me 0 0 1\r\nx", "delete k$me-2", "delete k$me-2", "touch k$me-3 100", "incr k$me-3 1", "nonsense", "set big$me 0 0 900000\r\n" . 'y' x 900000, "get " . 'k' x 300, "mg k$me-3 s v", "ms m$me S3\r\nabc", "mn") { print $s "$c\r\n"; $seen{line()}++; if ($c =~ /^mg/) { line() } }
print "$me sum $sum last $last\n", map { "$me $_ $seen{$_}\n" } sort keys %seen; print $s "quit\r\n";
PERL
for i in 1 2 3 4; do perl client.pl $i >out.$i 2>&1 & clients+=($!); done; wait "${clients[@]}"; cat out.*
perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new("$ENV{HOME}/socket"); print $s "stats\r\nstats settings\r\nflush_all\r\nget k1-1\r\nstats slabs\r\nquit\r\n"; while (<$s>) { print if /^STAT (curr_items|cmd_set|cmd_touch|get_hits|incr_hits|cas_hits|cas_badval|threads|num_threads) |^END|^OK/ }'
kill $server; wait $server; echo "stopped $?"
