# More of Python's own test suite: threads, processes, signals, pickles, archives, dates, the
# compiler; and modules written in Python.
#: program /usr/bin/python3.11
#: needs /usr/bin/python3.11 python3.11
#: needs /usr/lib/python3.11/test/test_dict.py libpython3.11-testsuite
export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
for name in set long unicode math itertools exceptions bytes gc bz2 unicodedata pickle threading ast compile datetime tarfile weakref statistics tokenize lzma zipfile email thread fork1 signal subprocess \
    io decimal asyncio.test_tasks asyncio.test_queues multiprocessing_fork selectors tempfile shutil traceback dis unparse sqlite3.test_dbapi functools collections with typing enum bigmem contextlib dataclasses inspect \
    peepholer string textwrap base64 hmac fractions asyncgen patma dictviews; do
    timeout 900 /usr/bin/python3.11 -m unittest -v "test.test_$name" >out 2>&1
    echo "$name: exit code $?"
    # Which of the tests that need time or company are skipped may change; what runs must pass.
    sed -n 's/^\(Ran .* tests\{0,1\}\) in .*/\1/p; /^OK/p; /^FAILED/p; /^ERROR:/p; /^FAIL:/p' out
done
