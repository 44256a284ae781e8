import duckdb

database = duckdb.connect(config={"threads": 1})
for table, factor in (("a", 7919), ("b", 104729)):
    database.execute(f"create table {table} as select i * {factor} % 15000017 k, i v from range(6000000) t(i)")
print(database.execute("select count(*), sum(a.v + b.v) from a join b using (k)").fetchall())
