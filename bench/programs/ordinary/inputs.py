"""What ordinary programs work on in bench/speed.sh beyond inputs.py of bench: inputs.py DIRECTORY.

join.sql, postgres.sql: joins of a million rows; unit.c: hundreds of functions; reads.sam: places
of reads in any order; random.cnf: a formula near the threshold; product.smt2: factors of a number.
"""
import pathlib
import random
import sys

where = pathlib.Path(sys.argv[1])
random.seed(2)
with open(where / "join.sql", "w") as out:
    print("pragma cache_size=-2000000; create table a(k integer primary key, v integer);"
          "create table b(k integer, w integer);", file=out)
    for table, factor in (("a", 7919), ("b", 104729)):
        print(f"with recursive n(i) as (select 1 union all select i + 1 from n where i < 500000)"
              f"insert into {table} select i * {factor} % 15000017, i from n;", file=out)
    print("select count(*), sum(v + w) from a join b using (k);", file=out)
with open(where / "postgres.sql", "w") as out:
    print("create temp table a as select (i::bigint * 7919 % 15000017)::int k, i v from generate_series(1, 1000000) i;"
          "create temp table b as select (i::bigint * 104729 % 15000017)::int k, i w from generate_series(1, 1000000) i;"
          "analyze a; analyze b; select count(*), sum(v + w) from a join b using (k);", file=out)
with open(where / "unit.c", "w") as out:
    print("#ifndef PART\n#define PART 0\n#endif\n#define NAME2(n, p) f##n##_##p\n#define NAME1(n, p) NAME2(n, p)\n"
          "#define NAME(n) NAME1(n, PART)", file=out)
    for i in range(600):
        print(f"int NAME({i})(int a, int b) {{ int s = 0; for (int i = 0; i < a; i++) s += i * b ^ {i};"
              f" return s + (a > {i} ? b / (a + 1) : a); }}", file=out)
with open(where / "reads.sam", "w") as out:
    print("@HD\tVN:1.6\n@SQ\tSN:made-up\tLN:4000000", file=out)
    bases = "".join(random.choices("ACGT", k=5000))
    for number in range(300000):
        at = random.randrange(4900)
        print(f"read{number}\t0\tmade-up\t{random.randrange(3999900) + 1}\t60\t100M\t*\t0\t0\t{bases[at:at + 100]}\t{'I' * 100}", file=out)
variables = 200
with open(where / "random.cnf", "w") as out:
    clauses = variables * 43 // 10
    print(f"p cnf {variables} {clauses}", file=out)
    for _ in range(clauses):
        chosen = random.sample(range(1, variables + 1), 3)
        print(" ".join(str(random.choice((1, -1)) * one) for one in chosen), "0", file=out)
with open(where / "product.smt2", "w") as out:
    print("(set-logic QF_BV)(declare-const a (_ BitVec 40))(declare-const b (_ BitVec 40))"
          "(assert (= (bvmul a b) (_ bv275438393 40)))(assert (bvult a (_ bv16777 40)))(assert (bvult b (_ bv16777 40)))"
          "(assert (bvugt a (_ bv1 40)))(assert (bvugt b (_ bv1 40)))(check-sat)", file=out)
