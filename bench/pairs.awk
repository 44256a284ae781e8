# From the raw figures of pairs.sh and sweep.sh to a table (what=table), its picture (what=picture) and JSON (what=json). Each ratio is taken within a round;
# shown are the median of the rounds and, in brackets, the least and the greatest.
BEGIN { FS = "\t"; name["idle"] = "SCHED_IDLE"; name["two"] = "two cores" }
/^#/ { next }
{
    split($5, figure, " ")
    if (!($1 in rounds)) { rounds[$1] = 1; round[++nrounds] = $1 }
    if ($2 == "-") { alone[$1, $3] = figure[3]; next }
    pace[$1, $2, $3, $4] = figure[1]; p95[$1, $2, $3, $4] = figure[2]; steps[$1, $2, $3, $4] = figure[3]
    if ($3 == "-") next
    if (!(($2, $3) in seen)) { seen[$2, $3] = 1; pair[++n] = $2 SUBSEP $3 }
    if (!($4 in known)) { known[$4] = 1; ways[++nways] = $4 }
}

function sort(list, size,    i, j, t) {
    for (i = 2; i <= size; i++)
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
}

# One ratio of a primary, a scavenger and a way over the rounds, sorted, into `sorted`; how many.
function ratios(what, p, s, way,    i, r, kept, value) {
    kept = 0
    for (i = 1; i <= nrounds; i++) {
        r = round[i]
        if (!((r, p, s, way) in pace) || !((r, p, "-", "alone") in pace)) continue
        if (what == "pace") value = pace[r, p, s, way] / pace[r, p, "-", "alone"]
        else if (what == "p95") { if (p95[r, p, s, way] == "-") continue; value = p95[r, p, s, way] / p95[r, p, "-", "alone"] }
        else if (!((r, s) in alone)) continue
        else if (what == "work") value = steps[r, p, s, way] / alone[r, s]
        else value = pace[r, p, s, way] / pace[r, p, "-", "alone"] + steps[r, p, s, way] / alone[r, s]
        sorted[++kept] = value
    }
    sort(sorted, kept)
    return kept
}
function middle(size) { return size % 2 ? sorted[(size + 1) / 2] : (sorted[size / 2] + sorted[size / 2 + 1]) / 2 }
function cell(what, p, s, way,    size) {
    size = ratios(what, p, s, way)
    if (!size) return "-"
    if (size == 1) return sprintf("%.2f", sorted[1])
    return sprintf("%.2f [%.2f, %.2f]", middle(size), sorted[1], sorted[size])
}

END {
    if (what == "table") {
        print "| primary | scavenger | way | primary's pace | its P95 | scavengers' work | all work |\n|---|---|---|---|---|---|---|"
        for (i = 1; i <= n; i++) {
            split(pair[i], k, SUBSEP)
            for (w = 1; w <= nways; w++)
                printf "| %s | %s | %s | %s | %s | %s | %s |\n", k[1], k[2], (ways[w] in name) ? name[ways[w]] : ways[w], cell("pace", k[1], k[2], ways[w]), cell("p95", k[1], k[2], ways[w]), cell("work", k[1], k[2], ways[w]), cell("all", k[1], k[2], ways[w])
        }
        print "\nPace and P95 over those of the primary alone, work over that of one scavenger alone on the same core, all within a round;"
        printf "median of %d rounds [least, greatest]; one round has no brackets. SCHED_IDLE: scavengers on the primary's core, under the\nkernel's scheduler; harvested+: scavengers at home run on the other core too; two cores: one scavenger on the other core.\n", nrounds
    } else if (what == "json") {
        split("pace p95 work all", names, " ")
        printf "["
        for (i = 1; i <= n; i++) for (w = 1; w <= nways; w++) {
            split(pair[i], k, SUBSEP)
            if (!ratios("pace", k[1], k[2], ways[w])) continue
            printf "%s\n  {\"primary\": \"%s\", \"scavenger\": \"%s\", \"way\": \"%s\"", comma, k[1], k[2], (ways[w] in name) ? name[ways[w]] : ways[w]
            for (m = 1; m <= 4; m++) {
                size = ratios(names[m], k[1], k[2], ways[w])
                if (size) printf ", \"%s\": {\"value\": %.4f, \"lo\": %.4f, \"hi\": %.4f, \"unit\": \"ratio\", \"rounds\": %d}", names[m], middle(size), sorted[1], sorted[size], size
            }
            printf "}"
            comma = ","
        }
        print "\n]"
    } else {
        split("#999 #06c #0a6 #c60", colour, " ")
        top = 2
        for (i = 1; i <= n; i++) for (w = 1; w <= nways; w++) { split(pair[i], k, SUBSEP); if ((size = ratios("all", k[1], k[2], ways[w])) && middle(size) > top) top = middle(size) }
        width = 70 + n * 62; bottom = 300
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d 370\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"%d\" height=\"370\" fill=\"white\"/>\n<text x=\"50\" y=\"16\" font-size=\"13\">All work done, in programs that run alone on the primary's core</text>\n", width, width
        for (y = 0; y <= top; y++) printf "<line x1=\"50\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"44\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n", width - 10, bottom - y / top * 250, bottom - y / top * 250, bottom - y / top * 250 + 4, y
        for (w = 1; w <= nways; w++) printf "<rect x=\"%d\" y=\"26\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%d\" y=\"35\">%s</text>\n", 50 + (w - 1) * 100, colour[w], 64 + (w - 1) * 100, (ways[w] in name) ? name[ways[w]] : ways[w]
        for (i = 1; i <= n; i++) {
            split(pair[i], k, SUBSEP); x = 56 + (i - 1) * 62
            for (w = 1; w <= nways; w++) {
                if (!(size = ratios("all", k[1], k[2], ways[w]))) continue
                h = middle(size) / top * 250
                printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"%.1f\" fill=\"%s\"/><line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"black\"/>\n", x + (w - 1) * 13, bottom - h, h, colour[w], x + (w - 1) * 13 + 5.5, x + (w - 1) * 13 + 5.5, bottom - sorted[1] / top * 250, bottom - sorted[size] / top * 250
            }
            printf "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x + 26, bottom + 16, k[2], x + 26, bottom + 32, k[1]
        }
        print "</svg>"
    }
}
