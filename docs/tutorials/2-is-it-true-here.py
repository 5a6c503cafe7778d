# %% [markdown]
# # Is this theorem true here?
#
# A paper says that something holds. You want to know whether it holds at your sizes. This tutorial takes a theorem on in-context learning
# with chain of thought, looks at its conditions, runs its figure at the smallest scale, and reads the verdicts.

# %%
import lemmata as lm

study = lm.study("chain-of-thought")
print(study.summary)

# %% [markdown]
# ## What is claimed?
#
# Each claim says beforehand what would refute it. Here is one of the main results.

# %%
claim = study.claim("icl-fails")
print(claim.statement)
print("source:", claim.source.where)
print("holds if:", claim.holds.predicted)
print("because:", claim.holds.because)

# %% [markdown]
# ## Are the conditions met here?
#
# `predict` looks at the conditions of the theorems at a setting, each with its margin: above 1 it is met.

# %%
trial = study.template()
conditions, predictions = study.predict(trial)
for condition in conditions:
    print(f"{'met   ' if condition.met else 'missed'} {condition.margin:10.3g}  {condition.name}")

# %%
answer = lm.predict("chain-of-thought")
print(answer.sentence)

# %% [markdown]
# ## Train, and judge
#
# The scale `smoke` takes seconds and gives no verdicts, only numbers. The scale `quick` gives verdicts: it takes some minutes, with
# `lemmata check chain-of-thought/icl-fails` or `scale="quick"` here.

# %%
figure = study.figure(claim.figure)
results = figure.run("smoke", progress=False)
verdicts = study.check(results)
verdicts

# %% [markdown]
# ## What has been published?
#
# The lab's own runs at the scale `quick` stand in the study. The word of a verdict says where it was judged: see
# [how verdicts work](../verdicts.md).

# %%
for one in study.published:
    if one["id"] == claim.id:
        print(one["word"], one["value"], [one["low"], one["high"]], f"{one['seeds']} seeds")

# %% [markdown]
# ## Change the setting
#
# `set` changes fields and axes; the claim is then judged on your sizes. A command line does the same:
# `lemmata run chain-of-thought/FIGURE --set PATH=VALUE`. A claim about changed settings is never called "not reproduced".

# %%
figure.draw(results, verdicts)
