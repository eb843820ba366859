"""What PyTorch computes in f64, for tests/transformer. Usage: golden.py FOLDER

Each file holds named tensors: a line `NAME EXTENT...` and one with the elements, row-major, as
decimals that read back to the same bits. A name that ends in .grad is the gradient by the tensor of
the name before it."""

import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


class File:
    def __init__(self, folder, name, what):
        self.path = folder / f"{name}.txt"
        self.lines = [f"# {what}. PyTorch {torch.__version__.split('+')[0]}, f64; scripts/make-golden."]

    def put(self, name, value):
        value = torch.as_tensor(value).detach()
        extents = "".join(f" {extent}" for extent in value.shape)
        elements = " ".join(repr(float(x)) for x in value.flatten())
        self.lines += [name + extents, elements]

    def put_all(self, **values):
        for name, value in values.items():
            self.put(name, value)

    def put_with_gradients(self, **tensors):
        for name, tensor in tensors.items():
            self.put(name, tensor)
            self.put(f"{name}.grad", tensor.grad)

    def write(self):
        self.path.write_text("\n".join(self.lines) + "\n")


def random(*shape):
    return torch.randn(*shape, requires_grad=True)


def backward(y):
    """Backward from a random gradient, which it returns."""
    gradient = torch.randn_like(y)
    y.backward(gradient)
    return gradient


def attend(q, k, v, causal):
    """[b, s, h, d]; heads of k and v serve as many of q as there are for each."""
    repeats = q.shape[2] // k.shape[2]
    q, k, v = (x.transpose(1, 2) for x in (q, k.repeat_interleave(repeats, 2),
                                           v.repeat_interleave(repeats, 2)))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return (torch.softmax(scores, -1) @ v).transpose(1, 2)


def attention(folder):
    for name, keys, key_heads, causal in [("full", 6, 4, False), ("causal", 6, 4, True),
                                          ("grouped", 6, 2, True), ("cross", 9, 4, False)]:
        q, k, v = random(2, 6, 4, 5), random(2, keys, key_heads, 5), random(2, keys, key_heads, 5)
        y = attend(q, k, v, causal)
        file = File(folder, f"attention_{name}", "softmax(q k^T / sqrt(d)) v, [b, s, h, d]")
        file.put("causal", causal)
        file.put("y.grad", backward(y))
        file.put("y", y)
        file.put_with_gradients(q=q, k=k, v=v)
        file.write()


def layer_norm(folder):
    x, weight, bias = random(3, 2, 7), random(7), random(7)
    y = functional.layer_norm(x, (7,), weight, bias, 1e-5)
    file = File(folder, "layer_norm", "LayerNorm over the last dimension")
    file.put("epsilon", 1e-5)
    file.put("y.grad", backward(y))
    file.put("y", y)
    file.put_with_gradients(x=x, weight=weight, bias=bias)
    file.write()


def gelu(folder):
    for name, what, approximate in [("gelu", "GELU, exact", "none"),
                                    ("gelu_tanh", "GELU, approximated by tanh", "tanh")]:
        x = torch.linspace(-9, 9, 73, requires_grad=True)
        y = functional.gelu(x, approximate=approximate)
        file = File(folder, name, what)
        file.put("y.grad", backward(y))
        file.put("y", y)
        file.put_with_gradients(x=x)
        file.write()


def cross_entropy(folder):
    logits = (3 * torch.randn(6, 7)).requires_grad_()
    targets = torch.randint(7, (6,))
    loss = functional.cross_entropy(logits, targets)
    loss.backward()
    file = File(folder, "cross_entropy", "Mean of -log softmax(logits)[target]")
    file.put_all(loss=loss, targets=targets)
    file.put_with_gradients(logits=logits)
    file.write()


