/* GPM: activity between two samples, on the cards that are described with `gpm` lines. */
#include <stdlib.h>
#include <string.h>
#include "fake.h"

struct gpm_sample { int gpu, taken; double time; };

static const struct { unsigned id; const char *word, *unit; } METRICS[] = {
    {1, "graphics", "%"},      {2, "sm", "%"},           {3, "occupancy", "%"},       {4, "integer", "%"},
    {5, "tensor", "%"},        {6, "tensor_dfma", "%"},  {7, "tensor_hmma", "%"},     {9, "tensor_imma", "%"},
    {10, "dram", "%"},         {11, "fp64", "%"},        {12, "fp32", "%"},           {13, "fp16", "%"},
    {20, "pcie_sent", "MiB/s"}, {21, "pcie_received", "MiB/s"},
    {60, "nvlink_received", "MiB/s"}, {61, "nvlink_sent", "MiB/s"},
};

enum { METRIC_WORDS = sizeof METRICS / sizeof *METRICS };

unsigned metric_id(const char *word)
{
    for (int i = 0; i < METRIC_WORDS; i++)
        if (strcmp(METRICS[i].word, word) == 0)
            return METRICS[i].id;
    return (unsigned)strtoul(word, NULL, 10);
}

EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, struct gpm_support *support)
{
    BEGIN(CARDS_AND_INSTANCES, device, support != NULL);
    if (support->version != 1)
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    else
        support->isSupportedDevice = at.gpu->metric_count > 0;
    END;
}

EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    BEGIN(SYSTEM, NULL, sample != NULL);
    (void)at;
    *sample = calloc(1, sizeof **sample);
    if (!*sample)
        result = NVML_ERROR_MEMORY;
    END;
}

EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    BEGIN(SYSTEM, NULL, sample != NULL);
    (void)at;
    free(sample);
    END;
}

static nvmlReturn_t take(const struct target *at, nvmlGpmSample_t sample)
{
    if (!at->gpu->metric_count)
        return NVML_ERROR_NOT_SUPPORTED;
    *sample = (struct gpm_sample){at->index, 1, wall_clock()};
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    BEGIN(CARDS, device, sample != NULL);
    result = take(&at, sample);
    END;
}

EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned gpu_instance, nvmlGpmSample_t sample)
{
    BEGIN(CARDS, device, sample != NULL);
    result = NVML_ERROR_NOT_FOUND;
    for (unsigned i = 0; i < at.gpu->mig_count && result == NVML_ERROR_NOT_FOUND; i++)
        if (at.gpu->migs[i].gpu_instance == gpu_instance)
            result = take(&at, sample);
    END;
}

static void fill(const struct gpu *gpu, double time, struct gpm_metric *metric)
{
    metric->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    metric->value = 0;
    memset(&metric->metricInfo, 0, sizeof metric->metricInfo);
    for (int i = 0; i < METRIC_WORDS; i++)
        if (METRICS[i].id == metric->metricId) {
            metric->metricInfo.shortName = metric->metricInfo.longName = METRICS[i].word;
            metric->metricInfo.unit = METRICS[i].unit;
        }
    for (unsigned i = 0; i < gpu->metric_count; i++)
        if (gpu->metrics[i].id == metric->metricId && gpu->metrics[i].value.known) {
            metric->nvmlReturn = NVML_SUCCESS;
            metric->value = value_at(&gpu->metrics[i].value, time, current_since());
        }
}

EXPORT nvmlReturn_t nvmlGpmMetricsGet(struct gpm_metrics_get *get)
{
    BEGIN(SYSTEM, NULL, get != NULL && get->sample1 && get->sample2 && get->sample1 != get->sample2);
    const struct gpm_sample *first = get->sample1, *second = get->sample2;
    if (get->version != 1)
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    else if (!first->taken || !second->taken || first->gpu != second->gpu || first->time > second->time)
        result = NVML_ERROR_INVALID_ARGUMENT;
    else if ((result = meet_faults(__func__, second->gpu)) == NVML_SUCCESS && second->gpu >= current()->gpu_count)
        result = NVML_ERROR_GPU_IS_LOST;
    (void)at;
    for (unsigned i = 0; result == NVML_SUCCESS && i < get->numMetrics; i++)
        fill(current()->gpus[second->gpu], second->time, &get->metrics[i]);
    END;
}
