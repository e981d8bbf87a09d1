# The service in a container: `docker build --build-arg COMMIT="$(git log -1 --format='%h %cs' --abbrev=12)" -t ollim-bot .`, then
# `docker run -v ollim:/data -e CLAUDE_CODE_OAUTH_TOKEN=… ollim-bot`. docs/operations.md says more.
FROM rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
# What `--version` says: the repository is not in the image.
ARG COMMIT=
RUN OLLIM_COMMIT="$COMMIT" cargo build --release --locked --bins

FROM node:22-bookworm-slim
RUN npm install -g @anthropic-ai/claude-code@2.1.330 && npm cache clean --force \
 && apt-get update && apt-get install -y --no-install-recommends ca-certificates git tzdata && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 bot && install -d -o bot -g bot -m 700 /data
COPY --from=build /src/target/release/ollim-bot /src/target/release/ollim-shell /usr/local/bin/
USER bot
ENV OLLIM_HOME=/data
VOLUME /data
ENTRYPOINT ["ollim-bot"]
CMD ["run"]
