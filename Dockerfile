# syntax=docker/dockerfile:1
# `docker run IMAGE run --config my.toml` is `python -m pipelines run --config my.toml`; the same
# image runs every step of a compiled Kubeflow pipeline.

FROM python:3.11-slim AS build

# pyfarmhash (a requirement of TFDV) is published as C++ source only.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir uv==0.13.8

ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_NO_CACHE=1 \
    UV_PROJECT_ENVIRONMENT=/opt/venv \
    UV_PYTHON_DOWNLOADS=never
WORKDIR /src

# The dependencies first: this layer is rebuilt only when the lock file changes.
COPY pyproject.toml uv.lock .python-version ./
RUN uv sync --frozen --no-dev --extra pipelines --no-install-project

COPY LICENSE README.md ./
COPY estimator_core estimator_core
COPY components components
COPY pipelines pipelines
RUN uv sync --frozen --no-dev --extra pipelines --no-editable


FROM python:3.11-slim

RUN useradd --uid 1000 --create-home pipelines
COPY --from=build /opt/venv /opt/venv

# Python looks for the user's modules in the working directory, which is where to mount a project.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TF_CPP_MIN_LOG_LEVEL=2
WORKDIR /home/pipelines/work
RUN chown pipelines:pipelines /home/pipelines/work
USER 1000:1000

ENTRYPOINT ["python", "-m", "pipelines"]
CMD ["--help"]
