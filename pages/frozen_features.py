"""Frozen features: how well small models learn people's scores from a model that stays frozen."""

from neuralviz.ui.frozen_features import show
from neuralviz.ui.page import show_page_header

show_page_header(
    "Frozen features",
    "How much of similarity is **already in the layers** of a frozen model?",
    (
        "$$\\hat s=\\sigma\\big(t-|f(1,\\dots,1)-f(c_0,\\dots,c_L)|\\big),\\quad "
        "c_\\ell=\\cos\\big(E_\\ell h_\\ell(a),\\,E_\\ell h_\\ell(b)\\big)$$\n\n$h_\\ell$ is a "
        "text's vector at layer $\\ell$ of the frozen model, $E_\\ell$ the layer's encoder (none "
        "on the first rung), $f$ a small network. Two identical texts have cosines of 1 at all "
        "layers, so that no pair can score higher."
    ),
    (
        "**The layers**: how well the cosine at each layer follows people's scores, before "
        "anything is learnt. **The ladder**: small models learn people's scores from these layers. "
        "Each *rung* is such a model, and adds one idea of the paper to the rung before it. *MLP "
        "over cosines*: a small network reads the cosines at all layers. *Siamese encoders*: each "
        "layer has an encoder, and the network reads the cosines of what they give. *Autoencoders "
        "first*: the encoders learn to rebuild each layer's vectors before. *Log-variance loss*: "
        "the logarithm of the errors' variance, in place of the mean squared error. Rungs are "
        "trained on three fifths of the pairs, chosen on a fifth (**dev**), and measured once on "
        "the last fifth (**test**); all three have scores of all heights. **Layers of a rung**: "
        "how much its score changes when a layer's cosine varies as it does across the dev pairs. "
        "**Squares** are baselines; **diamonds** are what the paper reaches with gpt2-medium on "
        "other pairs, those of STS-B."
    ),
    (
        "FREEZE!: Pretrained Language Models as Frozen Feature Extractors for Semantic Tasks, "
        "sections 4 and 5"
    ),
)

show()
