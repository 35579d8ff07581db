"""How the parts of kernels are compiled: as far as linking them into the kernels that call them.

The compiler would optimise each part alone and write machine code for it, which nothing calls, and
then do both again inside each kernel: a third of the time of a first call. And it would import all
it has to load one kernel: a third of the time until a new process answers.
"""

from types import SimpleNamespace

from llvmlite.binding import ModuleRef
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import Dispatcher as Dispatcher
from numba.core.runtime import rtsys

# passes for closures, `with` and loops over tuples, which no part has
NEEDLESS = "inline_closure_likes", "literal_unroll", "LiteralPropagation", "with_lifting"


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is neither optimised nor run before it is linked into a kernel."""

    codegen = SimpleNamespace(set_env=lambda *_: None)  # what is not run has no constants
    compact = False

    def add_llvm_module(self, ll_module: ModuleRef) -> None:
        """Ask for short functions where parts run seldom."""
        for each in ll_module.functions if self.compact else ():
            if not each.is_declaration:
                each.add_function_attribute("optsize")
        super().add_llvm_module(ll_module)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class PartCompiler(CompilerBase):  # type: ignore[misc]
    """The compiler of parts."""

    compact = False

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes that parts need; that of lowering finds our library."""
        library = LinkedLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library, library.compact = library, self.compact
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [each for each in passes.passes if each[0].name() not in NEEDLESS]
        return [passes]


class RareCompiler(PartCompiler):
    """That of parts that run seldom."""

    compact = True


class LightCache(FunctionCache):  # type: ignore[misc]
    """The cache of a kernel, from which code is loaded without the rest of the compiler."""

    def load_overload(self, signature: object, context: object) -> object:
        """Return the compiled function, None where there is none."""
        rtsys.initialize(context)  # all that code needs that was typed before
        return self._load_overload(signature, context)


def load_lightly(kernel: Dispatcher) -> None:
    """Let a kernel that is cached use such a cache."""
    vars(kernel)["_cache"] = LightCache(kernel.py_func)
