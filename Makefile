# CameraBus: `make help` lists what there is.

PREFIX ?= /usr/local
DESTDIR ?=
# A Python that has pyzmq: Debian's, where another one comes first in PATH without it.
PYTHON ?= $(shell for p in python3 /usr/bin/python3; do $$p -c 'import zmq' 2>/dev/null && { echo $$p; exit; }; done; echo /usr/bin/python3)
PROGRAMS = camerabus camerabusd camerabus-worker
RELEASE = .build/release
SWIFT_FILES = Package.swift Sources Tests
SCRIPTS = deploy/install-dependencies .ci/run Tests/Kernel/rig Tests/Kernel/run $(wildcard Protocol/shell/*)

.PHONY: help
help: ## Lists these
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Builds the programs into .build/release
	@deploy/install-dependencies build
	swift build -c release $(foreach p,$(PROGRAMS),--product $(p))

.PHONY: run
run: ## Starts the bus here, with two virtual cameras where there is no camera
	@deploy/install-dependencies build run
	@for program in $(PROGRAMS); do swift build -c release --product $$program || exit 1; done
	@echo
	@echo "CameraBus starts. In another shell, from this folder:"
	@echo "    export PATH=\"$(CURDIR)/$(RELEASE):\$$PATH\" PYTHONPATH=\"$(CURDIR)/Protocol/python\""
	@echo "    camerabus devices"
	@echo "    camerabus frames cam0 jpeg:640x360@10 -n 5 -o 'f-%02d.jpg'"
	@echo "Ctrl-C ends it."
	@echo
	@exec $(RELEASE)/camerabusd

.PHONY: test
test: ## Runs all that decides: formatting, four rings of tests
	@deploy/install-dependencies build run test
	@$(MAKE) --no-print-directory lint
	swift build --build-tests
	swift test --skip-build --quiet
	$(MAKE) --no-print-directory test-python
	Tests/Kernel/run --skip-build

.PHONY: test-python
test-python: ## Runs the Python client's tests, alone and against a live bus
	@echo "Python tests with $(PYTHON)"
	PYTHONPATH=Protocol/python $(PYTHON) -m unittest discover -s Tests/Python

.PHONY: test-kernel
test-kernel: ## Runs the tests against the kernel's own drivers, in qemu
	@deploy/install-dependencies build test
	Tests/Kernel/run

.PHONY: bench
bench: build ## Measures this machine
	@deploy/install-dependencies run
	PYTHONPATH=Protocol/python $(PYTHON) Tests/Benchmark/run

.PHONY: format
format: ## Formats the Swift sources
	swift format -i -r $(SWIFT_FILES)

.PHONY: lint
lint: ## Checks formatting, scripts and units
	swift format lint -r --strict $(SWIFT_FILES)
	@for script in $(SCRIPTS); do bash -n $$script || exit 1; done

.PHONY: clean
clean: ## Removes what was built
	rm -rf .build
