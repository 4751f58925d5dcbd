/* Processes on a card: who is there, with how much memory, and what they took of it lately. */
#include <math.h>
#include <unistd.h>
#include "fake.h"

/* The driver takes its samples at moments of its own; a sample is as old as the last of these moments. */
static const double SAMPLE_SECONDS = 0.1;

static int concerns(const struct target *at, const struct process *process)
{
    return !at->mig || (process->gpu_instance == at->mig->gpu_instance &&
                        process->compute_instance == at->mig->compute_instance);
}

static u64 memory_of(const struct process *process)
{
    return process->memory_known ? (u64)value_now(&process->memory) : NOT_AVAILABLE_U64;
}

/* Both layouts begin alike; the second adds the instances. */
static nvmlReturn_t list(const struct target *at, enum kind kind, unsigned *count, void *out, int second)
{
    unsigned needed = 0, room = *count;
    for (unsigned i = 0; i < at->gpu->process_count; i++)
        needed += at->gpu->processes[i].kind == kind && concerns(at, &at->gpu->processes[i]);
    *count = needed;
    if (room < needed)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (needed && !out)
        return NVML_ERROR_INVALID_ARGUMENT;
    needed = 0;
    for (unsigned i = 0; i < at->gpu->process_count; i++) {
        const struct process *process = &at->gpu->processes[i];
        if (process->kind != kind || !concerns(at, process))
            continue;
        if (second) {
            struct process_v2 *entry = (struct process_v2 *)out + needed++;
            entry->pid = process->pid;
            entry->usedGpuMemory = memory_of(process);
            entry->gpuInstanceId = process->gpu_instance;
            entry->computeInstanceId = process->compute_instance;
        } else {
            struct process_v1 *entry = (struct process_v1 *)out + needed++;
            entry->pid = process->pid;
            entry->usedGpuMemory = memory_of(process);
        }
    }
    return NVML_SUCCESS;
}

#define LIST(function, kind, second)                                                   \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *count, void *out)      \
    {                                                                                  \
        BEGIN(CARDS_AND_INSTANCES, device, count != NULL);                             \
        result = list(&at, kind, count, out, second);                                  \
        END;                                                                           \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, COMPUTE, 0)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTE, 1)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTE, 1)
LIST(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS, 0)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS, 1)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS, 1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, MPS, 0)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, MPS, 1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, MPS, 1)

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, struct process_detail_list *details)
{
    BEGIN(CARDS_AND_INSTANCES, device, details != NULL);
    unsigned needed = 0, room = details->numProcArrayEntries;
    if (details->version != VERSIONED(struct process_detail_list, 1)) {
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        END;
    }
    for (unsigned i = 0; i < at.gpu->process_count; i++) {
        const struct process *process = &at.gpu->processes[i];
        if ((details->mode != 3 && process->kind != (enum kind)details->mode) || !concerns(&at, process))
            continue;
        if (needed < room && details->procArray) {
            struct process_detail *entry = &details->procArray[needed];
            entry->pid = process->pid;
            entry->usedGpuMemory = memory_of(process);
            entry->gpuInstanceId = process->gpu_instance;
            entry->computeInstanceId = process->compute_instance;
            entry->usedGpuCcProtectedMemory = 0;
        }
        needed++;
    }
    details->numProcArrayEntries = needed;
    if (room < needed)
        result = NVML_ERROR_INSUFFICIENT_SIZE;
    END;
}

static unsigned percent(const struct value *value)
{
    double now = value->known ? floor(value_now(value) + 0.5) : 0;
    return (unsigned)(now < 100 ? now : 100);
}

/* How many samples there are that are newer than the caller's last one. */
static nvmlReturn_t samples_wanted(const struct target *at, u64 last_seen, unsigned *count, u64 *time)
{
    unsigned room = *count;
    if (is_on(at->gpu, MIG_MODE))
        return NVML_ERROR_NOT_SUPPORTED;
    *time = (u64)(floor(wall_clock() / SAMPLE_SECONDS) * SAMPLE_SECONDS * 1e6 + 0.5);
    *count = 0;
    for (unsigned i = 0; *time > last_seen && i < at->gpu->process_count; i++)
        *count += (unsigned)at->gpu->processes[i].sampled;
    if (!*count)
        return NVML_ERROR_NOT_FOUND;
    return room < *count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct process_sample *out, unsigned *count,
                                                    u64 last_seen)
{
    BEGIN(CARDS, device, count != NULL);
    u64 time;
    result = samples_wanted(&at, last_seen, count, &time);
    if (result == NVML_SUCCESS && !out)
        result = NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; result == NVML_SUCCESS && i < at.gpu->process_count; i++) {
        const struct process *process = &at.gpu->processes[i];
        if (!process->sampled)
            continue;
        out->pid = process->pid;
        out->timeStamp = time;
        out->smUtil = percent(&process->sm);
        out->memUtil = percent(&process->memory_share);
        out->encUtil = percent(&process->encoder);
        out->decUtil = percent(&process->decoder);
        out++;
    }
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, struct processes_usage *usage)
{
    BEGIN(CARDS, device, usage != NULL);
    struct process_usage *out = usage->procUtilArray;
    u64 time;
    if (usage->version != VERSIONED(struct processes_usage, 1))
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    else
        result = samples_wanted(&at, usage->lastSeenTimeStamp, &usage->processSamplesCount, &time);
    if (result == NVML_SUCCESS && !out)
        result = NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; result == NVML_SUCCESS && i < at.gpu->process_count; i++) {
        const struct process *process = &at.gpu->processes[i];
        if (!process->sampled)
            continue;
        *out = (struct process_usage){time, process->pid, percent(&process->sm), percent(&process->memory_share),
                                      percent(&process->encoder), percent(&process->decoder), 0, 0};
        out++;
    }
    END;
}
