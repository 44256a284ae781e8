# A large program in Rust, Gleaner itself, with twins: it rewrites and proves programs just the
# same.
#: program GLEANER
#: quick
for program in /usr/bin/{sort,bash,ld.bfd}; do
    [ -e "$program" ] || continue
    for mode in identity poison; do
        "$GLEANER" twin --$mode -o rewritten "$program" | grep -v -e '^time'; echo "status ${PIPESTATUS[0]}"; sha256sum <rewritten
    done
    "$GLEANER" twin --identity -q -o rewritten "$program" >/dev/null; "$GLEANER" proof "$program" rewritten
done
head -c 20000 /usr/bin/bash >short; "$GLEANER" twin --identity -o no short 2>&1; "$GLEANER" proof /usr/bin/bash short 2>&1; echo "status $?"
"$GLEANER" show nothing 2>&1; "$GLEANER" twin --help; "$GLEANER" nonsense 2>&1; echo '{"kind": "machine"}' | "$GLEANER" show - 2>&1; "$GLEANER" measure --cpu 9999 2>&1; echo "status $?"
