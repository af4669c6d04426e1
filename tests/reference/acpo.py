"""ACPO's loss and gradient written from the formulas, in plain Python floats. Imports nothing of acpo_trl.

Per action token, with rho = pi(y) / pi_old(y), A the advantage, delta = 1 - pi(v*):

    value = min(rho c A, clip(rho) c A)          (clip)
    value = f(rho) c A,  f(r) = sigmoid(tau (r - 1)) 4 / tau     (sapo)

and the loss is minus the mean over tokens. The gradient with respect to the logits z is, per token,
d value / d log pi(y) * (1[v = y] - pi(v)) / temperature, because every moving quantity moves through log pi(y) only.
"""

import math


def softmax(logits, temperature=1.0):
    scaled = [z / temperature for z in logits]
    largest = max(scaled)
    weights = [math.exp(z - largest) for z in scaled]
    total = sum(weights)
    return [w / total for w in weights]


def gate_value_and_slope(rho, advantage, loss, epsilon=0.2, tau_pos=1.0, tau_neg=1.05):
    """f(rho) and f'(rho) of the branch of the loss that is active for a token."""
    if loss == "sapo":
        tau = tau_pos if advantage > 0 else tau_neg
        s = 1 / (1 + math.exp(-tau * (rho - 1)))
        return 4 * s / tau, 4 * s * (1 - s)
    clipped = min(max(rho, 1 - epsilon), 1 + epsilon)
    if clipped * advantage < rho * advantage:
        return clipped, 0.0
    return rho, 1.0


def gate_at_one(advantage, loss, tau_pos=1.0, tau_neg=1.05):
    if loss == "sapo":
        return 2 / (tau_pos if advantage > 0 else tau_neg)
    return 1.0


def credit_and_slope(rule, delta, on_mode, advantage, loss):
    """Credit c of a token and dc / d log pi(y)."""
    positive = advantage > 0
    if rule == "uniform":
        return 1.0, 0.0
    if not on_mode:
        return (3 * delta if positive else 3 * (1 - delta)), 0.0
    if rule == "acpo":
        gate = gate_at_one(advantage, loss)
        c = (2 + delta) - gate * (1 - delta) if positive else (1 + gate) * (1 - delta)
        return max(c, 0.0), 0.0
    c = 2 + delta if positive else 1 - delta
    if rule == "acpo_as_written":
        return c, 0.0
    # acpo_live: on the mode, d delta / d log pi(y) = -(1 - delta)
    return c, (-(1 - delta) if positive else 1 - delta)


def token_value_and_slope(rule, logits, token, advantage, old_log_prob, loss, temperature=1.0, credit_mix=1.0):
    """Value of one token's objective and its derivative in log pi(y); also (delta, on_mode, credit)."""
    p = softmax(logits, temperature)
    log_prob = math.log(p[token])
    rho = 1.0 if old_log_prob is None else math.exp(log_prob - old_log_prob)
    delta = 1 - max(p)
    on_mode = p[token] == max(p)
    c, c_slope = credit_and_slope(rule, delta, on_mode, advantage, loss)
    c, c_slope = 1 + credit_mix * (c - 1), credit_mix * c_slope
    f, f_slope = gate_value_and_slope(rho, advantage * c, loss)
    return f * c * advantage, (f_slope * rho * c + f * c_slope) * advantage, (delta, on_mode, c)


def loss_and_gradient(rule, logits, tokens, advantages, mask, old_log_probs, loss, temperature=1.0, credit_mix=1.0):
    """Token-mean loss and its gradient with respect to every logit, as nested lists (B, T, V)."""
    count = sum(sum(row) for row in mask)
    total = 0.0
    gradient = [[[0.0] * len(z) for z in row] for row in logits]
    for b, row in enumerate(logits):
        for t, z in enumerate(row):
            if not mask[b][t]:
                continue
            old = None if old_log_probs is None else old_log_probs[b][t]
            advantage = advantages[b][t] if isinstance(advantages[b], list) else advantages[b]
            value, slope, _ = token_value_and_slope(
                rule, z, tokens[b][t], advantage, old, loss, temperature, credit_mix
            )
            total -= value / count
            for v, p in enumerate(softmax(z, temperature)):
                gradient[b][t][v] = -slope / count * ((v == tokens[b][t]) - p) / temperature
    return total, gradient
