"""Compiled functions of one name, chosen by the class of their first argument.

A *family* has a member for each class of NamedTuple that needs one, and a default for all others.
numba chooses while it types a call, so the choice costs nothing at run time. A member has to be
registered before the first kernel that calls the family is compiled: it stands in the file of its
class.

This is the one place that knows numba's types. Should they change, a family can be an
`numba.extending.overload` of a stub, which returns a member by the ``instance_class`` of the type:
as fast, but each new caller compiles the members again.
"""

from functools import partial
from itertools import count

from numba.core import types
from numba.core.imputils import lower_constant
from numba.extending import models, register_model

from skstruct.compiled.cache import outside
from skstruct.compiled.jit import inner_lean_jit
from skstruct.compiled.keys import is_outside

# Left to LLVM, a small member is inlined or not with every edit of its body.
inlined_jit = partial(inner_lean_jit, forceinline=True)
# numba tells types apart by their names.
_numbers = count()


class FamilyType(types.Callable):
    """Type of a family: a call of it is one of the member."""

    def __init__(self, owner):
        self.family = owner
        super().__init__(f"family({owner.__name__}, {next(_numbers)})")

    def _member(self, kind):
        return types.Dispatcher(self.family.member(getattr(kind, "instance_class", None)))

    def get_call_type(self, context, args, kws):
        """Signature of a call."""
        return self._member(args[0]).get_call_type(context, args, kws)

    def get_call_signatures(self):
        """Signatures, which depend on the member."""
        return (), True

    def get_impl_key(self, sig):
        """Key of the code of a call."""
        return self._member(sig.args[0]).get_impl_key(sig)


register_model(FamilyType)(models.OpaqueModel)


@lower_constant(FamilyType)
def _no_value(context, builder, kind, value):
    return context.get_dummy_value()


class Family:
    """Compiled functions of one name.

    Parameters
    ----------
    function : callable
        The default member, in Python.
    compiler : callable, default=inlined_jit
        Compiles members: `jit` where these create arrays.
    default : bool, default=True
        False if the function only says what members do.

    Attributes
    ----------
    members : dict of type to callable
        Compiled function of each class that has one.
    default : callable or None
        That of all other classes.
    """

    def __init__(self, function, compiler=inlined_jit, *, default=True):
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._compiler, self.members = compiler, {}
        self.default = compiler(function) if default else None
        self._numba_type_ = FamilyType(self)

    def of(self, *classes, compiler=None):
        """Decorate the member of some classes; the decorated function is the compiled member.

        A long member may have a compiler of its own, so that it is not inlined.
        """

        def register(function):
            member = (compiler or self._compiler)(function)
            if is_outside(function):
                outside.update(classes)
            self.members.update(dict.fromkeys(classes, member))
            return member

        return register

    def member(self, kind):
        """Member for a class; a TypeError if there is none."""
        found = self.members.get(kind, self.default)
        if found is None:
            raise TypeError(f"{kind.__name__} has no {self.__name__}, which such a class needs.")
        return found

    def __call__(self, first, *args):
        """Call the member, from Python."""
        return self.member(type(first))(first, *args)


def family(function=None, *, compiler=inlined_jit):
    """Decorate a default member, which becomes a family."""
    if function is None:
        return partial(family, compiler=compiler)
    return Family(function, compiler)


def needed(function=None, *, compiler=inlined_jit):
    """Decorate the description of a family without a default; each class needs a member."""
    if function is None:
        return partial(needed, compiler=compiler)
    return Family(function, compiler, default=False)
