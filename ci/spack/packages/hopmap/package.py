# From a clone, on a machine that reaches crates.io:
#
#   spack repo add ci/spack
#   spack dev-build hopmap@0.3.0 +highs
#
# Where builds have no network, first put the crates into the clone. Cargo then uses nothing else:
#
#   mkdir -p .cargo && cargo vendor --locked > .cargo/config.toml

from spack_repo.builtin.build_systems import cargo
from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Hopmap(CargoPackage):
    """Topology-aware process mapping for MPI applications: from a trace and a machine topology to a
    mapping of ranks, as a rank file, machine file or host file."""

    license("MIT OR Apache-2.0")

    # Built where it is, so there is nothing to fetch.
    version("0.3.0")

    variant("query", default=True, description="SQL queries over results (Polars; takes minutes to build)")
    variant("route", default=True, description="Routes and forwarding tables (route/*)")
    variant("schedule", default=True, description="Schedules of tasks (schedule/*)")
    variant("checkpoint", default=True, description="Checkpoint stores (checkpoint/*)")
    variant("training", default=True, description="Traces, generated steps and order of hosts of training jobs")
    variant("metis", default=True, description="METIS as a partitioner, for comparison")
    variant("highs", default=False, description="HiGHS, for exact routing")
    variant("mpi", default=False, description="Run searches as MPI ranks")
    variant("otf2", default=False, description="Read traces with libotf2, next to hopmap's own reader")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("cxx", type="build", when="+highs")
    depends_on("cmake@3.15:", type="build", when="+highs")
    depends_on("llvm+clang", type="build", when="+highs")
    depends_on("llvm+clang", type="build", when="+mpi")
    depends_on("mpi", when="+mpi")
    depends_on("pkgconfig", type="build", when="+otf2")
    depends_on("otf2@3:", when="+otf2")


class CargoBuilder(cargo.CargoBuilder):
    def setup_build_environment(self, env):
        if self.spec.satisfies("+highs") or self.spec.satisfies("+mpi"):
            env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    @property
    def build_args(self):
        features = {
            "route": "route", "schedule": "schedule", "checkpoint": "checkpoint", "training": "training",
            "metis": "metis", "highs": "highs", "otf2": "libotf2",
        }
        wanted = [feature for variant, feature in features.items() if self.spec.satisfies(f"+{variant}")]
        return ["--locked", "--no-default-features", "--features", " ".join(wanted)]

    def build(self, pkg, spec, prefix):
        super().build(pkg, spec, prefix)
        for variant, program in (("query", "query"), ("mpi", "ranks")):
            if spec.satisfies(f"+{variant}"):
                with working_dir(self.build_directory):
                    path = join_path("apps", program)
                    pkg.module.cargo("install", "--root", "out", "--locked", "--path", path, *self.std_build_args)

    def install(self, pkg, spec, prefix):
        """Binaries, manual pages, completions, examples and the book."""
        with working_dir(self.build_directory):
            which("sh", required=True)("ci/install.sh", join_path("out", "bin"), extra_env={"PREFIX": prefix})
