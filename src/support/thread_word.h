#pragma once

/// A word of each thread that calls of operators look at: found without asking the loader. It lies where the loader has little room for libraries
/// that come late, so that larger objects are pointed to.
///
///     BRASA_THREAD_WORD int depth = 0;
#define BRASA_THREAD_WORD [[gnu::tls_model("initial-exec")]] thread_local constinit
