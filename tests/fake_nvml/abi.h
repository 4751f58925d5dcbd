/* The part of NVML's binary interface that the fake speaks: numbers and layouts only. */
#ifndef FAKE_NVML_ABI_H
#define FAKE_NVML_ABI_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef int nvmlReturn_t;
typedef const struct handle *nvmlDevice_t;
typedef struct event_set *nvmlEventSet_t;
typedef struct gpm_sample *nvmlGpmSample_t;
typedef unsigned long long u64;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999,
};

#define NOT_AVAILABLE_U64 0xFFFFFFFFFFFFFFFFull
#define NO_INSTANCE 0xFFFFFFFFu

/* A version field holds the structure's own size and, in its top byte, the number of the layout. */
#define VERSIONED(type, number) ((unsigned)(sizeof(type) | ((unsigned)(number) << 24)))

struct pci_info_v2 {
    char busId[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId, reserved[4];
};

struct pci_info {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
};

struct memory { u64 total, free, used; };
struct memory_v2 { unsigned version; u64 total, reserved, free, used; };
struct utilization { unsigned gpu, memory; };
struct temperature_v1 { unsigned version, sensorType; int temperature; };
struct margin_temperature { unsigned version; int marginTemperature; };
struct violation_time { u64 referenceTime, violationTime; };
struct row_remapper_histogram { unsigned max, high, partial, low, none; };
struct ecc_counts { u64 l1Cache, l2Cache, deviceMemory, registerFile; };

struct process_v1 { unsigned pid; u64 usedGpuMemory; };
struct process_v2 { unsigned pid; u64 usedGpuMemory; unsigned gpuInstanceId, computeInstanceId; };
struct process_detail {
    unsigned pid;
    u64 usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
    u64 usedGpuCcProtectedMemory;
};
struct process_detail_list { unsigned version, mode, numProcArrayEntries; struct process_detail *procArray; };

struct process_sample { unsigned pid; u64 timeStamp; unsigned smUtil, memUtil, encUtil, decUtil; };
struct process_usage {
    u64 timeStamp;
    unsigned pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
};
struct processes_usage {
    unsigned version, processSamplesCount;
    u64 lastSeenTimeStamp;
    struct process_usage *procUtilArray;
};

struct accounting_stats {
    unsigned gpuUtilization, memoryUtilization;
    u64 maxMemoryUsage, time, startTime;
    unsigned isRunning, reserved[5];
};

union any_value { double dVal; unsigned uiVal; unsigned long ulVal; u64 ullVal; long long sllVal; int siVal; };
enum { TYPE_DOUBLE = 0, TYPE_UINT = 1, TYPE_ULONG = 2, TYPE_U64 = 3, TYPE_S64 = 4, TYPE_INT = 5 };

struct field_value {
    uint32_t fieldId, scopeId;
    int64_t timestamp, latencyUsec;
    unsigned valueType;
    nvmlReturn_t nvmlReturn;
    union any_value value;
};

struct device_attributes {
    unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount;
    unsigned sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
    u64 memorySizeMB;
};

struct gpu_instance_profile {
    unsigned id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount;
    unsigned copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
    u64 memorySizeMB;
};

struct gpu_instance_profile_v2 {
    unsigned version, id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount;
    unsigned copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
    u64 memorySizeMB;
    char name[96];
};

/* The third version; the second ends before healthSummary. */
struct fabric_info {
    unsigned version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned cliqueId;
    unsigned char state;
    unsigned healthMask;
    unsigned char healthSummary;
};

#define EVENT_XID 0x8ull
struct event_data_v1 { nvmlDevice_t device; u64 eventType, eventData; };
struct event_data { nvmlDevice_t device; u64 eventType, eventData; unsigned gpuInstanceId, computeInstanceId; };

struct gpm_metric {
    unsigned metricId;
    nvmlReturn_t nvmlReturn;
    double value;
    struct { const char *shortName, *longName, *unit; } metricInfo;
};

/* How many metrics follow depends on the caller's version of NVML, so only numMetrics may be trusted. */
struct gpm_metrics_get {
    unsigned version, numMetrics;
    nvmlGpmSample_t sample1, sample2;
    struct gpm_metric metrics[];
};

struct gpm_support { unsigned version, isSupportedDevice; };

#endif
