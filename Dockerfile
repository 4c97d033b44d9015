# syntax=docker/dockerfile:1
# `docker run IMAGE run --config my.toml` is `estimator-pipelines run --config my.toml`.
# `make image` builds it with the engine that is there; docs/image.md says more.

# All stages must have the same Python: the environment of one runs in the others. On Debian 13 (glibc 2.41),
# Python 3.12 and 3.13 have TFX's own set (docs/dependencies.md). A digest can be named instead:
# --build-arg PYTHON_IMAGE=python@sha256:...
ARG PYTHON_IMAGE=python:3.13.9-slim-trixie

FROM ${PYTHON_IMAGE} AS dependencies

# pyfarmhash (a requirement of TFDV) is published as C++ source only.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*

# The secrets hold the package indexes of whoever builds (scripts/image/index_settings.sh). They are
# mounted for one instruction, and become part of no layer; without them, PyPI is asked.
RUN --mount=type=secret,id=indexes --mount=type=secret,id=certificates \
    if [ -f /run/secrets/indexes ]; then . /run/secrets/indexes; fi \
    && pip install --no-cache-dir --no-input uv==0.13.8

ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_NO_CACHE=1 \
    UV_PROJECT_ENVIRONMENT=/opt/venv \
    UV_PYTHON_DOWNLOADS=never
WORKDIR /src

# This layer is rebuilt only when one of these files changes. Nothing here compiles operations against TensorFlow,
# for which its headers (400 MB) and clang (60 MB) are there, or runs the packages' own tests (60 MB).
COPY pyproject.toml uv.lock ./
RUN --mount=type=secret,id=indexes --mount=type=secret,id=certificates \
    --mount=type=secret,id=uv_toml \
    if [ -f /run/secrets/indexes ]; then . /run/secrets/indexes; fi \
    && uv sync --frozen --no-dev --extra pipelines --no-install-project \
    && cd /opt/venv/lib/python3*/site-packages \
    && rm -rf tensorflow/include clang \
    && find . -type d -name tests -prune -exec rm -rf {} +


FROM dependencies AS project

COPY LICENSE README.md estimator_pipelines.py ./
COPY estimator_core estimator_core
COPY components components
COPY pipelines pipelines
# A prefix beside the environment, so that our own code is a layer of its own.
RUN --mount=type=secret,id=indexes --mount=type=secret,id=certificates \
    --mount=type=secret,id=uv_toml \
    if [ -f /run/secrets/indexes ]; then . /run/secrets/indexes; fi \
    && uv pip install --no-deps --python /opt/venv/bin/python --prefix /opt/project .


FROM ${PYTHON_IMAGE}

# LightGBM's wheel needs the system's OpenMP library.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --create-home pipelines \
    && install --directory --owner pipelines --group pipelines /home/pipelines/work
COPY --from=dependencies /opt/venv /opt/venv
COPY --from=project /opt/project /opt/venv

# Python looks for the user's modules in the working directory, which is where to mount a project.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TF_CPP_MIN_LOG_LEVEL=2
WORKDIR /home/pipelines/work
USER 1000:1000

ARG PYTHON_IMAGE
LABEL org.opencontainers.image.title="estimator-pipelines" \
      org.opencontainers.image.description="From a CSV to a gated, versioned SavedModel: the Estimator API as TFX components" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${PYTHON_IMAGE}"

ENTRYPOINT ["python", "-m", "estimator_pipelines"]
CMD ["--help"]
