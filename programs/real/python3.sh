# Parts of Python's own test suite, and its extension modules written in C.
#: program /usr/bin/python3.11
#: needs /usr/bin/python3.11 python3.11
#: needs /usr/lib/python3.11/test/test_dict.py libpython3.11-testsuite
#: quick
export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
for name in grammar dict list float complex re struct json generators coroutines sort zlib hashlib ctypes array heapq \
    mmap pyexpat descr super scope marshal random ordered_dict deque cmath format fstring unpack codecs sys_settrace \
    syntax csv binascii exception_group except_star memoryio; do
    /usr/bin/python3.11 -m unittest -v "test.test_$name" >out 2>&1
    echo "$name: exit code $?"
    grep -E '\.\.\. (ok|FAIL|ERROR|skipped|expected)' out | sed 's/0x[0-9a-f]*/ADDRESS/g' | sort | cksum
    sed -n 's/^\(Ran .* tests\{0,1\}\) in .*/\1/p; /^OK/p; /^FAILED/p' out
done
