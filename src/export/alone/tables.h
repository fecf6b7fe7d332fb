/* Tables of Fourier transforms, as programs read them (fourier.h); C and C++. */
#ifndef BRASA_ALONE_TABLES_H
#define BRASA_ALONE_TABLES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
size_t alone_fourier_bytes(int64_t length);
/* 0 where there is no memory. */
int alone_fourier_tables(int64_t length, void* to);
#ifdef __cplusplus
}
#endif

#endif
