/* Faults: what a call meets instead of, or before, its answer. */
#include <stdio.h>
#include <string.h>
#include "fake.h"

static const struct { const char *word; nvmlReturn_t result; } RESULTS[] = {
    {"not_supported", NVML_ERROR_NOT_SUPPORTED},
    {"lost", NVML_ERROR_GPU_IS_LOST},
    {"unknown_error", NVML_ERROR_UNKNOWN},
    {"no_permission", NVML_ERROR_NO_PERMISSION},
    {"version_mismatch", NVML_ERROR_LIB_RM_VERSION_MISMATCH},
    {"driver_not_loaded", NVML_ERROR_DRIVER_NOT_LOADED},
    {"function_not_found", NVML_ERROR_FUNCTION_NOT_FOUND},
    {"reset_required", NVML_ERROR_RESET_REQUIRED},
};

/* fault CALL WHAT [N times] [after N calls] */
const char *parse_fault(char **words, const char *line, int gpu, struct description *description)
{
    struct fault fault = {.gpu = gpu};
    const char *wrong;
    size_t i = 0, count = sizeof RESULTS / sizeof *RESULTS;
    double number;
    if (!words[0] || !words[1])
        return "a fault wants a call and what it meets, such as: fault nvmlDeviceGetPowerUsage lost";
    if (strlen(words[0]) >= sizeof fault.call || strlen(line) >= sizeof fault.line)
        return "this line is too long";
    strcpy(fault.call, words[0]);
    strcpy(fault.line, line);
    if (strcmp(words[1], "hang") == 0) {
        fault.kind = FAULT_HANG;
    } else if (strcmp(words[1], "slow") == 0) {
        fault.kind = FAULT_SLOW;
        if ((wrong = parse_number(words[2], &fault.milliseconds)))
            return "slow wants milliseconds";
        words++;
    } else {
        while (i < count && strcmp(RESULTS[i].word, words[1]) != 0)
            i++;
        if (i == count)
            return "this fault is not known";
        fault.result = RESULTS[i].result;
    }
    for (words += 2; words[0];) {
        int after = strcmp(words[0], "after") == 0;
        if (parse_number(words[after], &number) || !words[after + 1] ||
            strcmp(words[after + 1], after ? "calls" : "times") != 0)
            return "after a fault, \"N times\" and \"after N calls\" are known";
        if (after)
            fault.after = (unsigned long)number;
        else
            fault.times = (unsigned long)number;
        words += 2 + after;
    }
    void *list = grow(description->faults, description->fault_count, sizeof fault);
    if (!list)
        return "out of memory";
    description->faults = list;
    description->faults[description->fault_count++] = fault;
    return NULL;
}

static int names(const char *pattern, const char *call)
{
    size_t length = strlen(pattern);
    if (length && pattern[length - 1] == '*')
        return strncmp(pattern, call, length - 1) == 0;
    return strcmp(pattern, call) == 0;
}

static struct fault *same_fault(const struct description *description, const struct fault *fault)
{
    for (unsigned i = 0; description && i < description->fault_count; i++)
        if (description->faults[i].gpu == fault->gpu && strcmp(description->faults[i].line, fault->line) == 0)
            return &description->faults[i];
    return NULL;
}

/* "3 times" means three times in a process's life, also when the file is written anew for another reason. */
void keep_counts(const struct description *before, struct description *after)
{
    for (unsigned i = 0; i < after->fault_count; i++) {
        const struct fault *known = same_fault(before, &after->faults[i]);
        if (known)
            after->faults[i].met = known->met;
    }
}

static void hang(const struct fault *fault)
{
    struct fault waited_for = *fault;
    while (same_fault(current(), &waited_for)) {
        leave();
        sleep_milliseconds(20);
        lock();
    }
}

/* With the lock held; it is given up while sleeping, so nothing read before this call may be used after it. */
nvmlReturn_t meet_faults(const char *call, int gpu)
{
    struct description *all = current();
    for (unsigned i = 0; i < all->fault_count; i++) {
        struct fault *fault = &all->faults[i];
        if (fault->gpu != gpu || !names(fault->call, call))
            continue;
        fault->met++;
        if (fault->met <= fault->after || (fault->times && fault->met > fault->after + fault->times))
            continue;
        if (fault->kind == FAULT_RETURN)
            return fault->result;
        if (fault->kind == FAULT_HANG) {
            hang(fault);
            return NVML_SUCCESS;
        }
        double milliseconds = fault->milliseconds;
        leave();
        sleep_milliseconds(milliseconds);
        lock();
        if (all != current())
            return NVML_SUCCESS;
    }
    return NVML_SUCCESS;
}
