/* A remote probe that costs next to nothing: prints recorded lines, one a second, until its standard input ends. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_LINES 256

static char *lines[MOST_LINES];
static size_t sizes[MOST_LINES];

static long milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void put(const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(1, data, size);
        if (written <= 0)
            exit(0);
        data += written;
        size -= (size_t)written;
    }
}

int main(int count, char **arguments)
{
    char input[65536];
    FILE *file = count > 1 ? fopen(arguments[1], "r") : NULL;
    int total = 0, again = 0, next = 0;
    if (!file)
        return 1;
    for (size_t room = 0; total < MOST_LINES; total++) {
        ssize_t size = getline(&lines[total], &room, file);
        room = 0;
        if (size < 0)
            break;
        sizes[total] = (size_t)size;
        /* Whole snapshots come first; after the end it goes on with the first update. */
        if (!again && strncmp(lines[total], "{\"update\"", 9) == 0)
            again = total;
    }
    put("\n--gpulse-probe-start--\n", 24);
    for (long due = milliseconds(); total > 0; due += 1000) {
        put(lines[next], sizes[next]);
        next = next + 1 < total ? next + 1 : again;
        for (long left; (left = due + 1000 - milliseconds()) > 0;) {
            struct pollfd control = {0, POLLIN, 0};
            if (poll(&control, 1, (int)left) > 0 && read(0, input, sizeof input) <= 0)
                return 0;
        }
    }
    return 0;
}
