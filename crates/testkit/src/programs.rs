//! Programs for several tests, in C.

/// A primary: `PROGRAM FILE` chases through memory until the file's last line is `end`, for a
/// minute at most.
pub const CHASE_UNTIL_END: &str = r#"
#include <stdio.h>
#include <string.h>
#include <time.h>

static int says_end(const char *path) {
    char text[8] = "";
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    fseek(file, -4, SEEK_END);
    fread(text, 1, 4, file);
    fclose(file);
    return !strncmp(text, "end", 3);
}

int main(int argc, char **argv) {
    enum { LINES = 1 << 19 };
    static void *memory[LINES][8];
    for (long i = 0, at = 0; i < LINES; i++) {
        long next = (at * 5 + 12345) % LINES;
        memory[at][0] = memory[next];
        at = next;
    }
    void **volatile at = memory[0];
    for (time_t end = time(0) + 60; !says_end(argv[1]) && time(0) < end;)
        for (int i = 0; i < 1000000; i++) at = *at;
    return 0;
}
"#;
