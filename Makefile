# The commands of the project; CMake and Ninja behind them.
BUILD ?= build
PREFIX ?= /usr/local
CMAKE_FLAGS ?=

SECONDS ?= 60
SEED ?= 1

.PHONY: all configure setup demo test test-emu fuzz bench docs install format check-format check-includes sanitize sanitize-thread clean

all: configure
	@cmake --build $(BUILD)

configure:
	@test -f $(BUILD)/build.ninja -a -z "$(CMAKE_FLAGS)" || cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS)

setup:
	@scripts/setup

# Neither tests nor the tools that only developers need.
demo: setup
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) --target demo
	@$(BUILD)/bin/brasa-demo

test: setup
	@$(MAKE) --no-print-directory all
	@ctest --test-dir $(BUILD) -j$$(nproc) --output-on-failure --no-tests=error

# Suites of tensors once more, with the emulated GPU as the default device.
test-emu: setup
	@$(MAKE) --no-print-directory all
	@ctest --test-dir $(BUILD) -C emu -L emu -j$$(nproc) --output-on-failure --no-tests=error

# Mutated files and texts for each reader, side by side, and random programs, each for so many SECONDS from this SEED.
fuzz: setup
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) --target test_fuzz brasa_codegen
	@BRASA_CODEGEN=$(CURDIR)/$(BUILD)/lib/libbrasa-codegen.so $(BUILD)/tests/test_fuzz --target all --seed $(SEED) --seconds $(SECONDS)
	@BRASA_CODEGEN=$(CURDIR)/$(BUILD)/lib/libbrasa-codegen.so $(BUILD)/tests/test_fuzz --seed $(SEED) --count 1000000 --seconds $(SECONDS)

bench: setup
	@$(MAKE) --no-print-directory all
	@$(BUILD)/bin/brasa bench

docs: setup
	@$(MAKE) --no-print-directory all
	@cmake --build $(BUILD) --target docs

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

sanitize: setup
	@$(MAKE) --no-print-directory all BUILD=build-asan CMAKE_FLAGS="$(CMAKE_FLAGS) -DBRASA_SANITIZE=address,undefined"
	@ctest --test-dir build-asan -j$$(nproc) --output-on-failure --no-tests=error

sanitize-thread: setup
	@cmake -S . -B build-tsan -G Ninja $(CMAKE_FLAGS) -DBRASA_SANITIZE=thread
	@cmake --build build-tsan --target tests
	@ctest --test-dir build-tsan -R '^test_' --output-on-failure --no-tests=error

format:
	@scripts/format

check-format:
	@scripts/format --check

check-includes:
	@scripts/check_includes

clean:
	@rm -rf $(BUILD) build-asan build-tsan
