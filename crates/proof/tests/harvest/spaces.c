// Loops of which one leaves a register with the context in it that the next one writes, on some
// ways only.
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#define IsSpace(X) isspace((unsigned char)X)
__attribute__((noinline)) int squeeze(char *z) {
    int i, j = 0;
    char c;
    for (i = 0; IsSpace(z[i]); i++) {
    }
    for (; (c = z[i]) != 0; i++) {
        if (IsSpace(c)) {
            if (z[j - 1] == '\r')
                z[j - 1] = '\n';
            if (IsSpace(z[j - 1]) || z[j - 1] == '(')
                continue;
        } else if ((c == '(' || c == ')') && j > 0 && IsSpace(z[j - 1])) {
            j--;
        }
        z[j++] = c;
    }
    while (j > 0 && IsSpace(z[j - 1]))
        j--;
    z[j] = 0;
    return j;
}
int main(void) {
    char text[] = " a  ( b )\r\n c (d  e )  ";
    printf("%d %s\n", squeeze(text), text);
}
