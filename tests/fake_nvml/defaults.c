/* The card that is there when the description says no more than `gpu`: an idle workstation board. */
#include <stdio.h>
#include <stdlib.h>
#include "fake.h"

static const struct { enum number which; double base; } KNOWN[] = {
    {BRAND, 14}, {ARCHITECTURE, 7}, {CAPABILITY_MAJOR, 8}, {CAPABILITY_MINOR, 6}, {COMPUTE_MODE, 0},
    {PERSISTENCE, 1}, {DISPLAY, 0}, {CORES, 10752},
    {MEMORY_TOTAL, 24 * 1073741824.0}, {MEMORY_USED, 0}, {MEMORY_RESERVED, 512 * 1048576.0},
    {BAR1_TOTAL, 256 * 1048576.0}, {BAR1_USED, 3 * 1048576.0},
    {UTILISATION, 0}, {MEMORY_UTILISATION, 0}, {ENCODER, 0}, {DECODER, 0}, {JPEG, 0}, {OFA, 0},
    {TEMPERATURE, 35}, {TEMPERATURE_SHUTDOWN, 98}, {TEMPERATURE_SLOWDOWN, 95}, {TEMPERATURE_GPU_MAX, 93},
    {POWER, 25}, {POWER_LIMIT, 350}, {POWER_LIMIT_DEFAULT, 350}, {POWER_LIMIT_MIN, 100}, {POWER_LIMIT_MAX, 400},
    {ENERGY, 0},
    {CLOCK_GRAPHICS, 210}, {CLOCK_SM, 210}, {CLOCK_MEMORY, 405}, {CLOCK_VIDEO, 555},
    {CLOCK_GRAPHICS_MAX, 2100}, {CLOCK_SM_MAX, 2100}, {CLOCK_MEMORY_MAX, 9751}, {CLOCK_VIDEO_MAX, 1950},
    {FAN, 30}, {FANS, 1}, {PSTATE, 8}, {THROTTLE, 1},
    {PCIE_GENERATION, 4}, {PCIE_GENERATION_MAX, 4}, {PCIE_WIDTH, 16}, {PCIE_WIDTH_MAX, 16}, {PCIE_REPLAYS, 0},
    {ACCOUNTING, 0},
};

struct gpu *default_gpu(int index)
{
    struct gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return NULL;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        gpu->numbers[KNOWN[i].which] = constant(KNOWN[i].base);
    gpu->numbers[MINOR] = constant(index);
    snprintf(gpu->name, sizeof gpu->name, "NVIDIA Fake GPU");
    snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-fa4e0000-0000-4000-8000-%012x", (unsigned)index);
    snprintf(gpu->serial, sizeof gpu->serial, "13200%08d", index);
    snprintf(gpu->bus_id, sizeof gpu->bus_id, "00000000:%02X:00.0", (unsigned)(0x10 + index) & 0xFF);
    snprintf(gpu->vbios, sizeof gpu->vbios, "94.02.71.00.01");
    snprintf(gpu->part, sizeof gpu->part, "900-0FAKE-0000-000");
    return gpu;
}

/* What follows from other lines where the description is silent. */
void finish_gpu(struct gpu *gpu, int index)
{
    struct value *numbers = gpu->numbers;
    double links = numbers[NVLINK_LINKS].known ? numbers[NVLINK_LINKS].base : 0;
    if (!numbers[POWER_LIMIT_ENFORCED].said)
        numbers[POWER_LIMIT_ENFORCED] = numbers[POWER_LIMIT];
    if (!numbers[POWER_INSTANT].said)
        numbers[POWER_INSTANT] = numbers[POWER];
    if (!numbers[PCIE_SENT_RATE].said)
        numbers[PCIE_SENT_RATE] = constant(numbers[PCIE_SENT].rate / 1000);
    if (!numbers[PCIE_RECEIVED_RATE].said)
        numbers[PCIE_RECEIVED_RATE] = constant(numbers[PCIE_RECEIVED].rate / 1000);
    if (links > 0 && !numbers[NVLINK_ACTIVE].said)
        numbers[NVLINK_ACTIVE] = constant(links);
    if (links > 0 && !numbers[NVLINK_VERSION].said)
        numbers[NVLINK_VERSION] = constant(4);
    if (gpu->mig_count && !numbers[MIG_MODE].said)
        numbers[MIG_MODE] = constant(1);
    if (numbers[MIG_MODE].known && !numbers[MIG_MAX].said)
        numbers[MIG_MAX] = constant(7);
    for (unsigned i = 0; i < gpu->mig_count; i++)
        if (!gpu->migs[i].uuid[0])
            snprintf(gpu->migs[i].uuid, sizeof gpu->migs[i].uuid, "MIG-fa4e%04x-0000-5000-8000-%012x",
                     (unsigned)index & 0xFFFF, i);
}
