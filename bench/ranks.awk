# What the other scripts in awk share: figures sorted, and their median with the interval that holds the true one 95 times of 100, by ranks: of less than six
# figures that is all of them.
function sort(list, size,    i, j, t) {
    for (i = 2; i <= size; i++)
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
}
function middle(list, size) { return size % 2 ? list[(size + 1) / 2] : (list[size / 2] + list[size / 2 + 1]) / 2 }
function least(list, size,    i) { i = int(size / 2 - 0.98 * sqrt(size)); return list[i < 1 ? 1 : i] }
function greatest(list, size,    i) { i = int(size / 2 + 0.98 * sqrt(size)) + 1; return list[i > size ? size : i] }
# Figures in a text, sorted, into `list`; how many.
function sorted_of(text, list,    size, i) {
    size = split(text, list, " ")
    for (i = 1; i <= size; i++) list[i] += 0
    sort(list, size)
    return size
}
# One figure as JSON has it.
function as_json(list, size, unit) {
    return sprintf("{\"value\": %.4f, \"lo\": %.4f, \"hi\": %.4f, \"unit\": \"%s\", \"turns\": %d}", middle(list, size), least(list, size), greatest(list, size), unit, size)
}
