# From the raw figures of pairs.sh and sweep.sh to a table (what=table), a picture (what=picture), points for points.awk (what=points: work, pace) and JSON
# (what=json). Needs ranks.awk. Pace and percentile are compared within each turn, work with that of one scavenger alone in the same round.
BEGIN { FS = "\t"; name["idle"] = "SCHED_IDLE"; name["two"] = "two cores" }
/^#/ { next }
{
    split($5, figure, " ")
    if ($2 == "-") { alone[$1, $3] = figure[3]; next }
    if (!(figure[4] + 0)) next # the primary did nothing though it was alone: no turn
    at = ++turns[$2, $3, $4]
    pace[$2, $3, $4, at] = figure[1] / figure[4]
    p95[$2, $3, $4, at] = figure[2] == "-" || figure[5] == "-" ? "-" : figure[2] / figure[5]
    work[$2, $3, $4, at] = ($1, $3) in alone ? figure[3] / alone[$1, $3] : "-"
    if (!(($2, $3) in seen)) { seen[$2, $3] = 1; pair[++n] = $2 SUBSEP $3 }
    if (!($4 in known)) { known[$4] = 1; ways[++nways] = $4 }
}

# One ratio of a primary, a scavenger and a way over the turns, sorted, into `sorted`; how many.
function ratios(what, p, s, way,    i, kept, value) {
    kept = 0
    for (i = 1; i <= turns[p, s, way]; i++) {
        if (what == "pace") value = pace[p, s, way, i]
        else if (what == "p95") value = p95[p, s, way, i]
        else value = work[p, s, way, i]
        if (value == "-") continue
        sorted[++kept] = what == "all" ? value + pace[p, s, way, i] : value
    }
    sort(sorted, kept)
    return kept
}
function cell(what, p, s, way,    size) {
    size = ratios(what, p, s, way)
    if (!size) return "-"
    if (size == 1) return sprintf("%.2f", sorted[1])
    return sprintf("%.2f [%.2f, %.2f]", middle(sorted, size), least(sorted, size), greatest(sorted, size))
}

END {
    if (what == "table") {
        print "| primary | scavenger | way | primary's pace | its P95 | scavengers' work | all work |\n|---|---|---|---|---|---|---|"
        for (i = 1; i <= n; i++) {
            split(pair[i], k, SUBSEP)
            for (w = 1; w <= nways; w++)
                printf "| %s | %s | %s | %s | %s | %s | %s |\n", k[1], k[2], (ways[w] in name) ? name[ways[w]] : ways[w], cell("pace", k[1], k[2], ways[w]), cell("p95", k[1], k[2], ways[w]), cell("work", k[1], k[2], ways[w]), cell("all", k[1], k[2], ways[w])
        }
        print "\nPace and P95 beside scavengers over those while they sleep, in the same run (of programs that are seen as a whole: over a run alone before it);"
        print "work over that of one scavenger alone on the same core. Medians of the turns [95%]. SCHED_IDLE: scavengers on the primary's core, under the"
        print "kernel's scheduler; harvested+: scavengers at home run on the other core too; two cores: one scavenger on the other core."
    } else if (what == "json") {
        split("pace p95 work all", names, " ")
        printf "["
        for (i = 1; i <= n; i++) for (w = 1; w <= nways; w++) {
            split(pair[i], k, SUBSEP)
            if (!ratios("pace", k[1], k[2], ways[w])) continue
            printf "%s\n  {\"primary\": \"%s\", \"scavenger\": \"%s\", \"way\": \"%s\"", comma, k[1], k[2], (ways[w] in name) ? name[ways[w]] : ways[w]
            for (m = 1; m <= 4; m++) {
                size = ratios(names[m], k[1], k[2], ways[w])
                if (size) printf ", \"%s\": %s", names[m], as_json(sorted, size, "ratio")
            }
            printf "}"
            comma = ","
        }
        print "\n]"
    } else if (what == "points") {
        for (i = 1; i <= n; i++) for (w = 1; w <= nways; w++) {
            split(pair[i], k, SUBSEP)
            if (!(size = ratios("work", k[1], k[2], ways[w]))) continue
            printf "%s\t%g\t%g\t%g", (ways[w] in name) ? name[ways[w]] : ways[w], middle(sorted, size), least(sorted, size), greatest(sorted, size)
            size = ratios("pace", k[1], k[2], ways[w])
            printf "\t%g\t%g\t%g\n", middle(sorted, size), least(sorted, size), greatest(sorted, size)
        }
    } else {
        split("#999 #06c #0a6 #c60", colour, " ")
        top = 2
        for (i = 1; i <= n; i++) for (w = 1; w <= nways; w++) { split(pair[i], k, SUBSEP); if ((size = ratios("all", k[1], k[2], ways[w])) && middle(sorted, size) > top) top = middle(sorted, size) }
        width = 70 + n * 62; bottom = 300
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d 370\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"%d\" height=\"370\" fill=\"white\"/>\n<text x=\"50\" y=\"16\" font-size=\"13\">All work done, in programs that run alone on the primary's core</text>\n", width, width
        for (y = 0; y <= top; y++) printf "<line x1=\"50\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"44\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n", width - 10, bottom - y / top * 250, bottom - y / top * 250, bottom - y / top * 250 + 4, y
        for (w = 1; w <= nways; w++) printf "<rect x=\"%d\" y=\"26\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%d\" y=\"35\">%s</text>\n", 50 + (w - 1) * 100, colour[w], 64 + (w - 1) * 100, (ways[w] in name) ? name[ways[w]] : ways[w]
        for (i = 1; i <= n; i++) {
            split(pair[i], k, SUBSEP); x = 56 + (i - 1) * 62
            for (w = 1; w <= nways; w++) {
                if (!(size = ratios("all", k[1], k[2], ways[w]))) continue
                h = middle(sorted, size) / top * 250
                printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"%.1f\" fill=\"%s\"/><line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"black\"/>\n", x + (w - 1) * 13, bottom - h, h, colour[w], x + (w - 1) * 13 + 5.5, x + (w - 1) * 13 + 5.5, bottom - least(sorted, size) / top * 250, bottom - greatest(sorted, size) / top * 250
            }
            printf "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x + 26, bottom + 16, k[2], x + 26, bottom + 32, k[1]
        }
        print "</svg>"
    }
}
