/* The first and only program of the guest that scripts/test-numa.sh boots: mounts what Gleaner reads, lets it look at
 * the guest and measure its nodes, and turns the guest off. Records go to serial lines of their own, which the host
 * finds as files; what is meant for people goes to the console. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void run(const char *record, char *const command[])
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        int out = open(record, O_WRONLY | O_NOCTTY);
        if (out >= 0)
            dup2(out, STDOUT_FILENO);
        execv(command[0], command);
        perror(command[0]);
        _exit(127);
    }
    waitpid(child, &status, 0);
    printf("guest: %s %s: exit %d\n", command[0], command[1],
           WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    fflush(stdout);
}

int main(void)
{
    mkdir("/proc", 0755);
    mkdir("/sys", 0755);
    mkdir("/dev", 0755);
    mkdir("/tmp", 0777);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sysfs", "/sys", "sysfs", 0, NULL);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
    int console = open("/dev/console", O_RDWR);
    if (console >= 0)
        for (int fd = 0; fd < 3; fd++)
            dup2(console, fd);
    run("/dev/ttyS2", (char *[]){"/gleaner", "doctor", "--json", NULL});
    /* Small areas: what is checked is where pages lie, and an emulated processor takes long over large ones. */
    run("/dev/ttyS1", (char *[]){"/gleaner", "measure", "numa", "--quick", "--json", "--seed", "1", "--max-memory",
                                 "64M", NULL});
    sync();
    reboot(RB_AUTOBOOT); /* QEMU is told to end instead */
    return 1;
}
