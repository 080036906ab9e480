# Set-up is two commands: `make demo` and `make test`. Everything else is for people who work on hopmap.

CARGO ?= cargo
# What `make demo` builds: release, or dev to take what `make test` has built already.
PROFILE ?= release
PACKAGES = build-essential pkg-config libopen-trace-format2-dev cmake libclang-dev
# Without pkg-config or libotf2 everything but OTF2 archives still works.
HAS_OTF2 = $(shell pkg-config --exists otf2 2>/dev/null && echo yes)
HAS_LIBCLANG = $(shell ls $(LIBCLANG_PATH)/libclang.so /usr/lib/llvm-*/lib/libclang.so /usr/lib*/libclang.so 2>/dev/null | grep -q . && echo yes)
# Routes are solved exactly where there are cmake and a C++ compiler to build HiGHS with.
HAS_HIGHS = $(if $(HAS_LIBCLANG),$(shell command -v cmake >/dev/null 2>&1 && command -v c++ >/dev/null 2>&1 && echo yes))
# Stages run as MPI ranks where there are an MPI and a libclang to build hopmap-ranks with.
HAS_MPI = $(if $(HAS_LIBCLANG),$(shell command -v mpicc >/dev/null 2>&1 && echo yes))
FEATURES = $(if $(HAS_OTF2),,--no-default-features) $(if $(HAS_MPI),--features mpi) $(if $(HAS_HIGHS),--features highs)
# Questions in SQL bring Polars, which takes some minutes to build in release: the demo does without.
ANALYTICS = --features analytics
# With other crates or without tests, dependencies get other features and are built once more.
DEMO = $(if $(filter dev,$(PROFILE)),--tests $(WORKSPACE) $(ANALYTICS),--bin hopmap)
WORKSPACE = --workspace $(if $(HAS_OTF2),,--exclude otf2-sys)

.PHONY: demo test check soak bench install uninstall deb try-deb dist packages

# The main job on a sample trace: a machinefile, a rankfile and a report in out/.
demo: packages
	$(MAKE) --no-print-directory demo-run

.PHONY: demo-run
demo-run:
	$(CARGO) build --profile $(PROFILE) --locked $(FEATURES) $(DEMO)
	"$$($(CARGO) metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/$(PROFILE:dev=debug)/hopmap" \
	  run pipelines/place.toml -p out="$(CURDIR)/out" --report "$(CURDIR)/out/report.html"

# Debian packages that are missing: installed when root, named otherwise.
packages:
	@sh ci/packages.sh $(PACKAGES)
	@$(if $(HAS_MPI),:,echo "built without MPI: for \`launcher\` install libopenmpi-dev and libclang-dev" >&2)
	@$(if $(HAS_HIGHS),:,echo "built without HiGHS: for \`route/tables\` and \`route/map\` install cmake, g++ and libclang-dev" >&2)

# Everything a change has to pass.
test: packages
	$(MAKE) --no-print-directory check
	$(CARGO) test --locked $(WORKSPACE) $(FEATURES) $(ANALYTICS)

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked $(WORKSPACE) --all-targets $(FEATURES) $(ANALYTICS) -- -D warnings

# The long loops: mutations of archives and crashes by the thousand.
soak:
	HOPMAP_SOAK=1 $(CARGO) test --locked $(WORKSPACE) $(FEATURES) $(ANALYTICS)

bench:
	$(CARGO) bench --locked $(WORKSPACE) $(FEATURES) $(ANALYTICS)
	$(CARGO) build --release --locked $(FEATURES) --bin hopmap
	bash ci/bench-engine.sh
	bash ci/bench-trace.sh

# Where it is installed. The binaries are stripped of what only debuggers read.
PREFIX ?= /usr/local
DESTDIR ?=
TARGET = $$($(CARGO) metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')

# What is installed: hopmap with everything that this machine can build.
.PHONY: release
release:
	$(CARGO) build --profile $(PROFILE) --locked $(FEATURES) $(ANALYTICS) --bin hopmap $(if $(HAS_MPI),--bin hopmap-ranks)

# Binaries, manual pages, completions and examples below $(DESTDIR)$(PREFIX).
install: release
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" sh ci/install.sh "$(TARGET)/$(PROFILE:dev=debug)"

uninstall:
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" sh ci/install.sh --remove

# Debian packages in packages/, and a trial of them in a clean Debian (as root, with debootstrap).
deb: release
	sh ci/deb.sh "$(TARGET)/$(PROFILE:dev=debug)" packages

try-deb: deb
	sh ci/try-deb.sh packages/*.deb

# The binary as it is handed out: smaller and faster, but long to build.
dist:
	$(CARGO) build --locked --profile dist $(FEATURES) $(ANALYTICS) --bin hopmap $(if $(HAS_MPI),--bin hopmap-ranks)
