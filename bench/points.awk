# A picture of points with their intervals: lines of label, x, its least and greatest, y, its least and greatest, separated by tabs. -v title= -v x= -v y=
# (what the axes are). An axis that spans more than a factor of eight is logarithmic.
BEGIN { FS = "\t"; left = 60; right = 470; top = 40; bottom = 330; split("#999 #333 #06c #0a6 #c60 #a0a #c22 #068 #690 #850", colour, " ") }
{ n++; label[n] = $1; for (i = 2; i <= 7; i++) at[n, i] = $i + 0; note(1, $3); note(1, $4); note(2, $6); note(2, $7) }
function note(axis, value) {
    value += 0
    if (!(axis in high) || value > high[axis]) high[axis] = value
    if (!(axis in low) || value < low[axis]) low[axis] = value
}
# Where a value lies on its axis, from 0 to 1.
function share(axis, value) {
    if (!bent[axis]) return (value - low[axis]) / (high[axis] - low[axis])
    return (log(value) - log(low[axis])) / (log(high[axis]) - log(low[axis]))
}
function across(value) { return left + share(1, value) * (right - left) }
function down(value) { return bottom - share(2, value) * (bottom - top) }
# Steps of one, two or five in some power of ten.
function step(axis,    power, span) {
    span = (high[axis] - low[axis]) / 8
    power = exp(int(log(span) / log(10) - (span < 1)) * log(10))
    return span <= power ? power : span <= 2 * power ? 2 * power : span <= 5 * power ? 5 * power : 10 * power
}
function tick(axis, value,    text) {
    text = sprintf("%.3g", value)
    if (axis == 1) printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", across(value), across(value), top, bottom, across(value), bottom + 16, text
    else printf "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", left, right, down(value), down(value), left - 6, down(value) + 4, text
}
function ticks(axis,    value, by, i, digits) {
    if (bent[axis]) {
        split("1 2 5", digits, " ")
        for (by = exp(int(log(low[axis]) / log(10) - 1) * log(10)); by <= high[axis]; by *= 10)
            for (i = 1; i <= (high[axis] / low[axis] > 300 ? 1 : 3); i++) if (by * digits[i] >= low[axis] * 0.999 && by * digits[i] <= high[axis] * 1.001) tick(axis, by * digits[i])
        return
    }
    by = step(axis)
    for (value = int(low[axis] / by) * by; value <= high[axis] + by / 100; value += by) if (value >= low[axis] - by / 100) tick(axis, value)
}
END {
    for (axis = 1; axis <= 2; axis++) {
        bent[axis] = low[axis] > 0 && high[axis] / low[axis] > 8
        if (bent[axis]) { low[axis] /= 1.2; high[axis] *= 1.2; continue }
        # A tenth of room; from 0 on, where that is not far.
        room = (high[axis] - low[axis]) / 10
        if (!room) room = high[axis] ? high[axis] / 2 : 1
        high[axis] += room
        low[axis] = low[axis] > 0 && low[axis] < high[axis] / 2 ? 0 : low[axis] - room * (low[axis] != 0)
    }
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 376\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"720\" height=\"376\" fill=\"white\"/>\n<text x=\"%d\" y=\"20\" font-size=\"13\">%s</text>\n", left, title
    ticks(1); ticks(2)
    printf "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", (left + right) / 2, bottom + 36, x, (top + bottom) / 2, y
    for (i = 1; i <= n; i++) {
        c = colour[(i - 1) % 10 + 1]; px = across(at[i, 2]); py = down(at[i, 5])
        printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/><line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>", across(at[i, 3]), across(at[i, 4]), py, py, c, px, px, down(at[i, 6]), down(at[i, 7]), c
        printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n<circle cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n", px, py, c, right + 18, top + i * 18, c, right + 28, top + i * 18 + 4, label[i]
    }
    print "</svg>"
}
