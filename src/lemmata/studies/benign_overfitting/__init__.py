"""Benign overfitting of a transformer: fitting noise need not hurt, and N SNR^2 says when it does."""

from lemmata.study import Study

STUDY = Study(
    id="benign-overfitting",
    title="Benign overfitting of a transformer",
    summary=(
        "One softmax attention layer with a frozen read-out, trained by full-batch gradient descent on one signal token "
        "among noise tokens. It always fits its training set; whether it generalises is decided by N SNR^2: above a "
        "boundary attention and values reinforce each other on the signal (benign overfitting), below it on the "
        "strongest noise token of each sample (harmful overfitting)."
    ),
    citation="""
@inproceedings{jiang2024unveil,
  title     = {Unveil Benign Overfitting for Transformer in Vision: Training Dynamics, Convergence, and Generalization},
  author    = {Jiang, Jiarui and Huang, Wei and Zhang, Miao and Suzuki, Taiji and Nie, Liqiang},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2024}
}
""",
    figures={
        "fig1": "Test loss over SNR and the number of samples, with the phase boundary",
        "fig3": "Training dynamics in the benign regime",
        "fig4": "Training dynamics in the harmful regime",
        "time-benign": "Convergence time against signal norm and target loss, benign regime",
        "time-harmful": "Convergence time against samples and target loss, harmful regime",
        "asymptotic-boundary": "The phase boundary in the theorem's own regime (key dimension 1e12)",
        "literal-constants": "The three stages where the proof's explicit constants apply",
        "attention-leak": "Attention left on the losing tokens against the key dimension",
        "noise-ratio": "The critical N SNR^2 against the strength of the strong noise token",
        "no-strong-token": "Without a strong noise token (C_p = 1), outside the theory",
        "agreement": "Four simulators of the same training",
    },
    claims={
        "benign-generalises": "Where N SNR^2 is large, training loss reaches eps and the test loss is small (Theorem 4.1)",
        "harmful-fits-but-fails": "Where N SNR^2 is small, training loss reaches eps but the test loss stays above 0.1 (Theorem 4.2)",
        "harmful-loss-floor": "In the harmful regime the test loss stays above log(1 + e^-1/2)/2 = 0.237 (Lemma E.6)",
        "boundary-exponent": "The boundary SNR*(N) falls as N^-1/2: the product N SNR^2 decides",
        "boundary-constant": "The boundary lies at N SNR^2 = 2 C_p^2 (mean field), up to a factor 2",
        "paper-curve": "The paper's curve N SNR^2 = 1000 tells benign from harmful cells, away from a factor-2 band around it",
        "mean-field-curve": "The mean-field curve N SNR^2 = 2 C_p^2 does so too",
        "benign-attention": "In the benign regime the signal query ends with more than 0.95 of its attention on the signal",
        "harmful-attention": "In the harmful regime signal and strong-noise queries end with more than 0.9 on the strong noise token",
        "benign-values": "In the benign regime the signal's value ends above the strong noise's in every sample, and the test loss below 0.2",
        "harmful-values": "In the harmful regime the strong noise's value ends above the signal's in every sample, and the test loss above 0.4",
        "benign-linear-bounds": "In stage II the winning value stays between eta |mu|^2 |w_O|^2 t / (10 M) and 3/4 eta |mu|^2 |w_O|^2 t (B(t))",
        "benign-linear": "The winning value grows linearly while the loss derivative is near 1/2 (stage II), rather than exponentially or logarithmically",
        "benign-logarithmic": "The winning value grows logarithmically once the loss derivative decays (stage III)",
        "stage-order": "The stages come in order: the signal's value leads 3M times, then the loss derivative decays, then the loss reaches eps",
        "stage1-bound": "Stage I ends no later than the explicit T1 of Lemma D.5",
        "time-signal": "Benign convergence time goes as |mu|^-2 (Theorem 4.1)",
        "time-eps-benign": "Benign convergence time goes as 1/eps (Theorem 4.1)",
        "time-constant-benign": "Benign convergence time is 2/(eta eps |mu|^2 |w_O|^2) (mean field), within 30 %",
        "time-samples": "Harmful convergence time goes as N (Theorem 4.2)",
        "time-eps-harmful": "Harmful convergence time goes as 1/eps (Theorem 4.2)",
        "time-constant-harmful": "Harmful convergence time is N/(eta eps C_p^2 sigma_p^2 d |w_O|^2) (mean field), within 30 %",
        "asymptotic-constant": "In the theorem's own regime the boundary lies at N SNR^2 = 2 C_p^2, within 25 %",
        "leak-signal": "Attention of the signal query on noise falls as d_h^-1/2 (Eq. 64)",
        "leak-noise": "Attention of the strong-noise query on noise falls as d_h^-1/2 (Eq. 65)",
        "ratio-exponent": "The N SNR^2 at which the test loss passes 0.2 grows as C_p^2 (mean field)",
        "ratio-exponent-winner": "The N SNR^2 at which the signal's value wins over the strong noise's grows as C_p^2 (mean field)",
        "needs-strong-token": "Without a strong noise token harmful cells attend to no single noise token: the mechanism of Theorem 4.2 is gone",
        "exact-reductions": "Row form and Gram form give the weights' own trajectory to 1e-9",
    },
    package=__name__,
)
