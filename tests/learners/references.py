"""The learners of the papers as plain NumPy float64 loops, from the pseudo-code."""

import numpy as np


def gradient(name, w, copies, y, cov):
    x = copies[0]
    residual = 2 * (w @ x - y)
    if name == "two_copies":
        return residual * copies[1]
    excess = {"known_covariance": 2, "as_printed": 1, "uncorrected": 0}[name]
    return residual * x - excess * cov @ w


def projected_gradient_descent(name, x, y, copies, noisy_y, covs, radius, rate):
    """Predictions before each step, the last weights, and how many steps were projected."""
    w, projected = np.zeros(x.shape[1]), 0
    predictions = []
    for t in range(len(x)):
        predictions.append(w @ x[t])
        w = w - rate(t) * gradient(name, w, copies[t], noisy_y[t], covs[t])
        norm = np.linalg.norm(w)
        if norm > radius:
            w, projected = w * radius / norm, projected + 1
    return np.array(predictions), w, projected


def gaussian_kernel(length_scale):
    def kernel(x, z):
        return np.exp(-np.sum((x - z) ** 2, axis=-1) / (2 * length_scale**2))

    return kernel


def gaussian_surrogate(length_scale, cov):
    """k̂ for Gaussian noise of full covariance, by its inverse and determinant."""
    dim = len(cov)
    inverse = np.linalg.inv(2 * (length_scale**2 * np.eye(dim) - cov))
    peak = np.linalg.det(np.eye(dim) - cov / length_scale**2) ** -0.5

    def surrogate(x, z):
        return peak * np.exp(-np.einsum("...i,ij,...j", x - z, inverse, x - z))

    return surrogate


def parallel_worlds(surrogate, kernel, x, copies, noisy_y, radius, rate):
    """Algorithm 2 with its double sum: predictions, coefficients, ‖w‖², projected rounds."""
    stored, alpha, projected, squared_norm = copies[:, 0], np.zeros(0), 0, 0.0
    predictions = []
    for t in range(len(x)):
        predictions.append(alpha @ kernel(stored[:t], x[t]) if t else 0.0)
        residual = (alpha @ surrogate(stored[:t], copies[t, 1]) if t else 0.0) - noisy_y[t]
        alpha = np.append(alpha, -2 * rate * residual)
        squared_norm = alpha @ surrogate(stored[: t + 1, None], stored[None, : t + 1]) @ alpha
        if squared_norm > radius**2:
            alpha, projected = alpha * radius / np.sqrt(squared_norm), projected + 1
            squared_norm = radius**2
    return np.array(predictions), alpha, squared_norm, projected


def norma(kernel, step, decay, x, y, *, oldest, offset=False, scale=0.0):
    """NORMA by its recursion on terms from `oldest(t)` on: f_t(x_t) + b_t, s_t, and α, b, s after.

    `step(t, p, y, s)` gives α_t and s_{t+1} of a round, `decay(t, α_t)` the factor 1 − η_t λ.
    """
    alpha, predictions, scales, b = np.zeros(0), [], [], 0.0
    for t in range(len(x)):
        p = (alpha @ kernel(x[:t], x[t]) if t else 0.0) + b
        predictions.append(p)
        scales.append(scale)
        added, scale = step(t, p, y[t], scale)
        alpha = np.append(decay(t, added) * alpha, added)
        alpha[: max(oldest(t + 1), 0)] = 0
        b += added if offset else 0.0
    return np.array(predictions), np.array(scales), alpha, b, scale


def alma(kernel, x, y, theta, c):
    """Kernel ALMA₂ by its pseudo-code: f_t(x_t), coefficients, ‖w‖² after each round, updates."""
    a, squared_norm, k = np.zeros(len(x)), 0.0, 1
    predictions, norms = [], []
    for t in range(len(x)):
        kxx = kernel(x[t], x[t])
        f = a @ kernel(x, x[t]) / np.sqrt(kxx)
        predictions.append(f)
        if y[t] * f <= theta / np.sqrt(k):
            e = c / np.sqrt(k)
            squared_norm += 2 * e * y[t] * f + e * e
            a[t] = e * y[t] / np.sqrt(kxx)
            s = max(1, np.sqrt(squared_norm))
            a, squared_norm, k = a / s, squared_norm / s**2, k + 1
        norms.append(squared_norm)
    return np.array(predictions), a, np.array(norms), k - 1


