"""What ordinary programs work on in benches, always the same: inputs.py DIRECTORY.

graph: for programs/search.cpp; data: 40 MB of words; joins.sql: two hundred joins, a long line
each, so that none is kept back; dict.py: a table of a million entries, a line for each ten thousand
steps; genome.fa, reads.fq: a made-up genome and reads of it; hard.cnf: a small formula without a
solution; large.cnf: a large one that has many; text: 25 MB of numbered lines.
"""
import itertools
import pathlib
import random
import sys

where = pathlib.Path(sys.argv[1])
random.seed(1)
nodes, edges = 60000, 400000
with open(where / "graph", "w") as out:
    out.write(f"{nodes} {edges}\n")
    out.writelines(f"{random.randrange(nodes)} {random.randrange(nodes)}\n" for _ in range(edges))
words = [bytes(random.choices(b"etaoin shrdlu\n", k=random.randrange(3, 12))) for _ in range(4000)]
with open(where / "data", "wb") as out:
    for _ in range(2000):
        out.write(b" ".join(random.choices(words, k=1500)))
with open(where / "joins.sql", "w") as out:
    out.write("create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 60000)\n"
              "insert into t select x, x * 7 % 1001 from c;\n")
    out.writelines(f"select {n}, count(*), sum(t1.a), hex(zeroblob(2000)) from t t1 join t t2 on t1.b = t2.b where t1.a < {n + 20};\n"
                   for n in range(200))
(where / "dict.py").write_text(
    "import sys\nd = {}\nfor i in range(int(sys.argv[1]) if len(sys.argv) > 1 else 2000000):\n"
    "    k = i * 7919 % 1000003\n    d[k] = d.get(k, 0) + i\n"
    "    if i % 10000 == 0:\n        print(i, d[k], flush=True)\n"
    "print(sum(d.values()) % 1000007, len(d))\n")
genome = "".join(random.choices("ACGT", k=4_000_000))
with open(where / "genome.fa", "w") as out:
    out.write(">made-up\n")
    out.writelines(genome[at:at + 80] + "\n" for at in range(0, len(genome), 80))
with open(where / "reads.fq", "w") as out:
    for number in range(60000):
        at = random.randrange(len(genome) - 150)
        read = [c if random.random() > 0.02 else random.choice("ACGT") for c in genome[at:at + 150]]
        out.write(f"@{number}\n{''.join(read)}\n+\n{'I' * 150}\n")
# Nine pigeons do not fit into eight holes.
pigeons, holes = 9, 8
at = lambda pigeon, hole: pigeon * holes + hole + 1
clauses = [[at(p, h) for h in range(holes)] for p in range(pigeons)]
clauses += [[-at(p, h), -at(q, h)] for h in range(holes) for p, q in itertools.combinations(range(pigeons), 2)]
with open(where / "hard.cnf", "w") as out:
    out.write(f"p cnf {pigeons * holes} {len(clauses)}\n")
    out.writelines(" ".join(map(str, clause)) + " 0\n" for clause in clauses)
# Few clauses a variable: no search to speak of, but lists of clauses all over memory.
variables = 300_000
with open(where / "large.cnf", "w") as out:
    out.write(f"p cnf {variables} {variables * 27 // 10}\n")
    for _ in range(variables * 27 // 10):
        out.write(" ".join(str(random.choice((1, -1)) * random.randint(1, variables)) for _ in range(3)) + " 0\n")
with open(where / "text", "w") as out:
    out.writelines(f"{random.randrange(10**9)} {random.randrange(10**9):x} line {n} of the text\n" for n in range(600_000))
