# redis-server under redis-benchmark; saved while it runs, by a fork; appended; stopped and started
# again: the same data.
#: program /usr/bin/redis-server
#: program /usr/bin/redis-cli
#: program /usr/bin/redis-benchmark
#: needs redis-server redis-server
#: needs redis-cli redis-tools
#: quick
cli() { redis-cli -s "$HOME/socket" "$@"; }
start() { redis-server --port 0 --unixsocket "$HOME/socket" --dir "$HOME" --save '' --appendfsync everysec --enable-debug-command yes "$@" >log 2>&1 & server=$!; for _ in $(seq 200); do [ "$(cli ping 2>/dev/null)" = PONG ] && return; sleep 0.05; done; echo "no server"; tail log; exit 1; }
start --appendonly yes --io-threads 2
redis-benchmark -s "$HOME/socket" -q -n 4000 -r 1000 -c 20 -t ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset 2>&1 | tr '\r' '\n' | sed -n 's/^\([A-Z_]*\).*requests per second.*/\1 done/p' | sort -u
redis-benchmark -s "$HOME/socket" -q -n 4000 -P 16 -t set,get 2>&1 | tr '\r' '\n' | sed -n 's/^\([A-Z_]*\).*requests per second.*/\1 done/p' | sort -u
cli flushall
seq 1 3000 | awk '{ print "SET key:" $1 " value" $1 * 7; print "HSET hash:" $1 % 50 " f" $1 " " $1; print "ZADD zset " $1 * 37 % 1009 " m" $1; print "SADD set:" $1 % 20 " " $1; print "RPUSH list:" $1 % 10 " item" $1; print "PFADD hll " $1; print "XADD stream " $1 "-1 a " $1; print "SETBIT bits " $1 * 13 % 5000 " 1" }' | cli >answers; sort answers | uniq -c | sort -k1,1nr | head -3
cli dbsize; cli bitcount bits; cli pfcount hll; cli zrange zset 0 12 withscores | paste -sd' '; cli zrangebyscore zset '(100' 110 | paste -sd' '; cli sinter set:1 set:11 | wc -l; cli sunionstore all set:1 set:2 set:3; cli lrange list:3 0 5; cli xrange stream 5 7; cli xlen stream; cli sort set:7 desc limit 0 5; cli geoadd places 13.361389 38.115556 P 15.087269 37.502669 C; cli geodist places P C; cli hgetall hash:7 | head -6 | sort | head; cli object encoding zset; cli setrange key:1 3 XYZ; cli append key:1 more; cli getex key:1; cli incrbyfloat f 3.25; cli copy key:1 key:copy
cli eval 'local s = 0; for i = 1, 20000 do s = (s * 31 + i) % 1000003 end; redis.call("SET", "lua", s); return {s, redis.sha1hex(tostring(s)), cjson.encode({1, {a = "b"}}), redis.call("ZCARD", KEYS[1])}' 1 zset
printf 'MULTI\nINCR a\nINCR a\nLPUSH key:2 x\nEXEC\nGET a\n' | cli
before=$(cli debug digest); echo "$before"
cli bgsave; for _ in $(seq 100); do cli info persistence | grep -q rdb_bgsave_in_progress:0 && break; sleep 0.1; done; cli info persistence | tr -d '\r' | grep -E 'last_bgsave_status|aof_enabled|aof_last_write_status'
redis-check-rdb dump.rdb | grep -cE 'keys read|RDB looks OK'
cli bgrewriteaof; for _ in $(seq 100); do cli info persistence | grep -q aof_rewrite_in_progress:0 && break; sleep 0.1; done; cli set after rewriting; cli del after
cli config set maxmemory-policy allkeys-lru; cli client list | wc -l; cli command count; cli memory usage zset >/dev/null && echo measured; cli latency doctor >/dev/null; cli debug jmap 2>&1 | head -1
cli shutdown; wait $server; echo "stopped $?"
start --appendonly yes; [ "$(cli debug digest)" = "$before" ] && echo "the same from the log"; cli shutdown nosave; wait $server; echo "stopped $?"
start --appendonly no; [ "$(cli debug digest)" = "$before" ] && echo "the same from the dump"; cli dbsize
printf 'WATCH w\n' | cli; (cli subscribe news 2>/dev/null | head -6 >heard &) ; for _ in $(seq 100); do [ "$(cli pubsub numsub news | tail -1)" = 1 ] && break; sleep 0.05; done; cli publish news hello; for _ in $(seq 100); do [ "$(wc -l <heard)" = 6 ] && break; sleep 0.05; done; cat heard; cli debug reload; [ "$(cli debug digest)" = "$before" ] && echo "the same reloaded"
kill $server; wait $server; echo "stopped $?"
