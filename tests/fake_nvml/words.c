/* The words of a description that are not plain numbers: modes, throttle reasons, processes, instances, metrics. */
#include <stdlib.h>
#include <string.h>
#include "fake.h"

struct word { const char *key, *word; double number; };

static const struct word WORDS[] = {
    {"", "on", 1}, {"", "off", 0}, {"", "yes", 1}, {"", "no", 0},
    {"compute_mode", "default", 0}, {"compute_mode", "prohibited", 2}, {"compute_mode", "exclusive_process", 3},
    {"architecture", "kepler", 2}, {"architecture", "maxwell", 3}, {"architecture", "pascal", 4},
    {"architecture", "volta", 5}, {"architecture", "turing", 6}, {"architecture", "ampere", 7},
    {"architecture", "ada", 8}, {"architecture", "hopper", 9}, {"architecture", "blackwell", 10},
    {"brand", "quadro", 1}, {"brand", "tesla", 2}, {"brand", "geforce", 5}, {"brand", "titan", 6},
    {"brand", "nvidia", 14}, {"brand", "rtx", 13},
};

static const struct word REASONS[] = {
    {"", "gpu_idle", 0x1}, {"", "application_clocks", 0x2}, {"", "software_power_cap", 0x4},
    {"", "hardware_slowdown", 0x8}, {"", "sync_boost", 0x10}, {"", "software_thermal", 0x20},
    {"", "hardware_thermal", 0x40}, {"", "hardware_power_brake", 0x80}, {"", "display_clocks", 0x100},
    {"", "nothing", 0},
};

const char *parse_word_number(const char *key, const char *word, double *number)
{
    for (size_t i = 0; word && i < sizeof WORDS / sizeof *WORDS; i++)
        if (strcmp(WORDS[i].word, word) == 0 && (!WORDS[i].key[0] || strcmp(WORDS[i].key, key) == 0)) {
            *number = WORDS[i].number;
            return NULL;
        }
    return "this word is not known here";
}

const char *parse_throttle(char **words, double *mask)
{
    unsigned bits = 0;
    for (; *words; words++) {
        size_t i = 0, count = sizeof REASONS / sizeof *REASONS;
        while (i < count && strcmp(REASONS[i].word, *words) != 0)
            i++;
        if (i == count)
            return "this throttle reason is not known";
        bits |= (unsigned)REASONS[i].number;
    }
    *mask = bits;
    return NULL;
}

void *grow(void *list, unsigned count, size_t size)
{
    /* Sizes are powers of two, so that the list is only moved now and then. */
    if (count & (count - 1))
        return list;
    return realloc(list, (count ? count * 2 : 1) * size);
}

/* process PID KIND MEMORY [sm V] [mem V] [enc V] [dec V] [gi N] [ci N] */
const char *parse_process(char **words, struct gpu *gpu)
{
    struct process process = {.gpu_instance = NO_INSTANCE, .compute_instance = NO_INSTANCE, .memory_known = 1};
    const char *wrong;
    double number;
    int used;
    if ((wrong = parse_number(words[0], &number)))
        return wrong;
    process.pid = (unsigned)number;
    if (!words[1])
        return "a process wants compute, graphics or mps after its pid";
    if (strcmp(words[1], "compute") == 0)
        process.kind = COMPUTE;
    else if (strcmp(words[1], "graphics") == 0)
        process.kind = GRAPHICS;
    else if (strcmp(words[1], "mps") == 0)
        process.kind = MPS;
    else
        return "a process is compute, graphics or mps";
    words += 2;
    if (words[0] && strcmp(words[0], "unknown") == 0) {
        process.memory_known = 0;
        used = 1;
    } else if ((wrong = parse_value(words, &used, &process.memory)))
        return wrong;
    for (words += used; words[0]; words += 1 + used) {
        struct value value;
        if ((wrong = parse_value(words + 1, &used, &value)))
            return wrong;
        if (strcmp(words[0], "sm") == 0)
            process.sm = value;
        else if (strcmp(words[0], "mem") == 0)
            process.memory_share = value;
        else if (strcmp(words[0], "enc") == 0)
            process.encoder = value;
        else if (strcmp(words[0], "dec") == 0)
            process.decoder = value;
        else if (strcmp(words[0], "gi") == 0)
            process.gpu_instance = (unsigned)value.base;
        else if (strcmp(words[0], "ci") == 0)
            process.compute_instance = (unsigned)value.base;
        else
            return "a process knows sm, mem, enc, dec, gi and ci";
    }
    process.sampled = process.sm.known || process.memory_share.known || process.encoder.known || process.decoder.known;
    void *list = grow(gpu->processes, gpu->process_count, sizeof process);
    if (!list)
        return "out of memory";
    gpu->processes = list;
    gpu->processes[gpu->process_count++] = process;
    return NULL;
}

/* mig PROFILE gi N ci N [uuid U] total BYTES [used BYTES] */
const char *parse_mig(char **words, struct gpu *gpu)
{
    struct mig *mig = &gpu->migs[gpu->mig_count];
    const char *wrong;
    int used;
    if (gpu->mig_count == MAX_MIGS)
        return "a card has at most 16 instances";
    if (!words[0] || strlen(words[0]) >= sizeof mig->profile)
        return "an instance wants its profile, such as 1g.10gb";
    memset(mig, 0, sizeof *mig);
    mig->memory_used = constant(0);
    strcpy(mig->profile, words[0]);
    for (words++; words[0]; words += 1 + used) {
        struct value value;
        used = 1;
        if (strcmp(words[0], "uuid") == 0) {
            if (!words[1] || strlen(words[1]) >= sizeof mig->uuid)
                return "uuid wants a word of at most 95 characters";
            strcpy(mig->uuid, words[1]);
            continue;
        }
        if ((wrong = parse_value(words + 1, &used, &value)))
            return wrong;
        if (strcmp(words[0], "gi") == 0)
            mig->gpu_instance = (unsigned)value.base;
        else if (strcmp(words[0], "ci") == 0)
            mig->compute_instance = (unsigned)value.base;
        else if (strcmp(words[0], "total") == 0)
            mig->memory_total = value;
        else if (strcmp(words[0], "used") == 0)
            mig->memory_used = value;
        else
            return "an instance knows gi, ci, uuid, total and used";
    }
    if (!mig->memory_total.known)
        return "an instance wants its memory: total BYTES";
    gpu->mig_count++;
    return NULL;
}

/* gpm METRIC VALUE */
const char *parse_metric(char **words, struct gpu *gpu)
{
    struct metric *metric = &gpu->metrics[gpu->metric_count];
    const char *wrong;
    int used;
    if (gpu->metric_count == MAX_METRICS)
        return "a card has at most 64 metrics here";
    if (!words[0] || !(metric->id = metric_id(words[0])))
        return "this metric is not known";
    if ((wrong = parse_value(words + 1, &used, &metric->value)))
        return wrong;
    if (words[1 + used])
        return "there is something after the value";
    gpu->metric_count++;
    return NULL;
}
