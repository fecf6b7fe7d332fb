#pragma once

/// A word of each thread that calls of operators look at, found without asking the loader. Where a program loads the library late, all that
/// it has of a thread must fit into the room that the loader keeps for such libraries: what is larger is a ThreadObject.
///
///     BRASA_THREAD_WORD int depth = 0;
#define BRASA_THREAD_WORD [[gnu::tls_model("initial-exec")]] thread_local constinit
