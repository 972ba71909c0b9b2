# The server: docker build -t regard . && docker run --rm -p 8000:8000 regard
# For NVIDIA GPUs: docker build --build-arg DEVICE=cuda -t regard:cuda .
#                  docker run --rm --gpus all -p 8000:8000 regard:cuda
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
# cpu: torch without CUDA, about 200 MB. cuda: the wheel of PyPI with CUDA's libraries, about 5 GB.
ARG DEVICE=cpu
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/regard
ENV PATH=/opt/regard/bin:$PATH
# torch is a layer of its own, which stays in the cache while only the code changes. The index of CPU wheels
# has not all its dependencies at these versions: they come with the package.
COPY constraints.txt /src/
RUN if [ "$DEVICE" = cpu ]; then \
        pip install --no-deps -c /src/constraints.txt torch --index-url https://download.pytorch.org/whl/cpu; \
    else \
        pip install -c /src/constraints.txt torch; \
    fi
COPY LICENSE README.md pyproject.toml setup.py /src/
COPY regard /src/regard
RUN pip install -c /src/constraints.txt "/src[serve]"

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title=regard \
      org.opencontainers.image.licenses="Apache-2.0 AND CC-BY-SA-4.0"
COPY --from=build /opt/regard /opt/regard
RUN useradd --create-home --uid 1000 regard && mkdir /models && chown regard /models
ENV PATH=/opt/regard/bin:$PATH PYTHONUNBUFFERED=1
USER 1000
WORKDIR /models
VOLUME /models
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/livez', timeout=4)"]
# Another command replaces `serve`: docker run --rm regard translate "…"
ENTRYPOINT ["regard"]
CMD ["serve", "--host", "0.0.0.0", "--open"]
