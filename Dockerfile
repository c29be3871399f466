# The same file and configuration as `make image`, for those who build with an
# engine. The digest differs, since engines put times into layers.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETARCH
ARG VERSION=unknown
RUN CGO_ENABLED=0 GOOS=linux GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags="-s -w -X main.stamped=$VERSION" -o /plimsoll ./cmd/plimsoll

FROM scratch
COPY --from=build /plimsoll /plimsoll
USER 65532:65532
ENTRYPOINT ["/plimsoll"]
