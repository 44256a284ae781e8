# From raw figures to the rows of a table: of each pair of a label (cells of the table) and the figures plain, siblings, and the ratio of the two, the median
# [least, greatest]. digits: behind the point. Needs ranks.awk.
BEGIN { FS = "\t" }
function cell(text,    list, size, f) {
    size = sorted_of(text, list)
    f = "%." digits "f"
    return sprintf(f " [" f ", " f "]", list[int((size + 1) / 2)], list[1], list[size])
}
!($1 in seen) { seen[$1] = 1; order[++n] = $1 }
{ for (i = 2; i <= 4; i++) figures[$1, i] = figures[$1, i] " " $i }
END {
    for (i = 1; i <= n; i++)
        printf "| %s | %s | %s | %s |\n", order[i], cell(figures[order[i], 2]), cell(figures[order[i], 3]), cell(figures[order[i], 4])
}
