# perl: regular expressions, sorting, closures, formats, pack, Unicode, big numbers, deparsing and
# documents of its own.
#: program /usr/bin/perl
#: needs /usr/share/perl/5.36/Pod/Text.pm perl-modules-5.36
#: quick
cat >work.pl <<'PERL'
use strict; use warnings; use utf8; use List::Util qw(reduce sum shuffle first); use Data::Dumper; use POSIX qw(floor strftime fmod);
use Math::BigInt; use Math::BigFloat; use Encode; use Digest::SHA qw(sha256_hex); use MIME::Base64; use Storable qw(freeze thaw dclone); use Time::Local;
binmode STDOUT, ':utf8'; $Data::Dumper::Sortkeys = 1; $Data::Dumper::Indent = 1;
open my $in, '<', '/usr/share/common-licenses/GPL-3' or die; my $text = do { local $/; <$in> };
my %n; $n{lc $1}++ while $text =~ /\b(\p{L}{4,})\b/g; my @top = (sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n)[0 .. 30]; print "$_ $n{$_}\n" for @top;
print join(',', map { sprintf '%s:%d', $_, length } grep { /^(?=.*e)(?!.*ing)(\w)\w*\1$/ } sort keys %n), "\n";
my @q; sub queens { my ($k, @p) = @_; if ($k == 8) { push @q, "@p"; return } C: for my $c (0 .. 7) { for my $i (0 .. $#p) { next C if $p[$i] == $c || abs($p[$i] - $c) == $k - $i } queens($k + 1, @p, $c) } } queens(0); print scalar(@q), " $q[0] $q[-1]\n";
print Dumper(dclone({ a => [1, { b => undef }], c => \"x", d => sub { 1 } ? 'code' : '' })), sha256_hex(freeze([1 .. 1000])) ? "frozen\n" : '';
my $big = Math::BigInt->new(2)->bpow(521)->bsub(1); print "$big ", $big->copy->bmodpow(12345, 1000000007), "\n", Math::BigFloat->bpi(120), "\n";
print unpack('H*', pack('w/a n N v V q> d f< U C0 A5 x2 Z*', 'abc', 1, 2, 3, 4, -5, 3.5, 1.25, 0x263a, 'hi', 'end')), "\n";
print ucfirst(lc 'ÉCOLE STRASSE ǅ'), ' ', fc('Straße') eq fc('STRASSE') ? 'same' : 'other', ' ', scalar reverse('añb'), ' ', join('|', '日本語 テキスト' =~ /\p{Han}+|\p{Katakana}+/g), "\n" if eval 'use feature "fc"; 1' ; use feature qw(fc say state);
(my $t = 'aaa bbb') =~ s/(\w+) (\w+)/$2 . uc $1/e; say $t; (my $u = $text) =~ tr/a-zA-Z//cd; say sha256_hex($u); say join ' ', map { s/^\s+|\s+$//gr } (' a ', ' b'); 
my $re = qr/(?<par>\((?:[^()]++|(?&par))*\))/; say $1 while '(a(b)(c(d)))x(e)' =~ /$re/g; say join '|', split /(?<=,)|\s+/, 'a,b c,d  e'; say "ok" unless ('a' x 28) =~ /^(a+)+$(?!)/ && 0;
my @s = sort { $a <=> $b } map { ($_ * 7919) % 100003 } 1 .. 50000; say "$s[0] $s[25000] $s[-1] ", sum(@s); local $; = '-'; my %m; $m{$_ % 7, $_ % 5} .= $_ for 1 .. 60; say join ' ', map { "$_=$m{$_}" } sort keys %m;
sub counter { my $i = shift; return { up => sub { ++$i }, get => sub { $i } } } my @c = map counter($_), 1 .. 3; $_->{up}->() for @c, @c; say join ',', map $_->{get}->(), @c;
package Animal { sub new { my ($c, %a) = @_; bless {%a}, $c } sub speak { my $s = shift; sprintf '%s says %s', $s->{name}, $s->sound } use overload '""' => sub { $_[0]->speak }, '<=>' => sub { $_[0]{name} cmp $_[1]{name} }, '+' => sub { 'sum' }; sub DESTROY { print "gone $_[0]{name}\n" } sub AUTOLOAD { our $AUTOLOAD; "auto $AUTOLOAD" } } package Dog { our @ISA = 'Animal'; sub sound { 'woof' } }
{ my $d = Dog->new(name => 'Rex'); say "$d ", $d->unknown, ' ', $d + 1; } eval { die { code => 42 } }; say $@->{code}; eval { my $x = 1 / ($text eq '') }; print $@; local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; 1 while 1 }; print $@; local $SIG{__WARN__} = sub { print "warned: $_[0]" }; my $undef; my $z = "a" . $undef; 
format STDOUT =
@<<<<<<< @>>>>>> @##.## ^<<<<<<<<<~~
$main::x, $main::y, $main::z, $main::w
.
our ($x, $y, $z2, $w) = ('left', 'right', 3.14159, 'some longer text to break'); { no strict 'vars'; $main::z = 2.5; write; } say sprintf '%vd %s %e %g %#x %b %+.3f %s', '1.22.333', 1e21, 12345.678, 1e-5, 255, 10, 2.5, 0.1 + 0.2; say strftime('%F %T %j', gmtime 1e9), ' ', timegm(0, 0, 0, 29, 1, 2024); say for grep defined, (sort { $b <=> $a } 3, 10, 2)[0, 1]; my $pid = fork // die; if (!$pid) { exec 'echo', 'child' } waitpid $pid, 0; say $? >> 8; open my $p, '-|', 'seq 5' or die; say join '+', map { chomp; $_ } <$p>; say scalar localtime 0; printf "%s\n", join ',', map { oct } qw(0x1f 0b101 0o17 755); say join ' ', map { chr ord($_) ^ 1 } split //, 'bcd'; my $str = 'x' x 100_000; substr($str, 50_000, 10) = 'REPLACED'; say length $str, index($str, 'REP'); say encode_base64(encode('UTF-16LE', 'é☺'), ''), lc decode('iso-8859-15', "\xa4\xc0"); say join ',', (1 .. 10)[grep { $_ & 1 } 0 .. 9]; say wantarray() // 'undef'; say "done";
PERL
perl work.pl; echo "status $?"
for pod in /usr/share/perl/5.36/pod/perl*.pod /usr/share/perl/5.36/{CPAN,Encode,Test/More,Getopt/Long,Math/BigInt}.p{m,od}; do [ -e "$pod" ] && perl -MPod::Text -MPod::Man -e 'for my $f (qw(Pod::Text Pod::Man)) { my $o; my $p = $f->new; $p->output_string(\$o); $p->parse_file(shift // $ARGV[0]); $o =~ s/^\.(TH|\\").*//mg; print unpack("%32C*", $o), " ", length $o, " "; unshift @ARGV, $ARGV[-1] } print "\n"' "$pod" "$pod"; done
for module in /usr/share/perl/5.36/{CPAN,Text/Balanced,Getopt/Long,Pod/Simple,Test/Builder,perl5db,Math/BigFloat,TAP/Parser}.p[lm]; do perl -MO=Deparse "$module" 2>&1 | cksum; done
perl -MTest::More -e 'plan tests => 3; ok 1; is_deeply [1, { a => 2 }], [1, { a => 2 }]; is 1, 2' 2>&1
perl -MBenchmark -MUnicode::UCD=charinfo -e 'print charinfo(0x1F600)->{name}, "\n"; print join(",", map { sprintf "%x", ord } split //, ucfirst "\x{1c6}\x{df}"), "\n"'
perl -MUnicode::Normalize -MUnicode::Collate -CS -e 'my @w = map { NFC $_ } "cote", "cot\x{e9}", "c\x{f4}te", "c\x{f4}t\x{e9}", "Zebra", "apfel", "\x{c4}pfel"; print join(" ", Unicode::Collate->new->sort(@w)), "\n"'
