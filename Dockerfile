# The manager's image: one static binary, built outside by `make build`, so that
# no toolchain image is needed and what was tested is what is shipped.
#
#   make docker-build IMG=xylem:dev               # builds bin/manager for linux, then this
#   make docker-build IMG=xylem:dev BASE=scratch  # where no base image can be pulled
#
# The default base adds root certificates, which a kubeconfig without its own
# certificate authority needs, and nothing that can be run.
ARG BASE=gcr.io/distroless/static:nonroot
FROM ${BASE}
COPY bin/manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
