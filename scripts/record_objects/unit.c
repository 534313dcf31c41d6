/* The file that a unit of the mix `compile` compiles: small, with the headers that small files include. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

struct entry {
    struct entry *next;
    uint64_t hash;
    size_t length;
    char key[];
};

struct table {
    pthread_mutex_t lock;
    size_t buckets, entries;
    struct entry **bucket;
};

static uint64_t hash(const char *key, size_t length) {
    uint64_t value = 14695981039346656037u;
    for (size_t i = 0; i < length; i++)
        value = (value ^ (unsigned char)key[i]) * 1099511628211u;
    return value;
}

int table_insert(struct table *table, const char *key) {
    size_t length = strlen(key);
    uint64_t value = hash(key, length);
    int error = 0;
    pthread_mutex_lock(&table->lock);
    struct entry **place = &table->bucket[value % table->buckets];
    while (*place && ((*place)->hash != value || strcmp((*place)->key, key)))
        place = &(*place)->next;
    if (!*place) {
        struct entry *entry = malloc(sizeof *entry + length + 1);
        if (entry) {
            entry->next = NULL;
            entry->hash = value;
            entry->length = length;
            memcpy(entry->key, key, length + 1);
            *place = entry;
            table->entries++;
        } else {
            error = ENOMEM;
        }
    }
    pthread_mutex_unlock(&table->lock);
    return error;
}

int table_load(struct table *table, const char *path) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0)
        return errno;
    char *text = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    if (text == MAP_FAILED)
        return errno;
    int error = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " \n", &rest); word && !error; word = strtok_r(NULL, " \n", &rest))
        error = table_insert(table, word);
    munmap(text, (size_t)status.st_size);
    return error;
}

void table_print(const struct table *table, FILE *output) {
    time_t now = time(NULL);
    fprintf(output, "%zu entries in %zu buckets at %lld\n", table->entries, table->buckets, (long long)now);
    for (size_t i = 0; i < table->buckets; i++)
        for (const struct entry *entry = table->bucket[i]; entry; entry = entry->next)
            fprintf(output, "%016llx %5zu %s\n", (unsigned long long)entry->hash, entry->length, entry->key);
}
