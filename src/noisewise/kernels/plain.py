"""The vector loops in plain Python, for a process in which nothing is compiled.

Each has the arguments and results of its namesake in `vectors.py`, `gram.py` or `arms.py`.
"""


def square(x, d, x0):
    """Return the squared length of the vector at x0, not padded."""
    vector = x[x0 : x0 + d]
    return (float(vector @ vector),)


def copy_and_dot(a, x, d, x0, row, m, u):
    """Copy the vector x, not padded, to ``row``; return x.m, x.u and x.x."""
    vector, end = x[x0 : x0 + d], row + d
    a[row:end] = vector
    a[end : end + -int(d) % 8] = 0.0
    return tuple(float(vector @ other) for other in (a[m : m + d], a[u : u + d], vector))


def advance(a, d, u, k, g, x, move, r):
    """Add move k to u and r x to g; return g.u and u.u."""
    step, gradient = a[u : u + d], a[g : g + d]
    step += move * a[k : k + d]
    gradient += r * a[x : x + d]
    return float(gradient @ step), float(step @ step)


def sweep(a, d, ld, P, old, x, new, coefficient):
    """Add coefficient old old' to P and set new = P x; return x'Px.

    P is symmetric: only the eights up to the diagonal are read and written.
    """
    q = 0.0
    a[new : new + ld] = 0.0
    for i in range(d):
        corner = i // 8 * 8
        row = a[P + i * ld : P + i * ld + corner + 8]
        row += coefficient * a[old + i] * a[old : old + corner + 8]
        left = float(row[:corner] @ a[x : x + corner])
        both = left + float(row[corner:] @ a[x + corner : x + corner + 8])
        a[new : new + corner] += a[x + i] * row[:corner]
        a[new + i] += both
        q += float(a[x + i]) * (left + both)
    return (q,)


def squares(a, G, d, ld, x, count):
    """Add x x' of so many rows to the lower triangle of G."""
    rows = a[x : x + count * ld].reshape(count, ld)
    G.reshape(ld, ld)[:] += rows.T @ rows
    return ()


def eight_forms(P, x, quads, d):
    """Set the quadratic forms of eight vectors, the columns of ``x``."""
    quads[:] = ((P @ x[:d]) * x[:d]).sum(axis=0)
    return ()
