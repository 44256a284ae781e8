/* Each thread on a CPU of its own, so that threads run at the same time where they can. */
#ifndef PIN_H
#define PIN_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>

static void pin(int number)
{
    cpu_set_t allowed, own;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    int at = number % CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && at-- == 0) {
            CPU_ZERO(&own);
            CPU_SET(cpu, &own);
            sched_setaffinity(0, sizeof own, &own);
            return;
        }
}
#endif
