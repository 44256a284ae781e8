# From the raw figures of yield.sh to its table (what=table), to points for points.awk (what=points) and JSON (what=json). Needs ranks.awk.
BEGIN { FS = "\t" }
/^#/ { next }
{ cycles[$2] = cycles[$2] " " $3 / ($5 + $6) - $3 / $4; if (!($2 in seen)) { seen[$2] = 1; order[++n] = $2 } }
END {
    if (what == "table") print "| values alive, beside pointer and count | core cycles a yield |\n|---|---|"
    if (what == "json") printf "["
    for (i = 1; i <= n; i++) {
        size = sorted_of(cycles[order[i]], list)
        if (what == "table") printf "| %d | %.1f [%.1f, %.1f] |\n", order[i], middle(list, size), list[1], list[size]
        else if (what == "json") printf "%s\n  {\"alive\": %d, \"cycles\": %s}", (i > 1 ? "," : ""), order[i], as_json(list, size, "cycles")
        else printf "%d\t%g\t%g\t%g\t%g\t%g\t%g\n", order[i], order[i], order[i], order[i], middle(list, size), list[1], list[size]
    }
    if (what == "table") print "\nMedian of the rounds [least, greatest]."
    if (what == "json") print "\n]"
}
