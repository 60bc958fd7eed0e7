# CameraBus. `make help` lists what there is.

SWIFT ?= swift
# A Python with pyzmq; the one in the PATH may not have it.
PYTHON ?= $(shell deploy/find-python)

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
DATADIR ?= $(PREFIX)/share
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
SYSCONFDIR ?= /etc
# An empty PREFIX, usually a variable that isn't set, would strew the programs over / itself.
with_prefix = $(if $(strip $(PREFIX)),,$(error PREFIX is empty; name where to install, as in: make $@ PREFIX=/usr/local))

# Where the programs are linked with everything but Debian's libraries, so that they run for any user of any machine: the service can't
# see a Swift runtime below /home.
STATIC := .build/static
# Where the programs are that are installed.
BINARIES ?= $(STATIC)/release
PACKAGES ?= .build/packages

PROGRAMS := camerabus camerabusd camerabus-worker camerabus-matcher camerabus-recorder camerabus-librarian camerabus-gateway
# Those that the service starts, or that are services.
DAEMONS := $(filter-out camerabus,$(PROGRAMS))
# Of these, the ones that people start.
STARTED := $(filter camerabusd camerabus-gateway,$(PROGRAMS))
UNITS := camerabusd.service camerabusd.socket $(filter camerabus-gateway.service,$(PROGRAMS:%=%.service))
CONFIGURATIONS := camerabus.toml $(if $(filter camerabus-gateway,$(PROGRAMS)),gateway.toml)
MANDIR ?= $(DATADIR)/man
BASH_COMPLETIONS := $(DATADIR)/bash-completion/completions
# Debian's zsh leaves site-functions to /usr/local.
ZSH_COMPLETIONS := $(DATADIR)/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
FISH_COMPLETIONS := $(DATADIR)/fish/vendor_completions.d

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build static run test test-kernel test-package bench chaos fuzz sanitize format lint install install-python uninstall deb wheel clean

help: ## List these verbs
	@echo "CameraBus: one service owns the cameras, many programs use them."
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

build: ## Build the programs, with all they need, into .build/release
	@deploy/install-dependencies --build
	@for program in $(PROGRAMS); do $(SWIFT) build -c release --product $$program || exit 1; done

static: ## Build them with the Swift runtime in them, into .build/static/release, as they are installed and packed
	@deploy/install-dependencies --build --package
	@for program in $(PROGRAMS); do $(SWIFT) build -c release --static-swift-stdlib --disable-local-rpath --scratch-path $(STATIC) --product $$program || exit 1; done

run: build ## Start the bus and its page here, with two virtual cameras when there is no other; Ctrl-C ends it (make run RUN="--runtime-dir /tmp/bus")
	@deploy/install-dependencies --run
	@deploy/run $(RUN)

test: ## Run all tests that this machine can run, and say which it can't (make test TEST="format swift")
	@deploy/install-dependencies --build --test
	@Tests/run $(TEST)

test-kernel: ## Run the kernel ring alone: our V4L2 code against real drivers in an emulated machine
	@deploy/install-dependencies --build --test
	Tests/Kernel/run --required

test-package: ## Install the newest package of `make deb` in a bare Debian of its own, upgrade, remove and purge it (as root; takes minutes)
	@deploy/install-dependencies --package
	Tests/Deploy/bare-root $(PACKAGES)

bench: build ## Measure the release build beside others (make bench BENCH="--json figures.json --plot figures.svg"; --help has more)
	@deploy/install-dependencies --run
	PYTHON=$(PYTHON) Tests/Benchmark/run $(BENCH)

chaos: build ## Kill and stop the processes of a busy bus, and compare what its clients saw with SPEC (make chaos CHAOS="--kills 1000 --seed 7")
	@deploy/install-dependencies --run --test
	@"$${PYTHON:-$$(deploy/find-python)}" Tests/Chaos $(CHAOS)

fuzz: build ## Give the bus inputs that make sense, nearly make sense, or none (make fuzz FUZZ="--inputs 1000000 --seed 7")
	@deploy/install-dependencies --run --test
	@"$${PYTHON:-$$(deploy/find-python zmq jsonschema)}" Tests/Fuzz $(FUZZ)

