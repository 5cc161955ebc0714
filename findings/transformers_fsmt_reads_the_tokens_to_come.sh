#!/usr/bin/env bash
# Guess: FSMT's decoder, called with a translation as decoder_input_ids, scores each token by those before it, as BART's
#        does; and a translation that is begun by a prefix is the same with a cache and without.
# Seen:  it masks what follows only where no cache is kept, and by default it keeps one. So each token's score depends
#        on the tokens after it: another last token changes all scores before it. generate() reads the prefix so, too:
#        what follows has other scores with the cache than without. BART has neither.
# Versions: transformers 5.24.0 (5.23.0 the same), torch 2.13.0. Source: models/fsmt/modeling_fsmt.py, FSMTModel.forward,
#        which makes the masks "if not use_cache". With labels the cache is off: training is right.
# Why:   scores of given translations (reranking, contrastive sets, perplexity) are of a model that saw the answer, and
#        forced beginnings (glossaries, documents) are continued wrongly. Pass use_cache=False to both.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
install numpy==2.4.6 transformers==5.24.0
"$work/env/bin/python" - 2>/dev/null <<'END'
import torch
import transformers
from transformers import BartConfig, BartForConditionalGeneration, FSMTConfig, FSMTForConditionalGeneration

sizes = dict.fromkeys(["d_model", "encoder_ffn_dim", "decoder_ffn_dim"], 16)
sizes |= dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads"], 2)
sizes |= dict.fromkeys(["encoder_layers", "decoder_layers"], 2)
fsmt = FSMTConfig(langs=["en", "de"], src_vocab_size=20, tgt_vocab_size=20, init_std=0.5, **sizes)
source, target = torch.tensor([[4, 5, 6, 2]]), torch.tensor([[2, 7, 8, 9, 10]])
other = torch.tensor([[2, 7, 8, 9, 15]])


def off(model, **options):
    """The largest change of the scores of four tokens when the fifth is another one."""
    scores = [model(source, decoder_input_ids=tokens, **options).logits[:, :4] for tokens in (target, other)]
    return (scores[0] - scores[1]).abs().max().item()


def continuation(model, use_cache):
    """Scores of two tokens that follow the target."""
    result = model.generate(
        source, decoder_input_ids=target, use_cache=use_cache, num_beams=1, do_sample=False, max_new_tokens=2,
        min_new_tokens=2, output_logits=True, return_dict_in_generate=True,
    )
    return torch.stack(result.logits)[1]


for make in (lambda: BartForConditionalGeneration(BartConfig(vocab_size=20, init_std=0.5, **sizes)),
             lambda: FSMTForConditionalGeneration(fsmt)):
    torch.manual_seed(1)
    model = make().eval()
    with torch.no_grad():
        plain, uncached = off(model), off(model, use_cache=False)
        prefix = (continuation(model, True) - continuation(model, False)).abs().max().item()
    print("transformers", transformers.__version__, type(model).__name__, "called:", plain, "with use_cache=False:",
          uncached, "after a prefix, cache against none:", prefix)
    fsmts = isinstance(model, FSMTForConditionalGeneration)
    assert uncached == 0 and (plain > 0.01) == fsmts and (prefix > 0.01) == fsmts
END
