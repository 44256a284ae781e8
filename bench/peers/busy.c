// Keeps a processor busy without touching memory, until it is killed.
int main(void) {
    for (volatile unsigned long n = 0;; n++)
        ;
}
