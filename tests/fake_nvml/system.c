/* Calls about the driver as a whole, and the ways to a device's handle. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "fake.h"

static const struct { nvmlReturn_t result; const char *text; } MESSAGES[] = {
    {NVML_SUCCESS, "Success"},
    {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
    {NVML_ERROR_NOT_FOUND, "Not Found"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {NVML_ERROR_TIMEOUT, "Timeout"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
    {NVML_ERROR_RESET_REQUIRED, "GPU requires reset"},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch"},
    {NVML_ERROR_MEMORY, "Insufficient Memory"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
};

EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    for (size_t i = 0; i < sizeof MESSAGES / sizeof *MESSAGES; i++)
        if (MESSAGES[i].result == result)
            return MESSAGES[i].text;
    return "Unknown Error";
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    BEGIN(SYSTEM, NULL, version != NULL);
    result = copy_text(version, length, at.all->driver);
    END;
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    BEGIN(SYSTEM, NULL, version != NULL);
    result = copy_text(version, length, at.all->nvml);
    END;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    BEGIN(SYSTEM, NULL, version != NULL);
    *version = at.all->cuda;
    END;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    BEGIN(SYSTEM, NULL, version != NULL);
    *version = at.all->cuda;
    END;
}

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    BEGIN(SYSTEM, NULL, name != NULL && length > 0);
    char path[32];
    FILE *file;
    (void)at;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    name[0] = 0;
    if ((file = fopen(path, "re"))) {
        name[fread(name, 1, length - 1, file)] = 0;
        fclose(file);
    } else {
        result = NVML_ERROR_NOT_FOUND;
    }
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
    BEGIN(SYSTEM, NULL, count != NULL);
    *count = (unsigned)at.all->gpu_count;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    BEGIN(SYSTEM, NULL, count != NULL);
    *count = (unsigned)at.all->gpu_count;
    END;
}

/* A card's own faults meet whoever asks for its handle, too: a lost card cannot be opened. */
static nvmlReturn_t open_card(const char *call, int gpu, int mig, nvmlDevice_t *device)
{
    nvmlReturn_t result = meet_faults(call, gpu);
    if (result == NVML_SUCCESS)
        *device = handle_of(gpu, mig);
    return result;
}

static nvmlReturn_t by_index(const char *call, const struct target *at, unsigned index, nvmlDevice_t *device)
{
    if (index >= (unsigned)at->all->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    return open_card(call, (int)index, -1, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    BEGIN(SYSTEM, NULL, device != NULL);
    result = by_index(__func__, &at, index, device);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    BEGIN(SYSTEM, NULL, device != NULL);
    result = by_index(__func__, &at, index, device);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    BEGIN(SYSTEM, NULL, uuid != NULL && device != NULL);
    for (int gpu = 0; gpu < at.all->gpu_count; gpu++) {
        const struct gpu *card = at.all->gpus[gpu];
        int mig = -1;
        if (strcasecmp(card->uuid, uuid) != 0)
            for (mig = 0; mig < (int)card->mig_count && strcasecmp(card->migs[mig].uuid, uuid) != 0;)
                mig++;
        if (mig < (int)card->mig_count) {
            result = open_card(__func__, gpu, mig, device);
            END;
        }
    }
    result = NVML_ERROR_NOT_FOUND;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    BEGIN(SYSTEM, NULL, serial != NULL && device != NULL);
    for (int gpu = 0; gpu < at.all->gpu_count; gpu++)
        if (at.all->gpus[gpu]->serial[0] && strcmp(at.all->gpus[gpu]->serial, serial) == 0) {
            result = open_card(__func__, gpu, -1, device);
            END;
        }
    result = NVML_ERROR_NOT_FOUND;
    END;
}

static int place_on_bus(const char *text, unsigned *domain, unsigned *bus, unsigned *device)
{
    if (sscanf(text, "%x:%x:%x", domain, bus, device) == 3)
        return 1;
    *domain = 0;
    return sscanf(text, "%x:%x", bus, device) == 2;
}

static nvmlReturn_t by_bus(const char *call, const struct target *at, const char *text, nvmlDevice_t *device)
{
    unsigned wanted[3], is[3];
    if (!place_on_bus(text, &wanted[0], &wanted[1], &wanted[2]))
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int gpu = 0; gpu < at->all->gpu_count; gpu++)
        if (place_on_bus(at->all->gpus[gpu]->bus_id, &is[0], &is[1], &is[2]) && memcmp(wanted, is, sizeof is) == 0)
            return open_card(call, gpu, -1, device);
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    BEGIN(SYSTEM, NULL, bus_id != NULL && device != NULL);
    result = by_bus(__func__, &at, bus_id, device);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    BEGIN(SYSTEM, NULL, bus_id != NULL && device != NULL);
    result = by_bus(__func__, &at, bus_id, device);
    END;
}

static nvmlReturn_t bus_facts(const struct gpu *gpu, struct pci_info *info)
{
    memset(info, 0, sizeof *info);
    if (!place_on_bus(gpu->bus_id, &info->domain, &info->bus, &info->device))
        return NVML_ERROR_UNKNOWN;
    snprintf(info->busId, sizeof info->busId, "%s", gpu->bus_id);
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.0", info->domain & 0xFFFF,
             info->bus & 0xFF, info->device & 0xFF);
    info->pciDeviceId = 0x233010DE;
    info->pciSubSystemId = 0x16C110DE;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct pci_info *info)
{
    BEGIN(CARDS, device, info != NULL);
    result = bus_facts(at.gpu, info);
    END;
}

static nvmlReturn_t old_bus_facts(const struct gpu *gpu, struct pci_info_v2 *old)
{
    struct pci_info info;
    nvmlReturn_t result = bus_facts(gpu, &info);
    memset(old, 0, sizeof *old);
    memcpy(old->busId, info.busIdLegacy, sizeof old->busId);
    old->domain = info.domain;
    old->bus = info.bus;
    old->device = info.device;
    old->pciDeviceId = info.pciDeviceId;
    old->pciSubSystemId = info.pciSubSystemId;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, struct pci_info_v2 *info)
{
    BEGIN(CARDS, device, info != NULL);
    result = old_bus_facts(at.gpu, info);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, struct pci_info_v2 *info)
{
    BEGIN(CARDS, device, info != NULL);
    result = old_bus_facts(at.gpu, info);
    END;
}
