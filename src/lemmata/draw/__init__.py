"""Pictures of results: they see Datasets and verdicts, nothing else, and nothing that judges looks at them.

| module      | draws |
|-------------|-------|
| `style`     | `picture`, `canvas`, `caption`, `panel`, `key`, ticks, colours: what every picture shares |
| `curves`    | `line`, `lines`: a quantity over an axis or over training, arm by arm, with its spread over seeds; `law`, \
`slope`, `reference`: what is predicted over what was measured; `rows`: one row for each label |
| `phase`     | `phase_diagram`, `success_map`: a quantity or a share of successes over two axes, with boundaries |
| `attention` | maps of logits, mosaics, partitions; attention over a sequence of tokens |
| `graphs`    | a small graph with the groups of its nodes and the weights of its edges |
"""
