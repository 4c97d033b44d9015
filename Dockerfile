# syntax=docker/dockerfile:1
# `docker run IMAGE run --config my.toml` is `python -m pipelines run --config my.toml`.

# Both stages must have the same Python: the environment of one runs in the other. Its minor version
# is that of .python-version.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS build

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

# The dependencies first: this layer is rebuilt only when one of these files changes.
COPY pyproject.toml uv.lock .python-version ./
RUN uv sync --frozen --no-dev --extra pipelines --no-install-project

COPY LICENSE README.md ./
COPY estimator_core estimator_core
COPY components components
COPY pipelines pipelines
RUN uv sync --frozen --no-dev --extra pipelines --no-editable


FROM ${PYTHON_IMAGE}

# LightGBM's wheel needs the system's OpenMP library.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
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
