# From the raw figures of harvest.sh to its table (what=table), its picture (what=picture) and JSON (what=json); needs ranks.awk.
# Each ratio is taken within a round; shown are the median of the rounds and, in brackets, the least and the greatest.

/^#/ { next }
{
    round = $1; count = $2; way = $3; total = 0
    for (i = 5; i <= NF; i++) total += $i / $4
    first[round, count, way] = $5 / $4; whole[round, count, way] = total
    if (!(count in seen)) { seen[count] = 1; counts[++n] = count + 0 }
    if (way == "mapped") with_mapped = 1
    if (!((count, round) in had)) { had[count, round] = 1; rounds[count] = rounds[count] " " round }
}

# The values of one ratio over the rounds, sorted, into `sorted`; how many.
function ratios(name, count,    list, size, i, r, value, kept) {
    size = split(rounds[count], list, " ")
    kept = 0
    for (i = 1; i <= size; i++) {
        r = list[i]
        if (!((r, count, "alone") in first) || !((r, count, "by_hand") in first) || !((r, count, "harvested") in first)) continue
        if (name ~ /mapped/ && !((r, count, "mapped") in first)) continue
        if (name == "mapped_total") value = whole[r, count, "mapped"] / first[r, count, "alone"]
        else if (name == "mapped_share") value = whole[r, count, "harvested"] / whole[r, count, "mapped"]
        else if (name == "hand_total") value = whole[r, count, "by_hand"] / first[r, count, "alone"]
        else if (name == "hand_first") value = first[r, count, "by_hand"] / first[r, count, "alone"]
        else if (name == "total") value = whole[r, count, "harvested"] / first[r, count, "alone"]
        else if (name == "first") value = first[r, count, "harvested"] / first[r, count, "alone"]
        else value = whole[r, count, "harvested"] / whole[r, count, "by_hand"]
        sorted[++kept] = value
    }
    sort(sorted, kept)
    return kept
}

function cell(name, count,    size) {
    size = ratios(name, count)
    return sprintf("%.2f [%.2f, %.2f]", middle(sorted, size), sorted[1], sorted[size])
}
function typical(name, count,    size) { size = ratios(name, count); return middle(sorted, size) }

END {
    sort(counts, n)
    if (what == "table") {
        printf "| scavengers | total by hand | first by hand | total harvested | primary harvested | harvested / by hand |"
        print with_mapped ? " by hand, a mapping each | harvested / that |" : ""
        print "|---|---|---|---|---|---|" (with_mapped ? "---|---|" : "")
        for (i = 1; i <= n; i++) {
            c = counts[i]
            printf "| %d | ×%s | ×%s | ×%s | ×%s | %s |", c, cell("hand_total", c), cell("hand_first", c), cell("total", c), cell("first", c), cell("share", c)
            print with_mapped ? " ×" cell("mapped_total", c) " | " cell("mapped_share", c) " |" : ""
        }
        print "\nThroughput over that of the chase alone on the same core; median of the rounds [least, greatest]."
    } else if (what == "json") {
        shown = split("hand_total hand_first total first share" (with_mapped ? " mapped_total mapped_share" : ""), names, " ")
        printf "["
        for (i = 1; i <= n; i++) {
            c = counts[i]
            comma = (i > 1) ? "," : ""
            printf "%s\n  {\"scavengers\": %d", comma, c
            for (k = 1; k <= shown; k++) {
                size = ratios(names[k], c)
                printf ", \"%s\": {\"value\": %.4f, \"lo\": %.4f, \"hi\": %.4f, \"unit\": \"ratio\"}", names[k], middle(sorted, size), sorted[1], sorted[size]
            }
            printf "}"
        }
        print "\n]"
    } else {
        most = counts[n]; top = 1
        for (i = 1; i <= n; i++) { if (typical("hand_total", counts[i]) > top) top = typical("hand_total", counts[i]); if (typical("total", counts[i]) > top) top = typical("total", counts[i]) }
        top = int(top / 5 + 1) * 5
        width = 640; height = 360; left = 50; bottom = 310
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", width, height
        printf "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n<text x=\"%d\" y=\"18\">Pointer chases on one core: throughput over that of one</text>\n", width, height, left
        for (y = 0; y <= top; y += 5) {
            py = bottom - y / top * 270
            printf "<line x1=\"%d\" x2=\"620\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">×%d</text>\n", left, py, py, left - 6, py + 4, y
        }
        for (i = 1; i <= n; i++) printf "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", left + counts[i] / most * 560, bottom + 18, counts[i]
        printf "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">scavengers</text>\n", left + 280, bottom + 38
        line("hand_total", "#888", "by hand", 40); line("total", "#06c", "harvested", 58)
        if (with_mapped) line("mapped_total", "#c60", "by hand, a mapping each", 76)
        print "</svg>"
    }
}

function line(name, colour, label, at,    i, size, px, points) {
    points = ""
    for (i = 1; i <= n; i++) {
        size = ratios(name, counts[i]); px = left + counts[i] / most * 560
        points = points sprintf("%.1f,%.1f ", px, bottom - middle(sorted, size) / top * 270)
        printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", px, px, bottom - sorted[1] / top * 270, bottom - sorted[size] / top * 270, colour
    }
    printf "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", points, colour, left + 12, at, colour, label
}
