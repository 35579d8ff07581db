"""Which offer to show when each result is an average, of three visitors or of three hundred?

Every day one of twelve offers is shown to all visitors of that day, and the share that accepts
comes back up to three days late. One agent knows how many visitors are behind a share, the other
does not. Nothing is tuned.
"""

import numpy as np

import noisewise as nw

DAYS, WORLDS, DIM = 300, 20, 6


def shares(truth, offers):
    return 1 / (1 + np.exp(-offers @ truth))


def season(seed, informed):
    """Play a season; return the agent, the offers, their true shares and what was lost."""
    rng = np.random.default_rng(seed)
    truth, *offers = (v / np.linalg.norm(v) for v in rng.normal(size=(13, DIM)))
    offers = np.array(offers)
    true = shares(truth, offers)
    agent, due, lost = nw.Agent.for_means(dim=DIM), {}, 0.0
    for day in range(DAYS):
        visitors = int(np.exp(rng.uniform(0, np.log(300))))
        k = agent.choose(offers, key=day)
        lost += true.max() - true[k]
        result = (day, rng.binomial(visitors, true[k]) / visitors, visitors)
        due.setdefault(day + int(rng.integers(0, 4)), []).append(result)
        for key, share, n in due.pop(day, []):
            agent.learn(key, share, trials=n if informed else None)
    return agent, offers, true, lost


print(f"what {DAYS} days lose against always showing the best offer, {WORLDS} worlds")
print("agent              mean  worst")
for name, informed in (("knows visitors", True), ("does not", False)):
    lost = [season(seed, informed)[-1] for seed in range(WORLDS)]
    print(f"{name:17s} {np.mean(lost):5.1f}  {np.max(lost):5.1f}")

agent, offers, true, _ = season(0, informed=True)
print("\nthe three best offers as the agent sees them, with approximate intervals")
print("offer  share  interval        exploration  truly")
for row in sorted(agent.explain(offers), key=lambda row: -row.index)[:3]:
    interval, bonus = f"[{row.lower:.3f}, {row.upper:.3f}]", f"{row.exploration:11.3f}"
    print(f"{row.arm:5d}  {row.estimate:.3f}  {interval}  {bonus}  {true[row.arm]:.3f}")
