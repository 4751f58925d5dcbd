/* NVLink: links, their state and counters; a total is described, each link has its share of it. */
#include <string.h>
#include <stdio.h>
#include "fake.h"

static unsigned links_of(const struct gpu *gpu)
{
    return gpu->numbers[NVLINK_LINKS].known ? (unsigned)gpu->numbers[NVLINK_LINKS].base : 0;
}

/* The first link has what is left over, so that the shares add up to the total. */
u64 link_share(const struct gpu *gpu, enum number which, unsigned link)
{
    u64 total = counter_of(gpu, which);
    unsigned links = links_of(gpu);
    if (!links || link >= links)
        return 0;
    return total / links + (link == 0 ? total % links : 0);
}

static nvmlReturn_t check(const struct gpu *gpu, unsigned link)
{
    if (link >= MAX_LINKS)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!links_of(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    return link < links_of(gpu) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static unsigned up(const struct gpu *gpu, unsigned link)
{
    return link < (unsigned)gpu->numbers[NVLINK_ACTIVE].base;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned *state)
{
    BEGIN(CARDS, device, state != NULL);
    if ((result = check(at.gpu, link)) == NVML_SUCCESS)
        *state = up(at.gpu, link);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned link, unsigned *version)
{
    /* NVML numbers the versions 1, 2, 2.2, 3, 3.1, 4, 5 of NVLink in a row. */
    static const unsigned NUMBERS_OF[] = {0, 1, 2, 4, 6, 7, 8};
    BEGIN(CARDS, device, version != NULL);
    if ((result = check(at.gpu, link)) == NVML_SUCCESS) {
        unsigned generation = (unsigned)at.gpu->numbers[NVLINK_VERSION].base;
        *version = NUMBERS_OF[generation < 6 ? generation : 6];
    }
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned link, unsigned capability,
                                                  unsigned *has)
{
    BEGIN(CARDS, device, has != NULL && capability < 6);
    if ((result = check(at.gpu, link)) == NVML_SUCCESS)
        *has = capability != 4;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned link, unsigned counter, u64 *count)
{
    static const enum number COUNTERS[] = {NVLINK_REPLAYS, NVLINK_RECOVERIES, NVLINK_CRC_ERRORS};
    BEGIN(CARDS, device, count != NULL && counter < 5);
    if ((result = check(at.gpu, link)) == NVML_SUCCESS)
        *count = counter < 3 ? link_share(at.gpu, COUNTERS[counter], link) : 0;
    END;
}

static nvmlReturn_t remote(const struct gpu *gpu, unsigned link, struct pci_info *info)
{
    nvmlReturn_t result = check(gpu, link);
    if (result != NVML_SUCCESS)
        return result;
    if (!up(gpu, link))
        return NVML_ERROR_NOT_SUPPORTED;
    memset(info, 0, sizeof *info);
    info->bus = 0xC0 + link % 4;
    info->pciDeviceId = 0x22A310DE;
    snprintf(info->busId, sizeof info->busId, "00000000:%02X:00.0", info->bus);
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "0000:%02X:00.0", info->bus);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned link, struct pci_info *info)
{
    BEGIN(CARDS, device, info != NULL);
    result = remote(at.gpu, link, info);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, struct pci_info *info)
{
    BEGIN(CARDS, device, info != NULL);
    result = remote(at.gpu, link, info);
    END;
}
