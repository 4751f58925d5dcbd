/* Multi-instance GPUs: a card cut into instances that are devices of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fake.h"

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *now, unsigned *pending)
{
    BEGIN(CARDS, device, now != NULL && pending != NULL);
    if (at.gpu->numbers[MIG_MODE].known)
        *now = *pending = (unsigned)is_on(at.gpu, MIG_MODE);
    else
        result = NVML_ERROR_NOT_SUPPORTED;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
    BEGIN(CARDS, device, count != NULL);
    *count = at.gpu->numbers[MIG_MAX].known ? (unsigned)at.gpu->numbers[MIG_MAX].base : 0;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *mig)
{
    BEGIN(CARDS, device, mig != NULL);
    if (!is_on(at.gpu, MIG_MODE))
        result = NVML_ERROR_NOT_SUPPORTED;
    else if (index >= (unsigned)at.gpu->numbers[MIG_MAX].base)
        result = NVML_ERROR_INVALID_ARGUMENT;
    else if (index >= at.gpu->mig_count)
        result = NVML_ERROR_NOT_FOUND;
    else
        *mig = handle_of(at.index, (int)index);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is)
{
    BEGIN(CARDS_AND_INSTANCES, device, is != NULL);
    *is = at.mig != NULL;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device)
{
    BEGIN(CARDS_AND_INSTANCES, mig, device != NULL);
    if (at.mig)
        *device = handle_of(at.index, -1);
    else
        result = NVML_ERROR_INVALID_ARGUMENT;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id)
{
    BEGIN(CARDS_AND_INSTANCES, device, id != NULL);
    if (at.mig)
        *id = at.mig->gpu_instance;
    else
        result = NVML_ERROR_NOT_SUPPORTED;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id)
{
    BEGIN(CARDS_AND_INSTANCES, device, id != NULL);
    if (at.mig)
        *id = at.mig->compute_instance;
    else
        result = NVML_ERROR_NOT_SUPPORTED;
    END;
}

/* A profile is called 3g.20gb, or 1c.3g.20gb where a compute instance is smaller than its GPU instance. */
static void slices(const char *profile, unsigned *gpu, unsigned *compute)
{
    const char *rest = strchr(profile, 'c');
    *compute = (unsigned)strtoul(profile, NULL, 10);
    *gpu = rest && rest[1] == '.' ? (unsigned)strtoul(rest + 2, NULL, 10) : *compute;
}

static nvmlReturn_t attributes(const struct target *at, struct device_attributes *out)
{
    unsigned gpu, compute;
    if (!at->mig)
        return NVML_ERROR_NOT_SUPPORTED;
    slices(at->mig->profile, &gpu, &compute);
    memset(out, 0, sizeof *out);
    out->multiprocessorCount = compute * 14;
    out->sharedCopyEngineCount = gpu;
    out->sharedDecoderCount = gpu > 1 ? gpu / 2 : 0;
    out->gpuInstanceSliceCount = gpu;
    out->computeInstanceSliceCount = compute;
    out->memorySizeMB = (u64)(value_now(&at->mig->memory_total) / 1048576);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, struct device_attributes *out)
{
    BEGIN(CARDS_AND_INSTANCES, device, out != NULL);
    result = attributes(&at, out);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, struct device_attributes *out)
{
    BEGIN(CARDS_AND_INSTANCES, device, out != NULL);
    result = attributes(&at, out);
    END;
}

/* Profiles by NVML's number: slices of compute and of memory, and how many fit on a card. */
static const struct { unsigned slices, memory, fit; } PROFILES[] = {
    {1, 1, 7}, {2, 2, 3}, {3, 4, 2}, {4, 4, 1}, {7, 8, 1},
};

static nvmlReturn_t profile_of(const struct gpu *gpu, unsigned number, struct gpu_instance_profile *out)
{
    if (!gpu->numbers[MIG_MODE].known || number >= sizeof PROFILES / sizeof *PROFILES)
        return NVML_ERROR_NOT_SUPPORTED;
    memset(out, 0, sizeof *out);
    out->id = number;
    out->sliceCount = PROFILES[number].slices;
    out->instanceCount = PROFILES[number].fit;
    out->multiprocessorCount = PROFILES[number].slices * 14;
    out->copyEngineCount = PROFILES[number].slices;
    out->memorySizeMB = (u64)(value_now(&gpu->numbers[MEMORY_TOTAL]) / 1048576 / 8 * PROFILES[number].memory);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned number,
                                                        struct gpu_instance_profile *out)
{
    BEGIN(CARDS, device, out != NULL);
    result = profile_of(at.gpu, number, out);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned number,
                                                         struct gpu_instance_profile_v2 *out)
{
    BEGIN(CARDS, device, out != NULL);
    struct gpu_instance_profile first = {0};
    if (out->version != VERSIONED(struct gpu_instance_profile_v2, 2)) {
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    } else if ((result = profile_of(at.gpu, number, &first)) == NVML_SUCCESS) {
        out->id = first.id;
        out->isP2pSupported = first.isP2pSupported;
        out->sliceCount = first.sliceCount;
        out->instanceCount = first.instanceCount;
        out->multiprocessorCount = first.multiprocessorCount;
        out->copyEngineCount = first.copyEngineCount;
        out->decoderCount = out->encoderCount = out->jpegCount = out->ofaCount = 0;
        out->memorySizeMB = first.memorySizeMB;
        snprintf(out->name, sizeof out->name, "MIG %ug.%llugb", first.sliceCount, (first.memorySizeMB + 512) / 1024);
    }
    END;
}
