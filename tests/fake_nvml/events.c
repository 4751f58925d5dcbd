/* Event sets: XID errors, one for each `xid` line that appears after the set was registered. */
#include <stdlib.h>
#include <string.h>
#include "fake.h"

struct watched { int gpu; u64 types; unsigned seen; };

struct event_set {
    struct watched cards[MAX_GPUS];
    int count;
};

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    BEGIN(SYSTEM, NULL, set != NULL);
    (void)at;
    *set = calloc(1, sizeof **set);
    if (!*set)
        result = NVML_ERROR_MEMORY;
    END;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    BEGIN(SYSTEM, NULL, set != NULL);
    (void)at;
    free(set);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, u64 *types)
{
    BEGIN(CARDS, device, types != NULL);
    *types = EVENT_XID;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, u64 types, nvmlEventSet_t set)
{
    BEGIN(CARDS, device, set != NULL);
    int place = 0;
    if (types & ~EVENT_XID) {
        result = NVML_ERROR_NOT_SUPPORTED;
    } else {
        while (place < set->count && set->cards[place].gpu != at.index)
            place++;
        set->cards[place] = (struct watched){at.index, types, at.gpu->xid_count};
        if (place == set->count)
            set->count++;
    }
    END;
}

/* The next event of the set, or why there is none. With the lock held. */
static nvmlReturn_t next_event(const char *call, nvmlEventSet_t set, struct event_data *event)
{
    nvmlReturn_t result;
    for (int i = 0; i < set->count; i++) {
        struct watched *watched = &set->cards[i];
        const struct gpu *gpu;
        if ((result = meet_faults(call, watched->gpu)) != NVML_SUCCESS)
            return result;
        if (watched->gpu >= current()->gpu_count)
            return NVML_ERROR_GPU_IS_LOST;
        gpu = current()->gpus[watched->gpu];
        if (watched->seen > gpu->xid_count)
            watched->seen = gpu->xid_count;
        if (!(watched->types & EVENT_XID) || watched->seen == gpu->xid_count)
            continue;
        memset(event, 0, sizeof *event);
        event->device = handle_of(watched->gpu, -1);
        event->eventType = EVENT_XID;
        event->eventData = gpu->xids[watched->seen++];
        event->gpuInstanceId = event->computeInstanceId = NO_INSTANCE;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_TIMEOUT;
}

/* With the lock held; it is given up while waiting. */
static nvmlReturn_t wait_for(const char *call, nvmlEventSet_t set, struct event_data *event, unsigned milliseconds)
{
    unsigned start = monotonic_milliseconds();
    for (;;) {
        nvmlReturn_t result = next_event(call, set, event);
        unsigned waited = monotonic_milliseconds() - start;
        if (result != NVML_ERROR_TIMEOUT || waited >= milliseconds)
            return result;
        leave();
        sleep_milliseconds(milliseconds - waited < 10 ? milliseconds - waited : 10);
        lock();
    }
}

EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, struct event_data_v1 *data, unsigned milliseconds)
{
    BEGIN(SYSTEM, NULL, set != NULL && data != NULL);
    struct event_data event;
    (void)at;
    result = wait_for(__func__, set, &event, milliseconds);
    if (result == NVML_SUCCESS)
        *data = (struct event_data_v1){event.device, event.eventType, event.eventData};
    END;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, struct event_data *data, unsigned milliseconds)
{
    BEGIN(SYSTEM, NULL, set != NULL && data != NULL);
    struct event_data event;
    (void)at;
    result = wait_for(__func__, set, &event, milliseconds);
    if (result == NVML_SUCCESS)
        *data = event;
    END;
}
