"""The vector loops of a round. Vectors are named by their offsets and padded to whole eights."""

from .simd import NUMBER, WORD, make_intrinsic, spelt


@spelt
def square(typing, x, d, x0):
    """Return the squared length of the vector at x0, not padded."""

    def code(given, d, x0):
        def products(j):
            value = given.get_part(d, j, x0)
            return [given.times(value, value)]

        return map(given.total, given.sums(1, products, d))

    return make_intrinsic(code, [x], offsets=2, numbers=0, results=1)


@spelt
def copy_and_dot(typing, a, x, d, x0, row, m, u):
    """Copy the vector x, not padded, to ``row``; return x.m, x.u and x.x."""

    def code(write, given, d, x0, row, m, u):
        def products(j):
            value = given.get_part(d, j, x0)
            write.put(value, row, j)
            return [write.times(value, v) for v in (write.get(m, j), write.get(u, j), value)]

        return map(write.total, write.sums(3, products, d))

    return make_intrinsic(code, [a, x], offsets=5, numbers=0, results=3)


@spelt
def advance(typing, a, d, u, k, g, x, move, r):
    """Add move k to u and r x to g; return g.u and u.u."""

    def code(write, d, u, k, g, x, move, r):
        move, r = write.spread(move), write.spread(r)

        def products(j):
            step = write.plus(write.get(u, j), write.times(move, write.get(k, j)))
            gradient = write.plus(write.get(g, j), write.times(r, write.get(x, j)))
            write.put(step, u, j)
            write.put(gradient, g, j)
            return [write.times(gradient, step), write.times(step, step)]

        return map(write.total, write.sums(2, products, d))

    return make_intrinsic(code, [a], offsets=5, numbers=2, results=2)


@spelt
def sweep(typing, a, d, ld, P, old, x, new, coefficient):
    """Add coefficient old old' to P and set new = P x, in one sweep; return x'Px.

    P is symmetric: only the eights up to the diagonal are read and written, and serve twice.
    """

    def code(write, d, ld, P, old, x, new, coefficient):
        build = write.builder
        q = write.zero()
        with write.loop(d, 4) as (i, _):
            rows = [build.add(P, build.mul(build.add(i, WORD(r)), ld)) for r in range(4)]
            entries = [write.get(old, i, WORD(r), kind=NUMBER) for r in range(4)]
            changes = [write.spread(write.times(coefficient, entry)) for entry in entries]
            values = [write.spread(write.get(x, i, WORD(r), kind=NUMBER)) for r in range(4)]

            def changed(j):
                k = write.get(old, j)
                for row, change in zip(rows, changes, strict=True):
                    fresh = write.plus(write.get(row, j), write.times(change, k))
                    write.put(fresh, row, j)
                    yield fresh

            def products(j):
                fresh, value = [*changed(j)], write.get(x, j)
                mirrored = write.get(new, j)
                for each, other in zip(fresh, values, strict=True):
                    mirrored = write.plus(mirrored, write.times(each, other))
                write.put(mirrored, new, j)
                return [write.times(each, value) for each in fresh]

            corner = build.and_(i, WORD(-8))
            left = write.sums(4, products, corner)
            value = write.get(x, corner)
            middle = [write.times(each, value) for each in changed(corner)]
            both = [*map(write.plus, left, middle)]
            write.put(write.totals(*both), new, i)
            for value, *parts in zip(values, left, both, strict=True):
                more = write.times(value, write.plus(*parts))
                build.store(write.plus(build.load(q), more), q)
        return [write.total(build.load(q))]

    return make_intrinsic(code, [a], offsets=6, numbers=1, results=1)
