# From the raw figures of store.sh to the rows of its table (what=table), to points for points.awk (what=points: work, percentile) and JSON (what=json). Needs
# ranks.awk, and `one`: steps a second of one scavenger alone.
/^#/ { next }
function add(k, value) { all[key, k] = all[key, k] " " value }
{
    key = $2 " | " $3
    if (!(key in seen)) { seen[key] = 1; order[++keys] = key }
    add(1, $7); add(2, $5 / $7); add(3, $9); add(4, $11); add(5, $4 / $6); add(8, $12 / one)
    if ($8 != "-" && $10 != "-") { add(6, $10); add(7, $8 / $10) }
}
function cell(k,    list, size) {
    size = sorted_of(all[key, k], list)
    return size ? sprintf("%.3g [%.3g, %.3g]", middle(list, size), least(list, size), greatest(list, size)) : "-"
}
function point(k,    list, size) {
    size = sorted_of(all[key, k], list)
    return sprintf("\t%g\t%g\t%g", middle(list, size), least(list, size), greatest(list, size))
}
END {
    split("p95_alone p95 disturbed disturbed_alone p50 undisturbed_p95_alone undisturbed_p95 work", names, " ")
    split("us ratio ratio ratio ratio us ratio ratio", units, " ")
    if (what == "json") printf "["
    for (i = 1; i <= keys; i++) {
        key = order[i]
        split(key, parts, " | ")
        way = parts[1] == "SCHED_IDLE" ? parts[1] : parts[1] ", " parts[3] " asked"
        if (what == "points") print way point(8) point(2)
        if (what == "json") printf "%s\n  {\"way\": \"%s\"", (i > 1 ? "," : ""), way
        if (what == "table") printf "| %s", key
        for (k = 1; k <= 8; k++) {
            if (what == "table") printf " | %s", cell(k)
            if (what == "json" && (size = sorted_of(all[key, k], list))) printf ", \"%s\": %s", names[k], as_json(list, size, units[k])
        }
        if (what == "table") print " |"
        if (what == "json") printf "}"
    }
    if (what == "json") print "\n]"
}
