FROM jari-stand-in:bookworm
RUN apt-get -o Acquire::Retries=3 -qq update && \
    apt-get -o Acquire::Retries=3 -qq install -y --no-install-recommends python3-minimal libpython3-stdlib && \
    rm -rf /var/lib/apt/lists
COPY moto /opt/moto
ENV PYTHONPATH=/opt/moto
CMD ["python3", "-m", "moto.server", "--host", "0.0.0.0", "--port", "5000"]
