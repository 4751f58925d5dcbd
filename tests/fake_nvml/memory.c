/* A card's memory and its faults: sizes, ECC, row remapping, page retirement. */
#include <string.h>
#include "fake.h"

static void sizes(const struct target *at, struct memory_v2 *memory)
{
    const struct value *numbers = at->gpu->numbers;
    u64 taken;
    if (at->mig) {
        memory->total = (u64)value_now(&at->mig->memory_total);
        memory->used = (u64)value_now(&at->mig->memory_used);
        memory->reserved = 0;
    } else {
        memory->total = (u64)value_now(&numbers[MEMORY_TOTAL]);
        memory->used = (u64)value_now(&numbers[MEMORY_USED]);
        memory->reserved = numbers[MEMORY_RESERVED].known ? (u64)value_now(&numbers[MEMORY_RESERVED]) : 0;
    }
    taken = memory->used + memory->reserved;
    memory->free = memory->total > taken ? memory->total - taken : 0;
}

/* The first version counts as used what the driver keeps for itself, the second tells the two apart. */
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct memory *memory)
{
    BEGIN(CARDS_AND_INSTANCES, device, memory != NULL);
    struct memory_v2 all;
    if (!at.gpu->numbers[MEMORY_TOTAL].known || !at.gpu->numbers[MEMORY_USED].known) {
        result = NVML_ERROR_NOT_SUPPORTED;
    } else {
        sizes(&at, &all);
        memory->total = all.total;
        memory->free = all.free;
        memory->used = all.used + all.reserved;
    }
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct memory_v2 *memory)
{
    BEGIN(CARDS_AND_INSTANCES, device, memory != NULL);
    if (memory->version != VERSIONED(struct memory_v2, 2))
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    else if (!at.gpu->numbers[MEMORY_TOTAL].known || !at.gpu->numbers[MEMORY_USED].known)
        result = NVML_ERROR_NOT_SUPPORTED;
    else
        sizes(&at, memory);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, struct memory *memory)
{
    BEGIN(CARDS_AND_INSTANCES, device, memory != NULL);
    double total = 0, used = 0;
    result = number_of(at.gpu, BAR1_TOTAL, 1, &total);
    if (result == NVML_SUCCESS)
        result = number_of(at.gpu, BAR1_USED, 1, &used);
    memory->total = (u64)total;
    memory->used = (u64)used;
    memory->free = (u64)(total - used);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *now, unsigned *pending)
{
    BEGIN(CARDS, device, now != NULL && pending != NULL);
    double number = 0;
    result = number_of(at.gpu, ECC, 1, &number);
    if (result == NVML_SUCCESS)
        *now = *pending = (unsigned)number;
    END;
}

static nvmlReturn_t errors(const struct gpu *gpu, unsigned type, unsigned counter, u64 *count)
{
    static const enum number COUNTERS[2][2] = {{ECC_CORRECTED_VOLATILE, ECC_CORRECTED_AGGREGATE},
                                               {ECC_UNCORRECTED_VOLATILE, ECC_UNCORRECTED_AGGREGATE}};
    if (!is_on(gpu, ECC))
        return NVML_ERROR_NOT_SUPPORTED;
    *count = counter_of(gpu, COUNTERS[type][counter]);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned type, unsigned counter, u64 *count)
{
    BEGIN(CARDS, device, count != NULL && type < 2 && counter < 2);
    result = errors(at.gpu, type, counter, count);
    END;
}

/* All errors are taken to be in the device memory: the other places have none. */
EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned type, unsigned counter,
                                                    unsigned location, u64 *count)
{
    BEGIN(CARDS, device, count != NULL && type < 2 && counter < 2 && location < 8);
    result = errors(at.gpu, type, counter, count);
    if (result == NVML_SUCCESS && location != 2)
        *count = 0;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, unsigned type, unsigned counter,
                                                   struct ecc_counts *counts)
{
    BEGIN(CARDS, device, counts != NULL && type < 2 && counter < 2);
    memset(counts, 0, sizeof *counts);
    result = errors(at.gpu, type, counter, &counts->deviceMemory);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected, unsigned *uncorrected,
                                              unsigned *pending, unsigned *failed)
{
    BEGIN(CARDS, device, corrected && uncorrected && pending && failed);
    if (!at.gpu->numbers[REMAPPED_CORRECTED].known) {
        result = NVML_ERROR_NOT_SUPPORTED;
    } else {
        *corrected = (unsigned)counter_of(at.gpu, REMAPPED_CORRECTED);
        *uncorrected = (unsigned)counter_of(at.gpu, REMAPPED_UNCORRECTED);
        *pending = (unsigned)is_on(at.gpu, REMAPPED_PENDING);
        *failed = (unsigned)is_on(at.gpu, REMAPPED_FAILED);
    }
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, struct row_remapper_histogram *histogram)
{
    BEGIN(CARDS, device, histogram != NULL);
    unsigned remapped = (unsigned)counter_of(at.gpu, REMAPPED_CORRECTED) +
                        (unsigned)counter_of(at.gpu, REMAPPED_UNCORRECTED);
    memset(histogram, 0, sizeof *histogram);
    histogram->high = remapped < 640 ? remapped : 640;
    histogram->max = 640 - histogram->high;
    if (!at.gpu->numbers[REMAPPED_CORRECTED].known)
        result = NVML_ERROR_NOT_SUPPORTED;
    END;
}

static nvmlReturn_t pages(const struct gpu *gpu, unsigned cause, unsigned *count, u64 *addresses, u64 *times)
{
    enum number which = cause == 0 ? RETIRED_CORRECTED : RETIRED_UNCORRECTED;
    unsigned needed, room = *count;
    if (!gpu->numbers[which].known)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = needed = (unsigned)counter_of(gpu, which);
    if (room < needed)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (needed && !addresses)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < needed; i++) {
        addresses[i] = 0x100000ull * (i + 1) + cause;
        if (times)
            times[i] = 1704067200ull + i;
    }
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned cause, unsigned *count, u64 *addresses)
{
    BEGIN(CARDS, device, count != NULL && cause < 2);
    result = pages(at.gpu, cause, count, addresses, NULL);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, unsigned cause, unsigned *count, u64 *addresses,
                                                 u64 *times)
{
    BEGIN(CARDS, device, count != NULL && cause < 2);
    result = pages(at.gpu, cause, count, addresses, times);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned *pending)
{
    BEGIN(CARDS, device, pending != NULL);
    if (at.gpu->numbers[RETIRED_CORRECTED].known)
        *pending = (unsigned)is_on(at.gpu, RETIRED_PENDING);
    else
        result = NVML_ERROR_NOT_SUPPORTED;
    END;
}
