/* The description file, line by line, into memory; a bad line is named on stderr and nothing of it is kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fake.h"

enum { MAX_WORDS = 64 };

static const struct { const char *key; enum number which; } KEYS[] = {
    {"minor", MINOR}, {"brand", BRAND}, {"architecture", ARCHITECTURE}, {"compute_mode", COMPUTE_MODE},
    {"persistence", PERSISTENCE}, {"display", DISPLAY}, {"cores", CORES},
    {"memory_total", MEMORY_TOTAL}, {"memory_used", MEMORY_USED}, {"memory_reserved", MEMORY_RESERVED},
    {"bar1_total", BAR1_TOTAL}, {"bar1_used", BAR1_USED},
    {"utilisation", UTILISATION}, {"memory_utilisation", MEMORY_UTILISATION},
    {"encoder", ENCODER}, {"decoder", DECODER}, {"jpeg", JPEG}, {"ofa", OFA},
    {"temperature", TEMPERATURE}, {"memory_temperature", MEMORY_TEMPERATURE},
    {"temperature_shutdown", TEMPERATURE_SHUTDOWN}, {"temperature_slowdown", TEMPERATURE_SLOWDOWN},
    {"temperature_memory_max", TEMPERATURE_MEMORY_MAX}, {"temperature_gpu_max", TEMPERATURE_GPU_MAX},
    {"power", POWER}, {"power_instant", POWER_INSTANT}, {"power_limit", POWER_LIMIT},
    {"power_limit_enforced", POWER_LIMIT_ENFORCED}, {"power_limit_default", POWER_LIMIT_DEFAULT},
    {"power_limit_min", POWER_LIMIT_MIN}, {"power_limit_max", POWER_LIMIT_MAX}, {"energy", ENERGY},
    {"clock_graphics", CLOCK_GRAPHICS}, {"clock_sm", CLOCK_SM}, {"clock_memory", CLOCK_MEMORY},
    {"clock_video", CLOCK_VIDEO}, {"clock_graphics_max", CLOCK_GRAPHICS_MAX}, {"clock_sm_max", CLOCK_SM_MAX},
    {"clock_memory_max", CLOCK_MEMORY_MAX}, {"clock_video_max", CLOCK_VIDEO_MAX},
    {"fan", FAN}, {"fans", FANS}, {"pstate", PSTATE},
    {"ecc", ECC}, {"ecc_corrected_volatile", ECC_CORRECTED_VOLATILE},
    {"ecc_uncorrected_volatile", ECC_UNCORRECTED_VOLATILE}, {"ecc_corrected_aggregate", ECC_CORRECTED_AGGREGATE},
    {"ecc_uncorrected_aggregate", ECC_UNCORRECTED_AGGREGATE},
    {"remapped_corrected", REMAPPED_CORRECTED}, {"remapped_uncorrected", REMAPPED_UNCORRECTED},
    {"remapped_pending", REMAPPED_PENDING}, {"remapped_failed", REMAPPED_FAILED},
    {"retired_corrected", RETIRED_CORRECTED}, {"retired_uncorrected", RETIRED_UNCORRECTED},
    {"retired_pending", RETIRED_PENDING},
    {"pcie_generation", PCIE_GENERATION}, {"pcie_generation_max", PCIE_GENERATION_MAX},
    {"pcie_width", PCIE_WIDTH}, {"pcie_width_max", PCIE_WIDTH_MAX},
    {"pcie_sent", PCIE_SENT}, {"pcie_received", PCIE_RECEIVED}, {"pcie_sent_rate", PCIE_SENT_RATE},
    {"pcie_received_rate", PCIE_RECEIVED_RATE}, {"pcie_replays", PCIE_REPLAYS},
    {"nvlink_links", NVLINK_LINKS}, {"nvlink_active", NVLINK_ACTIVE}, {"nvlink_version", NVLINK_VERSION},
    {"nvlink_sent", NVLINK_SENT}, {"nvlink_received", NVLINK_RECEIVED}, {"nvlink_replays", NVLINK_REPLAYS},
    {"nvlink_recoveries", NVLINK_RECOVERIES}, {"nvlink_crc_errors", NVLINK_CRC_ERRORS},
    {"accounting", ACCOUNTING}, {"mig_mode", MIG_MODE}, {"mig_max", MIG_MAX},
};

static const char *parse_text(const char *rest, char *to, size_t room)
{
    if (!rest[0])
        return "a text is missing";
    if (strlen(rest) >= room)
        return "this text is too long";
    strcpy(to, rest);
    return NULL;
}

static const char *parse_dotted(const char *word, int *major, int *minor)
{
    char more;
    if (!word || sscanf(word, "%d.%d%c", major, minor, &more) != 2)
        return "a version such as 12.4 is wanted";
    return NULL;
}

static const char *parse_key(char **words, struct gpu *gpu)
{
    const char *wrong;
    int used;
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        struct value *value = &gpu->numbers[KEYS[i].which];
        double number;
        if (strcmp(KEYS[i].key, words[0]) != 0)
            continue;
        if (!parse_word_number(words[0], words[1], &number)) {
            *value = constant(number);
            return words[2] ? "there is something after the value" : NULL;
        }
        if ((wrong = parse_value(words + 1, &used, value)))
            return wrong;
        return words[1 + used] ? "there is something after the value" : NULL;
    }
    return "this word is not known";
}

static const char *parse_gpu_line(char **words, const char *rest, struct gpu *gpu)
{
    const char *wrong;
    double number;
    int major, minor;
    if (strcmp(words[0], "name") == 0)
        return parse_text(rest, gpu->name, sizeof gpu->name);
    if (strcmp(words[0], "uuid") == 0)
        return parse_text(rest, gpu->uuid, sizeof gpu->uuid);
    if (strcmp(words[0], "serial") == 0) {
        if (strcmp(rest, "none") != 0)
            return parse_text(rest, gpu->serial, sizeof gpu->serial);
        gpu->serial[0] = 0;
        return NULL;
    }
    if (strcmp(words[0], "bus") == 0)
        return parse_text(rest, gpu->bus_id, sizeof gpu->bus_id);
    if (strcmp(words[0], "process") == 0)
        return parse_process(words + 1, gpu);
    if (strcmp(words[0], "mig") == 0)
        return parse_mig(words + 1, gpu);
    if (strcmp(words[0], "gpm") == 0)
        return parse_metric(words + 1, gpu);
    if (strcmp(words[0], "fabric") == 0)
        return parse_fabric(words + 1, &gpu->fabric);
    if (strcmp(words[0], "throttle") == 0) {
        if (!(wrong = parse_throttle(words + 1, &number)))
            gpu->numbers[THROTTLE] = constant(number);
        return wrong;
    }
    if (strcmp(words[0], "capability") == 0) {
        if (!(wrong = parse_dotted(words[1], &major, &minor))) {
            gpu->numbers[CAPABILITY_MAJOR] = constant(major);
            gpu->numbers[CAPABILITY_MINOR] = constant(minor);
        }
        return wrong;
    }
    if (strcmp(words[0], "xid") == 0) {
        if ((wrong = parse_number(words[1], &number)))
            return wrong;
        void *list = grow(gpu->xids, gpu->xid_count, sizeof *gpu->xids);
        if (!list)
            return "out of memory";
        gpu->xids = list;
        gpu->xids[gpu->xid_count++] = (unsigned)number;
        return NULL;
    }
    return parse_key(words, gpu);
}

static const char *parse_line(char **words, const char *rest, const char *line, struct description *description)
{
    const char *wrong;
    int major, minor;
    struct gpu *gpu = description->gpu_count ? description->gpus[description->gpu_count - 1] : NULL;
    if (strcmp(words[0], "gpu") == 0) {
        if (words[1])
            return "\"gpu\" stands alone; its lines follow";
        if (description->gpu_count == MAX_GPUS)
            return "at most 64 cards can be described";
        if (!(gpu = default_gpu(description->gpu_count)))
            return "out of memory";
        description->gpus[description->gpu_count++] = gpu;
        return NULL;
    }
    if (strcmp(words[0], "fault") == 0)
        return parse_fault(words + 1, line, description->gpu_count - 1, description);
    if (strcmp(words[0], "since") == 0)
        return parse_number(words[1], &description->since);
    if (gpu)
        return parse_gpu_line(words, rest, gpu);
    if (strcmp(words[0], "driver") == 0)
        return parse_text(rest, description->driver, sizeof description->driver);
    if (strcmp(words[0], "nvml") == 0)
        return parse_text(rest, description->nvml, sizeof description->nvml);
    if (strcmp(words[0], "cuda") == 0) {
        if (!(wrong = parse_dotted(words[1], &major, &minor)))
            description->cuda = major * 1000 + minor * 10;
        return wrong;
    }
    return "before the first \"gpu\" only driver, cuda, nvml, since and fault are known";
}

static char *trimmed(char *text)
{
    size_t length;
    char *comment = strchr(text, '#');
    if (comment)
        *comment = 0;
    text += strspn(text, " \t\r");
    length = strlen(text);
    while (length && strchr(" \t\r", text[length - 1]))
        text[--length] = 0;
    return text;
}

static const char *parse_text_line(char *raw, struct description *description)
{
    char *words[MAX_WORDS + 1] = {NULL}, *state, *line = trimmed(raw), copy[512], rest[512];
    int count = 0;
    if (!line[0])
        return NULL;
    if (strlen(line) >= sizeof copy)
        return "this line is too long";
    strcpy(copy, line);
    snprintf(rest, sizeof rest, "%s", line + strcspn(line, " \t"));
    for (char *word = strtok_r(line, " \t", &state); word; word = strtok_r(NULL, " \t", &state)) {
        if (count == MAX_WORDS)
            return "this line has too many words";
        words[count++] = word;
    }
    return parse_line(words, rest + strspn(rest, " \t"), copy, description);
}

struct description *describe(char *text, const char *path)
{
    struct description *description = calloc(1, sizeof *description);
    if (!description)
        return NULL;
    strcpy(description->driver, "550.54.15");
    strcpy(description->nvml, "12.550.54.15");
    description->cuda = 12040;
    description->since = 1704067200; /* 2024-01-01: late enough that no counter passes 64 bits */
    for (int number = 1; text; number++) {
        char *line = strsep(&text, "\n");
        const char *wrong = parse_text_line(line, description);
        if (wrong) {
            fprintf(stderr, "fake NVML: %s, line %d: %s\n", path, number, wrong);
            forget(description);
            return NULL;
        }
    }
    for (int i = 0; i < description->gpu_count; i++)
        finish_gpu(description->gpus[i], i);
    return description;
}

void forget(struct description *description)
{
    for (int i = 0; description && i < description->gpu_count; i++) {
        free(description->gpus[i]->processes);
        free(description->gpus[i]->xids);
        free(description->gpus[i]);
    }
    if (description)
        free(description->faults);
    free(description);
}
