/* What a card is: its names, modes and links, which change with the set-up only. */
#include <stdio.h>
#include "fake.h"

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    BEGIN(CARDS_AND_INSTANCES, device, name != NULL);
    char full[TEXT + 40];
    snprintf(full, sizeof full, at.mig ? "%s MIG %s" : "%s", at.gpu->name, at.mig ? at.mig->profile : "");
    result = copy_text(name, length, full);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    BEGIN(CARDS_AND_INSTANCES, device, uuid != NULL);
    result = copy_text(uuid, length, at.mig ? at.mig->uuid : at.gpu->uuid);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned length)
{
    BEGIN(CARDS, device, serial != NULL);
    result = at.gpu->serial[0] ? copy_text(serial, length, at.gpu->serial) : NVML_ERROR_NOT_SUPPORTED;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned length)
{
    BEGIN(CARDS, device, version != NULL);
    result = copy_text(version, length, at.gpu->vbios);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char *number, unsigned length)
{
    BEGIN(CARDS, device, number != NULL);
    result = copy_text(number, length, at.gpu->part);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    BEGIN(CARDS_AND_INSTANCES, device, index != NULL);
    *index = (unsigned)(at.mig ? at.mig - at.gpu->migs : at.index);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    BEGIN(CARDS_AND_INSTANCES, device, major != NULL && minor != NULL);
    *major = (int)at.gpu->numbers[CAPABILITY_MAJOR].base;
    *minor = (int)at.gpu->numbers[CAPABILITY_MINOR].base;
    END;
}

/* One unsigned number of a card, as it is described. */
#define FACT(function, which)                                        \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *out) \
    {                                                                \
        BEGIN(CARDS, device, out != NULL);                           \
        double number;                                               \
        result = number_of(at.gpu, which, 1, &number);               \
        if (result == NVML_SUCCESS)                                  \
            *out = (unsigned)number;                                 \
        END;                                                         \
    }

FACT(nvmlDeviceGetMinorNumber, MINOR)
FACT(nvmlDeviceGetBrand, BRAND)
FACT(nvmlDeviceGetArchitecture, ARCHITECTURE)
FACT(nvmlDeviceGetComputeMode, COMPUTE_MODE)
FACT(nvmlDeviceGetPersistenceMode, PERSISTENCE)
FACT(nvmlDeviceGetDisplayMode, DISPLAY)
FACT(nvmlDeviceGetDisplayActive, DISPLAY)
FACT(nvmlDeviceGetNumGpuCores, CORES)
FACT(nvmlDeviceGetNumFans, FANS)
FACT(nvmlDeviceGetCurrPcieLinkGeneration, PCIE_GENERATION)
FACT(nvmlDeviceGetMaxPcieLinkGeneration, PCIE_GENERATION_MAX)
FACT(nvmlDeviceGetGpuMaxPcieLinkGeneration, PCIE_GENERATION_MAX)
FACT(nvmlDeviceGetCurrPcieLinkWidth, PCIE_WIDTH)
FACT(nvmlDeviceGetMaxPcieLinkWidth, PCIE_WIDTH_MAX)
FACT(nvmlDeviceGetPcieReplayCounter, PCIE_REPLAYS)

EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned counter, unsigned *kilobytes)
{
    BEGIN(CARDS, device, kilobytes != NULL && counter < 2);
    double number;
    result = number_of(at.gpu, counter == 0 ? PCIE_SENT_RATE : PCIE_RECEIVED_RATE, 1, &number);
    if (result == NVML_SUCCESS)
        *kilobytes = (unsigned)number;
    END;
}

/* The two below exist so that programs made for Windows, too, get the answer Linux gives. */
EXPORT nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, unsigned *current_model, unsigned *pending)
{
    BEGIN(CARDS, device, current_model != NULL && pending != NULL);
    result = NVML_ERROR_NOT_SUPPORTED;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t device, unsigned *current_model, unsigned *pending)
{
    BEGIN(CARDS, device, current_model != NULL && pending != NULL);
    result = NVML_ERROR_NOT_SUPPORTED;
    END;
}