def adahedge(losses):
    """q ∝ exp(−(log K/Δ) L) before each round and after all, and Δ: the sum of ⟨q, ℓ⟩ − mix."""
    number = losses.shape[1]
    q, total, gap = np.full(number, 1 / number), np.zeros(number), 0.0
    shares = [q]
    for loss in losses:
        eta, least = np.log(number) / gap if gap else 0.0, loss.min()
        mix = least - np.log(q @ np.exp(-eta * (loss - least))) / eta if gap else least
        gap, total = gap + max(q @ loss - mix, 0), total + loss
        q = np.exp(-np.log(number) / gap * (total - total.min())) if gap else q
        q = q / q.sum()
        shares.append(q)
    return np.array(shares), gap


def random_truncation(
    estimator, orders, x, y, copies, squared_radius, rate, *, as_printed=False, labelled=True
):
    """Algorithm 1 on explicit tensor features, `orders` of each round: the features' weights.

    The projection may be `as_printed`, and the values of a margin loss may lack the label.
    Returns predictions, ‖w‖², projected rounds and copies used.
    """
    maps, slope = estimator.maps, estimator.derivative
    betas, center = maps.series.coefficients, slope.series.center

    def tensor(n, vectors, coefficient):
        parts = [np.zeros(x.shape[1] ** m) for m in range(len(betas))]
        power = np.ones(1)
        for v in vectors[:n]:
            power = np.kron(power, v)
        parts[n] = coefficient * power
        return np.concatenate(parts)

    def estimate(t, which):
        block = copies[t, which * maps.copies : (which + 1) * maps.copies]
        n, power = orders.maps.tensor[t, which], len(betas) - 1
        value = tensor(n, block, np.sqrt(betas[n]) / maps.orders.probabilities[n])
        if maps.envelope is None:
            return value, n
        pairs, m = block[power:].reshape(-1, 2, x.shape[1]), orders.maps.envelope[t, which]
        factor = maps.envelope.series.coefficients[m] / maps.envelope.orders.probabilities[m]
        return value * factor * np.prod([a @ b for a, b in pairs[:m]]), n + 2 * m

    def clean(z):
        value = sum(tensor(n, [z] * n, np.sqrt(beta)) for n, beta in enumerate(betas))
        return value if maps.envelope is None else value * float(maps.kernel.envelope.value(z @ z))

    w, predictions, projected, used = np.zeros(len(clean(x[0]))), [], 0, []
    for t in range(len(x)):
        predictions.append(w @ clean(x[t]))
        (stored, count), order = estimate(t, 0), orders.derivative[t]
        length = slope.series.coefficients[order] / slope.orders.probabilities[order]
        for which in range(1, order + 1):
            query, more = estimate(t, which)
            value = w @ query
            if estimator.loss.kind == "margin":
                value *= y[t] if labelled else 1
            else:
                value -= y[t]
            length, count = length * (value - center), count + more
        w = w - rate * length * (y[t] if estimator.loss.kind == "margin" else 1) * stored
        if w @ w > squared_radius:
            printed = np.sqrt(squared_radius) / (w @ w)
            w *= printed if as_printed else np.sqrt(squared_radius / (w @ w))
            projected += 1
        used.append(count)
    return np.array(predictions), w @ w, projected, used


def unknown_noise(kernel, derivative, points, weights, x, y, radius):
    """f ← P(f − η Re Σ_j w_j ℓ'(f(p_j), y) Ψ(p_j)) at the adaptive rate, with complex points.

    `points` are `[T, K, d]`, `weights` `[T, K]`; f = Re Σ_s c_s Ψ(z_s), and its norm is computed by
    a double sum. Returns predictions, ‖f‖² and projected rounds.
    """
    z, c = np.zeros((0, x.shape[1]), complex), np.zeros(0, complex)
    predictions, squares, projected = [], 0.0, 0

    def value(p):
        return (c @ kernel(z, p) + c.conj() @ kernel(z.conj(), p)) / 2

    def squared_norm(c, z):
        plain, conjugate = kernel(z[:, None], z[None]), kernel(z.conj()[:, None], z[None])
        return (c @ plain @ c + c.conj() @ conjugate @ c).real / 2

    for t in range(len(x)):
        predictions.append(value(x[t]).real)
        slopes = weights[t] * derivative(np.array([value(p) for p in points[t]]), y[t])
        squares += squared_norm(slopes, points[t])
        rate = 2**0.5 * radius / squares**0.5
        z, c = np.concatenate([z, points[t]]), np.append(c, -rate * slopes)
        norm = squared_norm(c, z) ** 0.5
        if norm > radius:
            c, projected = c * radius / norm, projected + 1
    return np.array(predictions), squared_norm(c, z), projected