def adamw(folder):
    """Ten steps, their gradients drawn at random."""
    settings = {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 0.1}
    value = random(3, 4)
    optimizer = torch.optim.AdamW([value], lr=settings["lr"], eps=settings["epsilon"],
                                  betas=(settings["beta1"], settings["beta2"]),
                                  weight_decay=settings["weight_decay"])
    file = File(folder, "adamw", "Values after each step of AdamW with given gradients")
    file.put_all(**settings)
    file.put("start", value)
    values, gradients = [], []
    for _ in range(10):
        value.grad = torch.randn_like(value)
        gradients.append(value.grad.clone())
        optimizer.step()
        values.append(value.detach().clone())
    file.put_all(gradients=torch.stack(gradients), values=torch.stack(values))
    file.write()


class Block(nn.Module):
    """h = x + attention(norm1(x)); y = h + fc2(f(fc1(norm2(h))))."""

    def __init__(self, d_model, heads, d_ff, activation, causal, attention_bias=False):
        super().__init__()
        self.heads, self.activation, self.causal = heads, activation, causal
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(d_model, d_model, bias=attention_bias) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        normed = self.norm1(x)
        q, k, v = (linear(normed).unflatten(-1, (self.heads, -1))
                   for linear in (self.q_proj, self.k_proj, self.v_proj))
        h = x + self.o_proj(attend(q, k, v, self.causal).flatten(-2))
        return h + self.fc2(self.activation(self.fc1(self.norm2(h))))


def gelu_tanh(x):
    return functional.gelu(x, approximate="tanh")


def block(folder, activations=(functional.relu, functional.gelu), attention_bias=False):
    for activation in activations:
        for causal in (False, True):
            model = Block(12, 4, 24, activation, causal, attention_bias)
            for norm in (model.norm1, model.norm2):  # at random, so that no weight is 1 and no bias 0
                for parameter in norm.parameters():
                    nn.init.normal_(parameter)
            x = random(2, 8, 12)
            y = model(x)
            name = f"block_{activation.__name__}_{'causal' if causal else 'full'}"
            file = File(folder, name, "Pre-norm block; d_model 12, d_ff 24, epsilon 1e-5")
            file.put_all(heads=model.heads, causal=causal, attention_bias=attention_bias)
            file.put("y.grad", backward(y))
            file.put("y", y)
            file.put_with_gradients(x=x)
            for norm in ("norm1", "norm2"):
                parameters = dict(getattr(model, norm).named_parameters())
                file.put_with_gradients(**{f"{norm}_{n}": p for n, p in parameters.items()})
            for linear in ("q_proj", "k_proj", "v_proj", "o_proj", "fc1", "fc2"):
                layer = getattr(model, linear)
                file.put_with_gradients(**{linear: layer.weight})
                if layer.bias is not None:
                    file.put_with_gradients(**{f"{linear}_bias": layer.bias})
            file.write()


