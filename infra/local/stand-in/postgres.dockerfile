FROM jari-stand-in:bookworm
RUN apt-get -o Acquire::Retries=3 -qq update && \
    apt-get -o Acquire::Retries=3 -qq install -y --no-install-recommends postgresql-15 postgresql-client-15 && \
    rm -rf /var/lib/apt/lists /var/lib/postgresql/15 && \
    install -d -o postgres -g postgres /var/lib/postgresql/data
COPY postgres.sh /usr/local/bin/
ENV PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/data
USER postgres
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
CMD ["sh", "/usr/local/bin/postgres.sh"]
