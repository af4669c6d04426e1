"""A critic on the states of a model sharded by FSDP2 over all processes, against one on the whole model.

accelerate launch ... sharded_critic.py
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from leaving import leave
from tiny import build_trainer, loss_and_gradients, make_batch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

trainer = build_trainer(
    output_dir=tempfile.mkdtemp(),
    credit_rule="uniform",
    turn_estimator="ppo",
    critic_options={"detach": False, "coefficient": 1.0, "clip": None},
    gradient_checkpointing=False,
)
assert trainer.accelerator.num_processes == 2
torch.nn.init.normal_(trainer.critic.head.weight, generator=torch.Generator().manual_seed(3))
inputs = make_batch(trainer.model)
inputs["critic_targets"] = torch.randn(4, 6, generator=torch.Generator().manual_seed(4))
inputs["critic_values"] = torch.zeros(4, 6)


def measure():
    trainer.critic.zero_grad()
    look = trainer._look_again(inputs)
    loss, gradients = loss_and_gradients(trainer, inputs)
    return look, loss, gradients, trainer.critic.head.weight.grad.clone()


look, loss, gradients, of_head = measure()
mesh = init_device_mesh("cpu", (trainer.accelerator.num_processes,))
for layer in trainer.model.model.layers:
    fully_shard(layer, mesh=mesh)
fully_shard(trainer.model, mesh=mesh)
sharded_look, sharded_loss, sharded, sharded_of_head = measure()

torch.testing.assert_close(sharded_look.values, look.values)
torch.testing.assert_close(sharded_look.entropies, look.entropies)
assert look.values.abs().min() > 0
torch.testing.assert_close(sharded_loss, loss)
torch.testing.assert_close(sharded_of_head, of_head, rtol=1e-4, atol=1e-5)
assert any(type(gradient).__name__ == "DTensor" for gradient in sharded.values())
for name, expected in gradients.items():
    torch.testing.assert_close(sharded[name].full_tensor(), expected, rtol=1e-4, atol=1e-5)
print("a critic on a sharded model reads and learns what one on the whole model does")
leave()