sanitize: ## Run the process tests with ThreadSanitizer and AddressSanitizer (make sanitize SANITIZER=thread: with this one)
	@deploy/install-dependencies --build --test
	@status=0; for sanitizer in $(or $(SANITIZER),thread address); do SANITIZER=$$sanitizer Tests/run sanitize || status=1; done; exit $$status

format: ## Format the Swift sources
	$(SWIFT) format format --in-place --parallel --recursive Package.swift Sources Tests

lint: ## Check formatting, scripts, documents, units and what is packed
	@Tests/run format scripts documents deploy

install: ## Install what `make static` built, with units, configuration, manual, completions and the C header (DESTDIR, PREFIX)
	@:$(with_prefix)
	@for program in $(PROGRAMS); do [ -x $(BINARIES)/$$program ] || { echo "make install: first make static" >&2; exit 1; }; done
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(SYSCONFDIR)/camerabus
	install -m 755 $(PROGRAMS:%=$(BINARIES)/%) $(DESTDIR)$(BINDIR)
	install -d $(DESTDIR)$(LIBDIR)/systemd/system $(DESTDIR)$(LIBDIR)/sysusers.d $(DESTDIR)$(LIBDIR)/tmpfiles.d $(DESTDIR)$(LIBDIR)/udev/rules.d
	umask 022; for unit in $(UNITS); do sed 's|@bindir@|$(BINDIR)|; s|@sysconfdir@|$(SYSCONFDIR)|' deploy/$$unit >$(DESTDIR)$(LIBDIR)/systemd/system/$$unit || exit 1; done
	install -m 644 deploy/sysusers.conf $(DESTDIR)$(LIBDIR)/sysusers.d/camerabus.conf
	install -m 644 deploy/tmpfiles.conf $(DESTDIR)$(LIBDIR)/tmpfiles.d/camerabus.conf
	install -m 644 deploy/70-camerabus.rules $(DESTDIR)$(LIBDIR)/udev/rules.d/70-camerabus.rules
	for file in $(CONFIGURATIONS); do [ -e $(DESTDIR)$(SYSCONFDIR)/camerabus/$$file ] || install -m 644 deploy/$$file $(DESTDIR)$(SYSCONFDIR)/camerabus/$$file || exit 1; done
	install -d $(DESTDIR)$(BASH_COMPLETIONS) $(DESTDIR)$(ZSH_COMPLETIONS) $(DESTDIR)$(FISH_COMPLETIONS)
	umask 022; $(BINARIES)/camerabus completions bash >$(DESTDIR)$(BASH_COMPLETIONS)/camerabus
	umask 022; $(BINARIES)/camerabus completions zsh >$(DESTDIR)$(ZSH_COMPLETIONS)/_camerabus
	umask 022; $(BINARIES)/camerabus completions fish >$(DESTDIR)$(FISH_COMPLETIONS)/camerabus.fish
	umask 022; for program in $(STARTED); do \
	    $(BINARIES)/$$program --generate-completion-script bash >$(DESTDIR)$(BASH_COMPLETIONS)/$$program && \
	    $(BINARIES)/$$program --generate-completion-script zsh >$(DESTDIR)$(ZSH_COMPLETIONS)/_$$program && \
	    $(BINARIES)/$$program --generate-completion-script fish >$(DESTDIR)$(FISH_COMPLETIONS)/$$program.fish || exit 1; done
	umask 022; deploy/manual --also 'camerabusd(8)' --also 'camerabus.toml(5)' $(BINARIES)/camerabus $(DESTDIR)$(MANDIR)/man1
	umask 022; for program in $(DAEMONS); do \
	    case $$program in camerabus-gateway) file='camerabus-gateway.toml(5)';; *) file='camerabus.toml(5)';; esac; \
	    deploy/manual --section 8 --also 'camerabus(1)' --also "$$file" $(BINARIES)/$$program $(DESTDIR)$(MANDIR)/man8 || exit 1; done
	umask 022; $(foreach file,$(CONFIGURATIONS),deploy/manual --file deploy/$(file) $(patsubst gateway.toml,camerabus-gateway.toml,$(file)).5 $(DESTDIR)$(MANDIR)/man5 &&) :
	install -d $(DESTDIR)$(INCLUDEDIR) $(DESTDIR)$(DATADIR)/doc/camerabus
	install -m 644 Protocol/c/camerabus_ring.h $(DESTDIR)$(INCLUDEDIR)/camerabus_ring.h
	install -m 644 Protocol/c/example.c deploy/71-camerabus-only.rules $(DESTDIR)$(DATADIR)/doc/camerabus
	@[ -n "$(DESTDIR)" ] || printf '%s\n' 'To start the service now and at each boot:' \
	    '    systemd-sysusers && systemd-tmpfiles --create camerabus.conf && systemctl daemon-reload && systemctl enable --now camerabusd.socket camerabusd' \
	    'To let somebody use it:' '    usermod -aG camerabus NAME'

