# %% [markdown]
# # A phase diagram of one's own
#
# A transformer layer sees one signal token among noise tokens. It always fits its training set. Does it generalise? The theory says
# that the number of samples times the squared signal-to-noise ratio decides. This tutorial asks the theory first, trains a small grid,
# and draws where success begins.

# %%
import lemmata as lm

study = lm.study("benign-overfitting")
study

# %% [markdown]
# ## Ask the theory
#
# `predict` answers without training. It echoes the inputs and marks bounds that say nothing.

# %%
answer = lm.predict("benign-overfitting", {"signal_norm": 80.0, "samples": 8})
print(answer.sentence)

# %% [markdown]
# ## Describe one training
#
# A trial holds every number of a training. A notebook shows it as a table with the meaning of each field.

# %%
trial = study.template()
trial

# %% [markdown]
# ## Make it a sweep
#
# A sweep takes a trial, axes over its fields, and seeds. A path that does not exist is refused with the closest one.

# %%
try:
    lm.Sweep(trial, (lm.axis("data.sample", (4, 8)),), seeds=(0,))
except lm.BadInput as error:
    print(error)

# %%
sweep = lm.Sweep(
    trial,
    (lm.axis("data.samples", (4, 8, 16)), lm.axis("data.signal_norm", (40.0, 80.0, 160.0))),
    seeds=(0, 1),
)
sweep

# %% [markdown]
# ## Train and draw
#
# `out` names the folder that keeps the results. The same call later trains only what is missing. The dashed line is the boundary
# that the study predicts.

# %%
results = lm.run(sweep, out="runs/mine", progress=False)
lm.picture(results)

# %% [markdown]
# ## Read the numbers
#
# Results are an `xarray.Dataset`. Its coordinates include those that the study derives: the signal-to-noise ratio and `control`, the
# quantity of the theory.

# %%
table = results.test_loss.mean("seed").to_dataframe()
table[["snr", "control", "test_loss"]].round(3)

# %% [markdown]
# Add a seed or a value to an axis and run again: earlier cells are not trained twice. `lm.export(results, "mine.csv")` writes a row
# for each run.

# %%
lm.export(results, "mine.csv").read_text().count("\n")
