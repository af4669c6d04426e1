"""Episodes with different numbers of turns."""

from acpo_trl.envs import Step


class Countdown:
    """Lasts as many turns as the prompt says, pays for different letters."""

    reward_kinds = ("outcome",)

    def reset(self, prompt, **row):
        self.left = int(prompt)

    def step(self, action):
        self.left -= 1
        return Step("[x]", {"outcome": float(len(set(action)))}, self.left == 0)
