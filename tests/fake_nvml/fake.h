/* What the parts of the fake share: the description in memory, and the way into and out of a call. */
#ifndef FAKE_NVML_FAKE_H
#define FAKE_NVML_FAKE_H

#include <stddef.h>
#include "abi.h"

enum { MAX_GPUS = 64, MAX_MIGS = 16, MAX_METRICS = 64, TEXT = 96, MAX_LINKS = 36 };

/* base + amplitude * sin(2 pi t / period) + rate * (t - since); not known: the card does not have it;
   said: the description speaks of it, if only to say "none". */
struct value { double base, amplitude, period, rate; int known, said; };

enum number {
    MINOR, BRAND, ARCHITECTURE, CAPABILITY_MAJOR, CAPABILITY_MINOR, COMPUTE_MODE, PERSISTENCE, DISPLAY, CORES,
    MEMORY_TOTAL, MEMORY_USED, MEMORY_RESERVED, BAR1_TOTAL, BAR1_USED,
    UTILISATION, MEMORY_UTILISATION, ENCODER, DECODER, JPEG, OFA,
    TEMPERATURE, MEMORY_TEMPERATURE, TEMPERATURE_SHUTDOWN, TEMPERATURE_SLOWDOWN, TEMPERATURE_MEMORY_MAX,
    TEMPERATURE_GPU_MAX,
    POWER, POWER_INSTANT, POWER_LIMIT, POWER_LIMIT_ENFORCED, POWER_LIMIT_DEFAULT, POWER_LIMIT_MIN, POWER_LIMIT_MAX,
    ENERGY,
    CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO,
    CLOCK_GRAPHICS_MAX, CLOCK_SM_MAX, CLOCK_MEMORY_MAX, CLOCK_VIDEO_MAX,
    FAN, FANS, PSTATE, THROTTLE,
    ECC, ECC_CORRECTED_VOLATILE, ECC_UNCORRECTED_VOLATILE, ECC_CORRECTED_AGGREGATE, ECC_UNCORRECTED_AGGREGATE,
    REMAPPED_CORRECTED, REMAPPED_UNCORRECTED, REMAPPED_PENDING, REMAPPED_FAILED,
    RETIRED_CORRECTED, RETIRED_UNCORRECTED, RETIRED_PENDING,
    PCIE_GENERATION, PCIE_GENERATION_MAX, PCIE_WIDTH, PCIE_WIDTH_MAX,
    PCIE_SENT, PCIE_RECEIVED, PCIE_SENT_RATE, PCIE_RECEIVED_RATE, PCIE_REPLAYS,
    NVLINK_LINKS, NVLINK_ACTIVE, NVLINK_VERSION, NVLINK_SENT, NVLINK_RECEIVED,
    NVLINK_REPLAYS, NVLINK_RECOVERIES, NVLINK_CRC_ERRORS,
    ACCOUNTING, MIG_MODE, MIG_MAX,
    NUMBERS
};

enum kind { COMPUTE, GRAPHICS, MPS };

struct process {
    unsigned pid, gpu_instance, compute_instance;
    enum kind kind;
    int memory_known, sampled;
    struct value memory, sm, memory_share, encoder, decoder;
};

struct mig {
    char profile[32], uuid[TEXT];
    unsigned gpu_instance, compute_instance;
    struct value memory_total, memory_used;
};

struct metric { unsigned id; struct value value; };

struct fabric {
    int known;
    unsigned state, clique, health;
    nvmlReturn_t status;
    unsigned char cluster[16];
};

struct gpu {
    char name[TEXT], uuid[TEXT], serial[TEXT], bus_id[32], vbios[32], part[32];
    struct value numbers[NUMBERS];
    struct process *processes;
    unsigned *xids;
    unsigned process_count, xid_count, mig_count, metric_count;
    struct mig migs[MAX_MIGS];
    struct metric metrics[MAX_METRICS];
    struct fabric fabric;
};

enum fault_kind { FAULT_RETURN, FAULT_SLOW, FAULT_HANG };

struct fault {
    char call[TEXT], line[256];
    int gpu; /* -1: every call, also those without a device */
    enum fault_kind kind;
    nvmlReturn_t result;
    double milliseconds;
    unsigned long after, times, met; /* times 0: for ever */
};

struct description {
    char driver[TEXT], nvml[TEXT];
    int cuda;
    double since;
    struct gpu *gpus[MAX_GPUS];
    struct fault *faults;
    int gpu_count;
    unsigned fault_count;
};

/* A handle outlives re-reading: it names a place in the description, not the description itself. */
struct handle { short gpu, mig; };

struct target { struct description *all; struct gpu *gpu; struct mig *mig; int index; };

enum accepts { SYSTEM, CARDS, CARDS_AND_INSTANCES };

/* value.c */
double wall_clock(void);
unsigned monotonic_milliseconds(void);
void sleep_milliseconds(double milliseconds);
struct value constant(double base);
int value_moves(const struct value *value);
double value_at(const struct value *value, double time, double since);
double value_now(const struct value *value);
const char *parse_value(char **words, int *used, struct value *value);
const char *parse_number(const char *word, double *number);

/* describe.c, defaults.c, words.c */
struct description *describe(char *text, const char *path);
void forget(struct description *description);
struct gpu *default_gpu(int index);
void finish_gpu(struct gpu *gpu, int index);
const char *parse_word_number(const char *key, const char *word, double *number);
const char *parse_throttle(char **words, double *mask);
const char *parse_process(char **words, struct gpu *gpu);
const char *parse_mig(char **words, struct gpu *gpu);
const char *parse_metric(char **words, struct gpu *gpu);
const char *parse_fault(char **words, const char *line, int gpu, struct description *description);
void *grow(void *list, unsigned count, size_t size);

/* fabric.c */
const char *parse_fabric(char **words, struct fabric *fabric);

/* source.c */
struct description *current(void);
double current_since(void);
void lock(void);
void leave(void);
int initialised(void);
nvmlReturn_t enter(struct target *at, const char *call, enum accepts accepts, nvmlDevice_t device, int arguments);
int handle_place(nvmlDevice_t device, int *gpu, int *mig);
nvmlDevice_t handle_of(int gpu, int mig);

/* faults.c */
nvmlReturn_t meet_faults(const char *call, int gpu);
void keep_counts(const struct description *before, struct description *after);

/* numbers.c */
nvmlReturn_t number_of(const struct gpu *gpu, enum number which, double scale, double *out);
u64 counter_of(const struct gpu *gpu, enum number which);
int is_on(const struct gpu *gpu, enum number which);
nvmlReturn_t copy_text(char *to, unsigned room, const char *text);

/* nvlink.c, gpm.c */
u64 link_share(const struct gpu *gpu, enum number which, unsigned link);
unsigned metric_id(const char *word);

/* The lock is held between BEGIN and END; BEGIN leaves the function when the call cannot be served. */
#define BEGIN(accepts, device, arguments)                                                  \
    struct target at;                                                                      \
    nvmlReturn_t result = enter(&at, __func__, accepts, device, arguments);                \
    if (result != NVML_SUCCESS)                                                            \
        return result
#define END            \
    do {               \
        leave();       \
        return result; \
    } while (0)

#endif
