# syntax=docker/dockerfile:1

# Both by digest, and Bun by the hashes of its lock file: a name can be moved to other contents, a hash cannot.
FROM node:22.23.3-bookworm-slim@sha256:c3de60bf2f9dd0ac6370e6117950ff62d6e339527e7472301c9c78a017978392 AS build
COPY .ci/bun /opt/bun
RUN npm ci --prefix /opt/bun
ENV PATH=/opt/bun/node_modules/.bin:$PATH
WORKDIR /build
COPY package.json bun.lock bunfig.toml tsconfig.json ./
RUN bun install --frozen-lockfile
COPY src ./src
# NODE_ENV is read when the binary is built, too: it decides which React and which checks go in.
# `--build-arg COMMIT=$(git rev-parse --short=12 HEAD)`: the history is not in the build's context.
ARG COMMIT=
RUN COMMIT="$COMMIT" bun run build && mkdir -p /rootfs/data

# glibc, CA certificates, time zones and a user 65532; neither a shell nor a package manager.
FROM gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f
COPY --from=build /build/dist/tollgate /usr/local/bin/tollgate
COPY --from=build --chown=65532:65532 /rootfs/data /data
# Journals and the instance's name live in /data: keep the volume, and give each container its own.
ENV NODE_ENV=production \
    BUN_CONFIG_MAX_HTTP_REQUESTS=65535 \
    MIMALLOC_PURGE_DELAY=5000 \
    MIMALLOC_PURGE_HOLES_MIN_INTERVAL=5000 \
    HOST=0.0.0.0 \
    PORT=8080 \
    DATA_DIR=/data \
    DO_NOT_TRACK=1
WORKDIR /data
VOLUME /data
EXPOSE 8080
USER 65532:65532
# SIGTERM drains: give it more than DRAIN_S (docker stop -t 40).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 CMD ["/usr/local/bin/tollgate", "health"]
ENTRYPOINT ["/usr/local/bin/tollgate"]
CMD ["serve"]
