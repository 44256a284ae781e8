/* The first program of the guests that scripts/guest.sh boots: mounts what Gleaner reads, runs the
 * tasks that the kernel's command line names, and turns the guest off. Records go to serial lines
 * of their own, which the host finds as files; what is meant for people goes to the console.
 *
 * To add a task: a function, and its name in `main`. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Its standard output goes to one file, its standard error to another, or to the console. */
static void run(const char *record, const char *errors, char *const command[])
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        int out = open(record, O_WRONLY | O_NOCTTY | O_CREAT | O_APPEND, 0644);
        int err = errors ? open(errors, O_WRONLY | O_NOCTTY) : -1;
        if (out >= 0)
            dup2(out, STDOUT_FILENO);
        if (err >= 0)
            dup2(err, STDERR_FILENO);
        execv(command[0], command);
        perror(command[0]);
        _exit(127);
    }
    waitpid(child, &status, 0);
    status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    FILE *said = errors ? fopen(errors, "a") : NULL;
    if (said) {
        fprintf(said, "exit %d\n", status);
        fclose(said);
    }
    printf("guest: %s %s: exit %d\n", command[0], command[1] ? command[1] : "", status);
    fflush(stdout);
}

static void copy(const char *from, const char *to)
{
    char line[256];
    FILE *in = fopen(from, "r"), *out = fopen(to, "a");
    while (in && out && fgets(line, sizeof line, in))
        fputs(line, out);
    if (in)
        fclose(in);
    if (out)
        fclose(out);
}

#define DOCTOR "/gleaner", "doctor", "--json", NULL
#define COMMAND(...) (char *[]){__VA_ARGS__, NULL}

static void numa(void)
{
    run("/dev/ttyS2", NULL, (char *[]){DOCTOR});
    /* Small areas: the test checks where pages lie, and large ones take long under emulation. */
    run("/dev/ttyS1", NULL, COMMAND("/gleaner", "measure", "numa", "--quick", "--json", "--seed", "1", "--max-memory", "64M"));
}

/* Programs with and without a dynamic loader: beside a primary, and before one that waits for
 * their output. */
static void harvest(void)
{
    static char *kinds[] = {"/worker", "/worker-static"};
    run("/dev/ttyS1", NULL, (char *[]){DOCTOR});
    for (int kind = 0; kind < 2; kind++) {
        char line[64];
        snprintf(line, sizeof line, "%s spin", kinds[kind]);
        run("/dev/ttyS2", "/dev/ttyS2", COMMAND("/gleaner", "harvest", "--record", "/tmp/run.json", "--scavenger", line, "--", "/worker"));
        run("/dev/ttyS3", NULL, COMMAND("/gleaner", "show", "/tmp/run.json", ".scavengers[0].times.aboard"));
        snprintf(line, sizeof line, "%s alone", kinds[kind]);
        run("/dev/ttyS2", "/dev/ttyS2", COMMAND("/gleaner", "harvest", "--record", "/tmp/run.json", "--scavenger", line,
                                                "--scavenger-out", "/tmp/out", "--", "/worker", "company", "/tmp/out"));
        copy("/tmp/out", "/dev/ttyS2");
        unlink("/tmp/out");
    }
    /* Old kernels end everybody where one dumps its memory. */
    run("/dev/ttyS2", "/dev/ttyS2", COMMAND("/gleaner", "harvest", "--scavenger", "/worker dies", "--", "/worker"));
    run("/dev/ttyS2", "/dev/ttyS2", COMMAND("/gleaner", "harvest", "--", "/worker-static"));
}

int main(int argc, char **argv)
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
    const char *task = argv[argc - 1];
    if (!strcmp(task, "numa"))
        numa();
    else if (!strcmp(task, "harvest"))
        harvest();
    else
        printf("guest: '%s' is no task\n", task);
    sync();
    reboot(RB_AUTOBOOT); /* QEMU is told to end instead */
    return 1;
}
