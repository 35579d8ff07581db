"""How the parts of kernels are compiled: as far as linking them into the kernels that call them.

The compiler would optimise each part alone and write machine code for it, which nothing calls, and
then do both again inside each kernel: a third of the time of a first call. And it would import all
it has to load one kernel: a third of the time until a new process answers.
"""

from llvmlite.binding import ModuleRef
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, StateDict
from numba.core.compiler_machinery import AnalysisPass, PassManager, register_pass
from numba.core.dispatcher import Dispatcher as Dispatcher
from numba.core.runtime import rtsys
from numba.core.typed_passes import NopythonTypeInference
from numba.core.untyped_passes import (
    FindLiterallyCalls,
    InlineClosureLikes,
    InlineInlinables,
    LiteralPropagationSubPipelinePass,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    RewriteDynamicRaises,
    WithLifting,
)

NEEDLESS = {  # for what no part has: closures, `with`, `raise` and loops over tuples
    FindLiterallyCalls, InlineClosureLikes, InlineInlinables, LiteralPropagationSubPipelinePass,
    LiteralUnroll, MakeFunctionToJitFunction, RewriteDynamicRaises, WithLifting,
}  # fmt: skip


class NoEngine:
    """Where a part would be run."""

    def set_env(self, name: str, env: object) -> None:
        """Do nothing: what is not run has no constants in memory."""


class Definitions:
    """A module, but for functions that it only declares: each would cost a manager of passes."""

    def __init__(self, module: ModuleRef) -> None:
        self.module = module
        self.functions = [each for each in module.functions if not each.is_declaration]

    def __getattr__(self, name: str) -> object:
        return getattr(self.module, name)


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is neither optimised nor run before it is linked into a kernel."""

    codegen = NoEngine()

    def _optimize_functions(self, ll_module: ModuleRef) -> None:
        ll_module.data_layout = self._codegen._data_layout
        super()._optimize_functions(Definitions(ll_module))

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=True)
class UseLinkedLibrary(AnalysisPass):  # type: ignore[misc]
    """Let the code of a function go into a `LinkedLibrary`."""

    _name = "use_linked_library"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: StateDict) -> bool:
        """Make the library that the pass of lowering finds."""
        state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return False


class PartCompiler(CompilerBase):  # type: ignore[misc]
    """The compiler of parts."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the usual passes that parts need, and ours."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [each for each in passes.passes if each[0] not in NEEDLESS]
        passes.add_pass_after(UseLinkedLibrary, NopythonTypeInference)
        passes.finalize()
        return [passes]


class LightCache(FunctionCache):  # type: ignore[misc]
    """The cache of a kernel, from which code is loaded without the rest of the compiler."""

    def load_overload(self, signature: object, context: object) -> object:
        """Return the compiled function, None where there is none."""
        rtsys.initialize(context)  # all that code needs that was typed before
        return self._load_overload(signature, context)


def load_lightly(kernel: Dispatcher) -> None:
    """Let a kernel that is cached use such a cache."""
    vars(kernel)["_cache"] = LightCache(kernel.py_func)