# Where Debian's Python looks for it: below /usr in one place for all versions, elsewhere in one for each.
PYTHONDIR ?= $(shell $(PYTHON) -c 'import sys; print("$(PREFIX)/lib/python3" + ("" if "$(PREFIX)" == "/usr" else ".%d" % sys.version_info[1]) + "/dist-packages")')

install-python: ## Install the Python package for all users (DESTDIR, PREFIX)
	@:$(with_prefix)
	@[ -n "$(PYTHONDIR)" ] || exit 1
	install -d $(DESTDIR)$(PYTHONDIR)/camerabus
	install -m 644 Protocol/python/camerabus/*.py Protocol/python/camerabus/py.typed $(DESTDIR)$(PYTHONDIR)/camerabus

uninstall: ## Remove what install and install-python installed; the configuration stays
	@:$(with_prefix)
	rm -f $(PROGRAMS:%=$(DESTDIR)$(BINDIR)/%)
	rm -f $(UNITS:%=$(DESTDIR)$(LIBDIR)/systemd/system/%) $(DESTDIR)$(LIBDIR)/udev/rules.d/70-camerabus.rules
	rm -f $(DESTDIR)$(LIBDIR)/sysusers.d/camerabus.conf $(DESTDIR)$(LIBDIR)/tmpfiles.d/camerabus.conf
	rm -f $(foreach program,camerabus $(STARTED),$(DESTDIR)$(BASH_COMPLETIONS)/$(program) $(DESTDIR)$(ZSH_COMPLETIONS)/_$(program) $(DESTDIR)$(FISH_COMPLETIONS)/$(program).fish)
	rm -f $(DESTDIR)$(MANDIR)/man1/camerabus.1 $(DESTDIR)$(MANDIR)/man1/camerabus-*.1 $(DESTDIR)$(MANDIR)/man5/camerabus.toml.5 $(DESTDIR)$(MANDIR)/man5/camerabus-gateway.toml.5 $(DAEMONS:%=$(DESTDIR)$(MANDIR)/man8/%.8)
	rm -f $(DESTDIR)$(INCLUDEDIR)/camerabus_ring.h $(DESTDIR)$(DATADIR)/doc/camerabus/example.c $(DESTDIR)$(DATADIR)/doc/camerabus/71-camerabus-only.rules
	[ ! -d $(DESTDIR)$(DATADIR)/doc/camerabus ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$(DATADIR)/doc/camerabus
	[ -z "$(PYTHONDIR)" ] || rm -rf $(DESTDIR)$(PYTHONDIR)/camerabus

deb: static ## Make a Debian package, with the Swift runtime in its programs (PACKAGES says where; DEBFULLNAME and DEBEMAIL who makes it)
	rm -f $(PACKAGES)/camerabus_*.deb
	deploy/make-deb $(STATIC)/release $(PACKAGES)

wheel: ## Make a wheel of the Python package, for pip (PACKAGES says where)
	@deploy/install-dependencies --package
	deploy/make-wheel $(PACKAGES)

clean: ## Remove what was built
	$(SWIFT) package clean
	rm -rf .build/benchmark .build/sanitize-* $(STATIC) $(PACKAGES)
	find Protocol Tests -name __pycache__ -type d -prune -exec rm -rf {} +
