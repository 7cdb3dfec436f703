FROM jari-stand-in:bookworm
RUN apt-get -o Acquire::Retries=3 -qq update && \
    apt-get -o Acquire::Retries=3 -qq install -y --no-install-recommends redis-server && \
    rm -rf /var/lib/apt/lists && mkdir -p /data
VOLUME /data
WORKDIR /data
CMD ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no"]
