# pocketsphinx decodes spoken words to the same words, with the same scores.
#: program /usr/bin/pocketsphinx_batch
#: program $(ls /usr/lib/x86_64-linux-gnu/libpocketsphinx.so.3 /usr/lib/x86_64-linux-gnu/libsphinxbase.so.3)
#: quick
#: needs espeak-ng espeak-ng
#: needs /usr/bin/pocketsphinx_batch pocketsphinx
#: needs /usr/share/pocketsphinx/model/en-us/en-us/mdef pocketsphinx-en-us
n=0; for text in 'go forward ten meters' 'the weather is very good today' 'one two three four five six seven' 'hello world'; do
    n=$((n + 1)); espeak-ng -v en-us -s 130 -w raw.wav "$text"
    # 22050 Hz to 16000 Hz, by the nearest sample: the same noise in all runs is no harm
    perl -e 'binmode STDIN; binmode STDOUT; local $/; my @s = unpack "s<*", substr <STDIN>, 44; print pack "s<*", map { $s[$_ * 22050 / 16000] } 0 .. $#s * 16000 / 22050' <raw.wav >u$n.raw; echo u$n >>ids
done
pocketsphinx_batch -hmm /usr/share/pocketsphinx/model/en-us/en-us -lm /usr/share/pocketsphinx/model/en-us/en-us.lm.bin -dict /usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict -adcin yes -cepdir . -cepext .raw -ctl ids -hyp words -hypseg segments -logfn log; echo "status $?"; cat words segments
