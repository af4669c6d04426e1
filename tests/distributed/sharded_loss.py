"""Loss and gradient of one batch with the model sharded by FSDP2 over all processes, against the whole model.

accelerate launch ... sharded_loss.py
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
    output_dir=tempfile.mkdtemp(), credit_rule="acpo", loss_type="sapo", gradient_checkpointing=False
)
assert trainer.accelerator.num_processes == 2
inputs = make_batch(trainer.model)
loss, gradients = loss_and_gradients(trainer, inputs)
whole_metrics = {name: values[-1] for name, values in trainer._metrics["train"].items() if name.startswith("acpo/")}

mesh = init_device_mesh("cpu", (trainer.accelerator.num_processes,))
for layer in trainer.model.model.layers:
    fully_shard(layer, mesh=mesh)
fully_shard(trainer.model, mesh=mesh)
sharded_loss, sharded = loss_and_gradients(trainer, inputs)

torch.testing.assert_close(sharded_loss, loss)
assert any(type(g).__name__ == "DTensor" for g in sharded.values())
for name, expected in gradients.items():
    torch.testing.assert_close(sharded[name].full_tensor(), expected, rtol=1e-4, atol=1e-6)
for name, expected in whole_metrics.items():
    assert abs(trainer._metrics["train"][name][-1] - expected) < 1e-6, name
print("sharded loss and gradient equal the whole model's")
leave()
