#pragma once

// Marks what libbrasa.so exports; everything else stays hidden, so that it lives beside other libraries.
#define BRASA_API __attribute__((visibility("default")))
