"""Vision transformers as timm and Hugging Face write them, small."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, SIZE, PATCH = 12, 16, 4


class Attention(nn.Module):
    def __init__(self, heads=3):
        super().__init__()
        self.num_heads, self.head_dim = heads, WIDTH // heads
        self.scale = self.head_dim**-0.5
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.attn_drop, self.proj_drop = nn.Dropout(0.1), nn.Dropout(0.1)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = self.attn_drop((q * self.scale @ k.transpose(-2, -1)).softmax(dim=-1))
        return self.proj_drop(self.proj((attn @ v).transpose(1, 2).reshape(B, N, C)))


class FusedAttention(Attention):
    p = 0.0

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0)
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, attention=Attention):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(WIDTH), attention()
        self.norm2, self.drop_path = nn.LayerNorm(WIDTH), nn.Identity()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class PatchEmbed(nn.Module):
    def __init__(self):
        super().__init__()
        self.img_size, self.proj, self.norm = (SIZE, SIZE), nn.Conv2d(3, WIDTH, PATCH, PATCH), nn.Identity()

    def forward(self, x):
        _, _, H, W = x.shape
        torch._assert(self.img_size[0] == H, f"Input height ({H}) doesn't match model ({self.img_size[0]}).")
        assert self.img_size[1] == W, "Input width doesn't match model"
        return self.norm(self.proj(x).flatten(2).transpose(1, 2))


class TimmLike(nn.Module):
    def __init__(self, attention=Attention):
        super().__init__()
        self.patch_embed = PatchEmbed()
        self.cls_token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + (SIZE // PATCH) ** 2, WIDTH))
        self.pos_drop = nn.Dropout(0.1)
        self.blocks = nn.Sequential(*[Block(attention) for _ in range(5)])
        self.norm, self.head_drop, self.head = nn.LayerNorm(WIDTH), nn.Dropout(0.1), nn.Linear(WIDTH, 7)

    def forward_features(self, x, attn_mask=None):
        x = self.patch_embed(x)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = self.pos_drop(x + self.pos_embed)
        if attn_mask is not None:
            for block in self.blocks:
                x = block(x, attn_mask=attn_mask)
        else:
            x = self.blocks(x)
        return self.norm(x)

    def forward(self, x, attn_mask=None):
        x = self.forward_features(x, attn_mask=attn_mask)
        return self.head(self.head_drop(x[:, 0]))


class Layer(nn.Module):
    """Takes keyword arguments and answers with a tuple, of one tensor unless asked for attention."""

    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, hidden_states, head_mask=None, output_attentions=False):
        outputs = (self.block(hidden_states),)
        return (*outputs, hidden_states.mean()) if output_attentions else outputs


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.ModuleList([Layer() for _ in range(4)])

    def forward(self, hidden_states, head_mask=None, output_attentions=False, return_dict=True):
        for number, layer in enumerate(self.layer):
            mask = head_mask[number] if head_mask is not None else None
            hidden_states = layer(hidden_states, head_mask=mask, output_attentions=output_attentions)[0]
        return {"last_hidden_state": hidden_states} if return_dict else (hidden_states,)


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch_embeddings = PatchEmbed()
        self.cls_token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.position_embeddings = nn.Parameter(torch.randn(1, 1 + (SIZE // PATCH) ** 2, WIDTH))

    def forward(self, pixel_values, bool_masked_pos=None, interpolate_pos_encoding=False):
        batch_size, _, _, _ = pixel_values.shape
        embeddings = self.patch_embeddings(pixel_values)
        if bool_masked_pos is not None:
            raise NotImplementedError
        return torch.cat((self.cls_token.expand(batch_size, -1, -1), embeddings), dim=1) + self.position_embeddings


class HuggingFaceLike(nn.Module):
    """`answer` says what forward returns: logits, a tuple, or an object of the library."""

    def __init__(self, answer=lambda logits: logits):
        super().__init__()
        self.embeddings, self.encoder = Embeddings(), Encoder()
        self.layernorm, self.classifier, self.answer = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 7), answer

    def forward(self, pixel_values=None, head_mask=None, labels=None, output_attentions=None, return_dict=None):
        if pixel_values is None:
            raise ValueError("You have to specify pixel_values")
        output_attentions = output_attentions if output_attentions is not None else False
        hidden = self.embeddings(pixel_values, bool_masked_pos=None)
        hidden = self.encoder(hidden, head_mask=head_mask, output_attentions=output_attentions)["last_hidden_state"]
        return self.answer(self.classifier(self.layernorm(hidden)[:, 0, :]))
