"""The experiments, a file for each or for a few that belong together."""

from lemmata.studies.spatial_structure.figures import (
    coupling,
    encodings,
    first_event,
    frozen_attention,
    gaussian,
    illustrations,
    linear_models,
    linear_phase,
    loss_rate,
    patches,
    real_grids,
    realistic,
    sample_flow,
    sizes,
    three_events,
    transfer,
    transfer_learners,
)
from lemmata.studies.spatial_structure.figures.common import template as template

FIGURES = (
    illustrations.partitions, gaussian.gaussian, illustrations.misleading, realistic.descent_on_a_sample,
    sample_flow.sample_flow, encodings.encodings,
    linear_models.glm_floor, linear_models.without_association, three_events.three_events, patches.patches,
    first_event.first_event,
    loss_rate.loss_rate, frozen_attention.frozen_attention, linear_phase.linear_phase, coupling.coupling,
    transfer.transfer, transfer_learners.transfer_learners, sizes.sizes, real_grids.grids, real_grids.positional,
)  # fmt: skip
