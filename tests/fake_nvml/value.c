/* Clocks, and numbers that stand, move or grow with the wall clock, so that all processes see the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "fake.h"

double wall_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The coarse clock is a memory read: exact to some milliseconds, which is enough to ask "is it time to look?". */
unsigned monotonic_milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned)((u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000);
}

void sleep_milliseconds(double milliseconds)
{
    struct timespec left = {(time_t)(milliseconds / 1000), 0};
    left.tv_nsec = (long)((milliseconds - (double)left.tv_sec * 1000) * 1e6);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

struct value constant(double base)
{
    struct value value = {base, 0, 0, 0, 1, 1};
    return value;
}

int value_moves(const struct value *value)
{
    return value->amplitude != 0 || value->rate != 0;
}

double value_at(const struct value *value, double time, double since)
{
    double result = value->base;
    if (value->amplitude != 0)
        result += value->amplitude * sin(2 * M_PI * fmod(time, value->period) / value->period);
    if (value->rate != 0 && time > since)
        result += value->rate * (time - since);
    return result > 0 ? result : 0;
}

double value_now(const struct value *value)
{
    return value_moves(value) ? value_at(value, wall_clock(), current_since()) : value->base;
}

static const struct { const char *name; double factor; } UNITS[] = {
    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
    {"kB", 1e3},     {"MB", 1e6},        {"GB", 1e9},           {"TB", 1e12},
    {"k", 1e3},      {"M", 1e6},         {"G", 1e9},            {"%", 1},
    {"W", 1},        {"J", 1},           {"C", 1},              {"MHz", 1},
    {"B", 1},        {"s", 1},           {"", 1},
};

const char *parse_number(const char *word, double *number)
{
    char *end;
    if (!word)
        return "a number is missing";
    *number = strtod(word, &end);
    if (end == word || !isfinite(*number))
        return "this is not a number";
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (strcmp(end, UNITS[i].name) == 0) {
            *number *= UNITS[i].factor;
            return NULL;
        }
    return "the unit of this number is not known";
}

/* NUMBER [+- NUMBER every SECONDS] [grows NUMBER], or none; `used` tells how many words that took. */
const char *parse_value(char **words, int *used, struct value *value)
{
    const char *wrong;
    int at = 1;
    *value = constant(0);
    *used = 1;
    if (words[0] && strcmp(words[0], "none") == 0) {
        value->known = 0;
        return NULL;
    }
    if ((wrong = parse_number(words[0], &value->base)))
        return wrong;
    if (words[at] && (strcmp(words[at], "+-") == 0 || strcmp(words[at], "\xc2\xb1") == 0)) {
        if ((wrong = parse_number(words[at + 1], &value->amplitude)))
            return wrong;
        if (!words[at + 2] || strcmp(words[at + 2], "every") != 0)
            return "\"+- NUMBER\" wants \"every SECONDS\" after it";
        if ((wrong = parse_number(words[at + 3], &value->period)))
            return wrong;
        if (value->period <= 0)
            return "a period must be longer than 0 s";
        at += 4;
    }
    if (words[at] && strcmp(words[at], "grows") == 0) {
        if ((wrong = parse_number(words[at + 1], &value->rate)))
            return wrong;
        at += 2;
    }
    *used = at;
    return NULL;
}
