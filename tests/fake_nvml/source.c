/* The description in force, the lock around it, and the way into every call. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "fake.h"

enum { LOOK_EVERY_MILLISECONDS = 20 };

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct description *in_force;
static struct stat read_as;
static unsigned looked_at;
static int users;
static struct handle handles[MAX_GPUS][1 + MAX_MIGS];

__attribute__((constructor)) static void make_handles(void)
{
    for (short gpu = 0; gpu < MAX_GPUS; gpu++)
        for (short mig = 0; mig <= MAX_MIGS; mig++) {
            handles[gpu][mig].gpu = gpu;
            handles[gpu][mig].mig = (short)(mig - 1);
        }
}

/* A child forked while another thread is inside a call would find the lock taken for ever. */
__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(lock, leave, leave);
}

static char *read_file(const char *path, struct stat *about)
{
    char *text = NULL;
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    if (fstat(fileno(file), about) == 0 && (text = malloc((size_t)about->st_size + 1)))
        text[fread(text, 1, (size_t)about->st_size, file)] = 0;
    fclose(file);
    return text;
}

static void look(void)
{
    const char *path = getenv("FAKE_NVML");
    struct stat now;
    struct description *described;
    char *text;
    if (!path || stat(path, &now) != 0)
        return;
    if (in_force && now.st_ino == read_as.st_ino && now.st_size == read_as.st_size &&
        now.st_mtim.tv_sec == read_as.st_mtim.tv_sec && now.st_mtim.tv_nsec == read_as.st_mtim.tv_nsec)
        return;
    if (!(text = read_file(path, &now)))
        return;
    read_as = now; /* also when it is bad: one message for each bad file is enough */
    if ((described = describe(text, path))) {
        keep_counts(in_force, described);
        forget(in_force);
        in_force = described;
    }
    free(text);
}

struct description *current(void)
{
    return in_force;
}

double current_since(void)
{
    return in_force->since;
}

void lock(void)
{
    unsigned now = monotonic_milliseconds();
    pthread_mutex_lock(&guard);
    if (!in_force || now - looked_at >= LOOK_EVERY_MILLISECONDS) {
        looked_at = now;
        look();
    }
}

void leave(void)
{
    pthread_mutex_unlock(&guard);
}

int initialised(void)
{
    return users > 0;
}

int handle_place(nvmlDevice_t device, int *gpu, int *mig)
{
    const struct handle *first = &handles[0][0];
    if (device < first || device >= first + sizeof handles / sizeof *first)
        return 0;
    *gpu = device->gpu;
    *mig = device->mig;
    return 1;
}

nvmlDevice_t handle_of(int gpu, int mig)
{
    return &handles[gpu][mig + 1];
}

static nvmlReturn_t enter_locked(struct target *at, const char *call, enum accepts accepts, nvmlDevice_t device,
                                 int arguments)
{
    nvmlReturn_t result;
    int gpu, mig;
    if (!in_force)
        return NVML_ERROR_UNINITIALIZED;
    if (in_force->fault_count && (result = meet_faults(call, -1)) != NVML_SUCCESS)
        return result;
    if (!initialised())
        return NVML_ERROR_UNINITIALIZED;
    if (!arguments)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(at, 0, sizeof *at);
    if (accepts != SYSTEM) {
        if (!handle_place(device, &gpu, &mig))
            return NVML_ERROR_INVALID_ARGUMENT;
        if (in_force->fault_count && (result = meet_faults(call, gpu)) != NVML_SUCCESS)
            return result;
        if (gpu >= in_force->gpu_count)
            return NVML_ERROR_GPU_IS_LOST;
        at->index = gpu;
        at->gpu = in_force->gpus[gpu];
        if (mig >= 0) {
            if (mig >= (int)at->gpu->mig_count)
                return NVML_ERROR_INVALID_ARGUMENT;
            if (accepts == CARDS)
                return NVML_ERROR_NOT_SUPPORTED;
            at->mig = &at->gpu->migs[mig];
        }
    }
    at->all = in_force;
    return NVML_SUCCESS;
}

nvmlReturn_t enter(struct target *at, const char *call, enum accepts accepts, nvmlDevice_t device, int arguments)
{
    nvmlReturn_t result;
    lock();
    result = enter_locked(at, call, accepts, device, arguments);
    if (result != NVML_SUCCESS)
        leave();
    return result;
}

static nvmlReturn_t initialise(const char *call)
{
    nvmlReturn_t result;
    lock();
    if (!in_force) {
        const char *path = getenv("FAKE_NVML");
        fprintf(stderr, "fake NVML: no description: %s%s\n", path ? "cannot use " : "set FAKE_NVML to a file",
                path ? path : "");
        result = NVML_ERROR_DRIVER_NOT_LOADED;
    } else {
        result = meet_faults(call, -1);
    }
    if (result == NVML_SUCCESS)
        users++;
    leave();
    return result;
}

EXPORT nvmlReturn_t nvmlInit(void)
{
    return initialise(__func__);
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return initialise(__func__);
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return initialise(__func__);
}

EXPORT nvmlReturn_t nvmlShutdown(void)
{
    BEGIN(SYSTEM, NULL, 1);
    (void)at;
    users--;
    END;
}