def mlp(folder):
    """Training on all samples at once."""
    lr, steps = 0.2, 50
    fc1, fc2 = nn.Linear(4, 8, bias=False), nn.Linear(8, 3, bias=False)
    x, target = torch.randn(16, 4), torch.randn(16, 3)
    optimizer = torch.optim.SGD([fc1.weight, fc2.weight], lr=lr)
    file = File(folder, "mlp", "fc2(gelu(fc1(x))) trained by SGD on MSE; losses before each step")
    file.put_all(lr=lr, x=x, target=target, fc1=fc1.weight, fc2=fc2.weight)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = functional.mse_loss(fc2(functional.gelu(fc1(x))), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    file.put("losses", torch.stack(losses))
    file.put_all(**{"fc1.trained": fc1.weight, "fc2.trained": fc2.weight})
    file.write()


def gpt_block(folder):
    """With GPT-2's activation and biases."""
    block(folder, [gelu_tanh], attention_bias=True)


class Gpt2(nn.Module):
    def __init__(self, vocabulary, context, layers, heads, d_model):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(vocabulary, d_model), nn.Embedding(context, d_model)
        self.blocks = nn.ModuleList(Block(d_model, heads, 4 * d_model, gelu_tanh, True, True)
                                    for _ in range(layers))
        self.norm = nn.LayerNorm(d_model)

    def forward(self, ids):
        x = self.embedding(ids) + self.positions.weight[:ids.shape[1]]
        for layer in self.blocks:
            x = layer(x)
        return functional.linear(self.norm(x), self.embedding.weight)


def gpt2(folder):
    sizes = {"vocabulary": 24, "context": 8, "layers": 2, "heads": 4, "d_model": 16}
    model = Gpt2(**sizes)
    for name, parameter in model.named_parameters():  # large enough to be far from 0 everywhere
        nn.init.normal_(parameter, 1 if name.endswith("norm.weight") else 0, 0.2)
    ids = torch.randint(sizes["vocabulary"], (2, 9))
    logits = model(ids[:, :-1])
    loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    file = File(folder, "gpt2", "A small GPT-2; the head is the embedding")
    file.put_all(**sizes, ids=ids, logits=logits, loss=loss)
    for name, parameter in model.named_parameters():
        file.put_with_gradients(**{name: parameter})
    file.write()


class Vgg16(nn.Module):
    """torchvision's, with every number of channels and hidden units times `width`."""

    def __init__(self, width, pooled, classes):
        super().__init__()
        layers, inputs = [], 3
        for channels in (64, 64, "pool", 128, 128, "pool", 256, 256, 256, "pool", 512, 512, 512, "pool",
                         512, 512, 512, "pool"):
            if channels == "pool":
                layers.append(nn.MaxPool2d(2, 2))
            else:
                outputs = int(channels * width)
                layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
                inputs = outputs
        hidden = int(4096 * width)
        self.features, self.pool = nn.Sequential(*layers), nn.AdaptiveAvgPool2d(pooled)
        self.classifier = nn.Sequential(
            nn.Linear(inputs * pooled ** 2, hidden), nn.ReLU(), nn.Dropout(), nn.Linear(hidden, hidden),
            nn.ReLU(), nn.Dropout(), nn.Linear(hidden, classes))

    def forward(self, images):
        return self.classifier(self.pool(self.features(images)).flatten(1))


def vgg16(folder):
    """Without dropout. The images are of a formula, so that the file need not have them."""
    sizes = {"width": 1 / 64, "pooled": 2, "classes": 5}
    sgd = {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.01}
    model = Vgg16(**sizes).eval()
    for name, parameter in model.named_parameters():  # so that few results of ReLU are 0
        fan_in = parameter[0].numel()
        mean, deviation = (0.1, 0.1) if name.endswith("bias") else (0.4 / fan_in, (1.5 / fan_in) ** 0.5)
        nn.init.normal_(parameter, mean, deviation)
    count = 6
    images = (torch.arange(count * 3 * 32 * 32) * 7919 % 251 / 125 - 1).view(count, 3, 32, 32)
    labels = torch.randint(sizes["classes"], (count,))
    matrices = [p for p in model.parameters() if p.dim() > 1]
    biases = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.SGD([{"params": matrices}, {"params": biases, "weight_decay": 0}], **sgd)
    file = File(folder, "vgg16", "A narrow VGG16, and its training by SGD with momentum")
    file.put_all(**sizes, **sgd, labels=labels)
    losses = []
    for step in range(6):
        optimizer.zero_grad()
        logits = model(images)
        loss = functional.cross_entropy(logits, labels)
        loss.backward()
        if step == 0:
            file.put_all(logits=logits, loss=loss)
            for name, parameter in model.named_parameters():
                assert (parameter.grad != 0).double().mean() > 0.2, f"gradients of {name} are 0"
                file.put_with_gradients(**{name: parameter})
        losses.append(loss.detach())
        optimizer.step()
    file.put("losses", torch.stack(losses))
    file.put_all(**{f"{name}.trained": bias for name, bias in model.named_parameters()
                    if name.endswith("bias")})
    file.write()


def main():
    folder = Path(sys.argv[1])
    makers = (attention, layer_norm, gelu, cross_entropy, adamw, block, mlp, gpt_block, gpt2, vgg16)
    for seed, make in enumerate(makers):  # each draws its own, so that a change leaves the others be
        torch.manual_seed(seed)
        make(folder)


main()
